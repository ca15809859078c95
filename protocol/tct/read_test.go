package tct

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// Conversations of the reader; see [protocoltest.Conversation].
//
// The lines of a script:
//
//	changes        read the stream from the last cursor
//	page URL       fetch a page by the Ref of the stream or of the last response
//	single URL     fetch a page without a list
//	clock 25h      let time pass
//	handshake      from now on, check that pages link to their M-URLs
//	policy         fetch the policy
//	key            from now on, use a key for the site
//	again          from now on, use a new reader
func TestConversations(t *testing.T) {
	for name, open := range map[string]func(c *conversation) millrace.Source{
		"draft00": func(c *conversation) millrace.Source {
			return Draft00().NewReader(&http.Client{Transport: c}, "https://example.com/", &c.o)
		},
		"draft01": func(c *conversation) millrace.Source {
			return Draft01().NewReader(&http.Client{Transport: c}, "https://example.com/some/page", &c.o)
		},
		"draft03": func(c *conversation) millrace.Source {
			return Draft03().NewReader(&http.Client{Transport: c}, "https://example.com/some/page", &c.o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			protocoltest.Conversations(t, filepath.Join("testdata", name, "conversations"), *update, func(t *testing.T, s *protocoltest.Conversation) {
				c := &conversation{Conversation: s, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), known: map[string]millrace.Ref{}}
				c.run(t, open)
			})
		})
	}
}

// conversation is a reader that follows a script.
type conversation struct {
	*protocoltest.Conversation
	now    time.Time
	o      protocol.ReaderOptions
	known  map[string]millrace.Ref
	cursor millrace.Cursor
}

func (c *conversation) run(t *testing.T, open func(*conversation) millrace.Source) {
	c.o.Now = func() time.Time { return c.now }
	c.o.Note = c.Note
	src := open(c)
	for _, line := range c.Script {
		fmt.Fprintf(&c.Out, "> %s\n", line)
		verb, arg, _ := strings.Cut(line, " ")
		switch verb {
		case "changes":
			c.changes(t, src)
		case "page":
			c.page(t, src, c.known[arg])
		case "single":
			c.page(t, src, millrace.Ref{URL: arg, Version: c.known[arg].Version})
		case "clock":
			d, err := time.ParseDuration(arg)
			if err != nil {
				t.Fatal(err)
			}
			c.now = c.now.Add(d)
		case "handshake":
			c.o.CheckPageLinks = true
			src = open(c)
		case "key":
			c.o.Key = func(origin string) string {
				return map[string]string{"https://example.com": "k"}[origin]
			}
			src = open(c)
		case "again":
			src = open(c)
		case "policy":
			if p, err := src.(protocol.PolicyReader).Policy(t.Context()); err != nil {
				c.Error(err)
			} else {
				fmt.Fprintf(&c.Out, "policy %+v\n", *p)
			}
		default:
			t.Fatalf("script: %s", line)
		}
	}
}

func (c *conversation) changes(t *testing.T, src millrace.Source) {
	for ch, err := range src.Changes(t.Context(), c.cursor) {
		switch {
		case err != nil:
			c.Error(err)
		case ch.Kind == millrace.Put:
			fmt.Fprintf(&c.Out, "put %s version %s at %s", ch.URL, ch.Version, ch.Location)
			if ch.Section != "" {
				fmt.Fprintf(&c.Out, " of %s", ch.Section)
			}
			c.Out.WriteByte('\n')
			ref := c.known[ch.URL]
			ref.URL, ref.Location = ch.URL, ch.Location
			c.known[ch.URL] = ref
		case ch.Kind == millrace.KindCheckpoint:
			fmt.Fprintf(&c.Out, "mark whole=%v %s\n%s\n", ch.Checkpoint.Complete, ch.Checkpoint.Section, ch.Checkpoint.Cursor)
			c.cursor = ch.Checkpoint.Cursor
		}
	}
}

func (c *conversation) page(t *testing.T, src millrace.Source, have millrace.Ref) {
	p, err := src.Page(t.Context(), have)
	if err != nil {
		c.Error(err)
		return
	}
	fmt.Fprintf(&c.Out, "page %s %q version %s", p.URL, p.Title, p.Version)
	if p.Unconfirmed {
		c.Out.WriteString(" unconfirmed")
	}
	c.Out.WriteByte('\n')
	have.Version = p.Version
	c.known[have.URL] = have
}
