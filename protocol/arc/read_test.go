package arc

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// TestConversations runs conversations of the reader; see [protocoltest.Conversation].
//
// The commands of a script:
//
//	changes        read the stream from the last cursor
//	restart        read the stream from the start
//	page URL       request a page, with the ref from the stream or the last response
//	single URL     request a page without a list
//	show URL       print the last content of the page
//	clock 25h      advance the clock
//	policy         request the policy
//	deltas N       read deltas of lists of at least N bytes from now on
//	limit N        refuse lists over N bytes from now on
//	key            have a key for the site from now on
//	again          use another reader from now on
func TestConversations(t *testing.T) {
	protocoltest.Conversations(t, "testdata/conversations", *update, func(t *testing.T, s *protocoltest.Conversation) {
		synctest.Test(t, func(t *testing.T) {
			c := &conversation{Conversation: s, start: time.Now(), known: map[string]millrace.Ref{}, pages: map[string]*millrace.Page{}}
			c.run(t)
		})
	})
}

// conversation is a reader that follows a script.
type conversation struct {
	*protocoltest.Conversation
	start  time.Time // synctest time at which the script starts
	o      ReaderOptions
	known  map[string]millrace.Ref
	pages  map[string]*millrace.Page
	cursor millrace.Cursor
}

var scriptStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (c *conversation) run(t *testing.T) {
	c.o.Now = func() time.Time { return scriptStart.Add(time.Since(c.start)) }
	rules := Rules()
	c.o.Note = func(n protocol.Note) {
		if !strings.HasPrefix(n.Rule, Name+"/reader/") && !slices.ContainsFunc(rules, func(r check.Rule) bool { return r.ID == n.Rule }) {
			t.Errorf("there is no rule %s", n.Rule)
		}
		c.Note(n)
	}
	open := func() *reader {
		return newReader(&http.Client{Transport: c}, "https://example.com/", &c.o)
	}
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	src := open()
	for _, line := range c.Script {
		fmt.Fprintf(&c.Out, "> %s\n", line)
		verb, arg, _ := strings.Cut(line, " ")
		switch verb {
		case "changes":
			c.changes(t, src)
		case "restart":
			c.cursor = ""
			c.changes(t, src)
		case "page":
			c.page(t, src, c.known[arg])
		case "single":
			c.page(t, src, millrace.Ref{URL: arg, Version: c.known[arg].Version})
		case "show":
			c.show(c.pages[arg])
		case "clock":
			d, err := time.ParseDuration(arg)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(d)
		case "deltas":
			c.o.Deltas = number(arg)
			src = open()
		case "limit":
			c.o.MaxList = number(arg)
			src = open()
		case "key":
			c.o.Key = func(origin string) string {
				return map[string]string{"https://example.com": "k"}[origin]
			}
			src = open()
		case "again":
			src = open()
		case "policy":
			if p, err := src.Policy(t.Context()); err != nil {
				c.Error(err)
			} else {
				fmt.Fprintf(&c.Out, "policy %+v\n", *p)
			}
		default:
			t.Fatalf("script: %s", line)
		}
	}
	// Conversations do not depend on the extraction rules.
	masked := regexp.MustCompile(`"by":"[^"]*"`).ReplaceAllString(c.Out.String(), `"by":"…"`)
	c.Out.Reset()
	c.Out.WriteString(masked)
}

func (c *conversation) changes(t *testing.T, src millrace.Source) {
	for ch, err := range src.Changes(t.Context(), c.cursor) {
		switch {
		case err != nil:
			c.Error(err)
		case ch.Kind == millrace.Put && ch.Page != nil:
			fmt.Fprintf(&c.Out, "put %s %q version %s\n", ch.URL, ch.Page.Title, ch.Version)
			c.pages[ch.URL] = ch.Page
		case ch.Kind == millrace.Put:
			fmt.Fprintf(&c.Out, "ask %s\n", ch.Location)
			ref := c.known[ch.URL]
			ref.URL, ref.Location = ch.URL, ch.Location
			c.known[ch.URL] = ref
		case ch.Kind == millrace.Delete:
			fmt.Fprintf(&c.Out, "delete %s\n", ch.URL)
		case ch.Kind == millrace.KindCheckpoint:
			fmt.Fprintf(&c.Out, "mark whole=%v\n%s\n", ch.Checkpoint.Complete, ch.Checkpoint.Cursor)
			c.cursor = ch.Checkpoint.Cursor
		}
	}
}

func (c *conversation) page(t *testing.T, src millrace.Source, have millrace.Ref) {
	began := time.Now()
	p, err := src.Page(t.Context(), have)
	if d := time.Since(began); d > 0 {
		fmt.Fprintf(&c.Out, "after %s\n", d)
	}
	if err != nil {
		c.Error(err)
		return
	}
	fmt.Fprintf(&c.Out, "page %s %q version %s\n", p.URL, p.Title, p.Version)
	have.Version = p.Version
	c.known[have.URL], c.pages[have.URL] = have, p
}

func (c *conversation) show(p *millrace.Page) {
	if p == nil {
		c.Out.WriteString("there is no such page\n")
		return
	}
	fmt.Fprintf(&c.Out, "title %q summary %q tags %q kind %q noindex %v auth %v\n", p.Title, p.Summary, p.Tags, p.Kind, p.Access.NoIndex, p.Access.Auth)
	if p.Extra[Name] != nil {
		fmt.Fprintf(&c.Out, "snapshot %s\n", p.Extra[Name])
	}
	if text := p.Text(); text != "" {
		fmt.Fprintf(&c.Out, "%s\n", text)
	}
}
