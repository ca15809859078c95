package openfeeder

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// TestConversations runs conversations of the reader; see [protocoltest.Conversation].
//
// The commands of a script:
//
//	changes      read the stream from the last cursor
//	page URL     request a page, with the ref from the stream or the last response
//	clock 25h    advance the clock
//	key KEY      send a key to https://example.com from now on
//	compare N    compare the index after N replies
func TestConversations(t *testing.T) {
	protocoltest.Conversations(t, "testdata/conversations", *update, func(t *testing.T, s *protocoltest.Conversation) {
		c := &conversation{Conversation: s, t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), known: map[string]millrace.Ref{}}
		c.run()
	})
}

// conversation is a reader that follows a script.
type conversation struct {
	*protocoltest.Conversation
	t      *testing.T
	now    time.Time
	o      ReaderOptions
	known  map[string]millrace.Ref
	cursor millrace.Cursor
}

func (c *conversation) run() {
	c.o.Now = func() time.Time { return c.now }
	c.o.Note = c.Note
	open := func() millrace.Source {
		return NewReader(&http.Client{Transport: c}, "https://example.com/some/page", &c.o)
	}
	src := open()
	for _, line := range c.Script {
		fmt.Fprintf(&c.Out, "> %s\n", line)
		verb, arg, _ := strings.Cut(line, " ")
		switch verb {
		case "changes":
			c.changes(src)
		case "page":
			ref := c.known[arg]
			ref.URL = arg
			c.page(src, ref)
		case "clock":
			d, err := time.ParseDuration(arg)
			if err != nil {
				c.t.Fatal(err)
			}
			c.now = c.now.Add(d)
		case "key":
			c.o.Key = func(origin string) string {
				if origin == "https://example.com" {
					return arg
				}
				return ""
			}
			src = open()
		case "compare":
			if _, err := fmt.Sscan(arg, &c.o.Compare); err != nil {
				c.t.Fatal(err)
			}
			src = open()
		default:
			c.t.Fatal("unknown command: " + line)
		}
	}
}

func (c *conversation) changes(src millrace.Source) {
	for ch, err := range src.Changes(c.t.Context(), c.cursor) {
		switch {
		case err != nil:
			c.Error(err)
		case ch.Kind == millrace.Put:
			fmt.Fprintf(&c.Out, "put %s version %s", ch.URL, ch.Version)
			if ch.Location != "" {
				fmt.Fprintf(&c.Out, " at %s", ch.Location)
			}
			c.Out.WriteByte('\n')
			c.known[ch.URL] = millrace.Ref{URL: ch.URL, Location: ch.Location}
		case ch.Kind == millrace.Delete:
			fmt.Fprintf(&c.Out, "delete %s\n", ch.URL)
		default:
			c.cursor = ch.Checkpoint.Cursor
			fmt.Fprintf(&c.Out, "mark whole=%t %s\n", ch.Checkpoint.Complete, ch.Checkpoint.Cursor)
		}
	}
}

func (c *conversation) page(src millrace.Source, ref millrace.Ref) {
	p, err := src.Page(c.t.Context(), ref)
	if err != nil {
		c.Error(err)
		return
	}
	ref.Version = p.Version
	c.known[ref.URL] = ref
	fmt.Fprintf(&c.Out, "page %s %q version %s\n", p.URL, p.Title, p.Version)
	for line := range strings.Lines(strings.TrimSpace(p.Text()) + "\n") {
		if strings.TrimSpace(line) != "" {
			fmt.Fprintf(&c.Out, "  %s", line)
		}
	}
}
