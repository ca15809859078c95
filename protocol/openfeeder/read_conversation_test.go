package openfeeder

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
)

// Conversations: what the reader says to a server, request by request, and
// what it makes of the answers. Each file has a script, pairs of requests and
// responses that come in that order and no others, and what the script gives.
//
// The lines of a script:
//
//	changes      read the stream from the last cursor
//	page URL     ask for a page as the stream named it, or the last answer
//	clock 25h    let time pass
//	key KEY      show a key to https://example.com from now on
//	compare N    compare the index after so many replies
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/conversations/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c := newConversation(t, a)
			c.run()
			if len(c.pairs) > 0 {
				t.Errorf("never asked:\n%s", c.pairs[0].request)
			}
			last := &a.Files[len(a.Files)-1]
			if last.Name != "want" {
				t.Fatal("the last file is not want")
			}
			got := c.out.String()
			if *update {
				last.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(last.Data), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

type pair struct{ request, response string }

// conversation is a server that follows a script.
type conversation struct {
	t      *testing.T
	script []string
	pairs  []pair
	out    strings.Builder
	now    time.Time
	o      ReaderOptions
	held   map[string]millrace.Ref
	cursor millrace.Cursor
}

func newConversation(t *testing.T, a *txtar.Archive) *conversation {
	c := &conversation{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), held: map[string]millrace.Ref{}}
	for _, f := range a.Files {
		switch text := string(f.Data); f.Name {
		case "script":
			c.script = strings.Split(strings.TrimSpace(text), "\n")
		case "request":
			c.pairs = append(c.pairs, pair{request: strings.TrimSpace(text)})
		case "response":
			c.pairs[len(c.pairs)-1].response = text
		}
	}
	return c
}

// RoundTrip checks that a request is the next one of the script, with the
// fields that decide about its answer, and answers it.
func (c *conversation) RoundTrip(r *http.Request) (*http.Response, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Method, r.URL)
	for _, name := range []string{"Authorization", "If-None-Match", "If-Modified-Since"} {
		if v, ok := r.Header[name]; ok {
			fmt.Fprintf(&b, "\n%s: %s", name, strings.Join(v, ", "))
		}
	}
	if len(c.pairs) == 0 || c.pairs[0].request != b.String() {
		want := "nothing"
		if len(c.pairs) > 0 {
			want = c.pairs[0].request
		}
		c.t.Errorf("the reader asks\n%s\n\nand the script has\n%s", b.String(), want)
		return nil, errors.New("off the script")
	}
	head, body, _ := strings.Cut(c.pairs[0].response, "\n\n")
	c.pairs = c.pairs[1:]
	if body = strings.TrimSuffix(body, "\n"); strings.HasPrefix(head, "HTTP/1.1 304") {
		body = ""
	}
	head = strings.TrimSuffix(head, "\n") + fmt.Sprintf("\nContent-Length: %d\n", len(body))
	wire := strings.ReplaceAll(head, "\n", "\r\n") + "\r\n" + body
	return http.ReadResponse(bufio.NewReader(strings.NewReader(wire)), r)
}

func (c *conversation) run() {
	c.o.Now = func() time.Time { return c.now }
	c.o.Note = func(n protocol.Note) { fmt.Fprintf(&c.out, "note %s %s: %s\n", n.Rule, n.URL, n.Text) }
	open := func() millrace.Source {
		return NewReader(&http.Client{Transport: c}, "https://example.com/some/page", &c.o)
	}
	src := open()
	for _, line := range c.script {
		fmt.Fprintf(&c.out, "> %s\n", line)
		verb, arg, _ := strings.Cut(line, " ")
		switch verb {
		case "changes":
			c.changes(src)
		case "page":
			ref := c.held[arg]
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
			c.t.Fatal("no such line: " + line)
		}
	}
}

func (c *conversation) changes(src millrace.Source) {
	for ch, err := range src.Changes(c.t.Context(), c.cursor) {
		switch {
		case err != nil:
			c.failed(err)
		case ch.Kind == millrace.Put:
			fmt.Fprintf(&c.out, "put %s version %s", ch.URL, ch.Version)
			if ch.Location != "" {
				fmt.Fprintf(&c.out, " at %s", ch.Location)
			}
			c.out.WriteByte('\n')
			c.held[ch.URL] = millrace.Ref{URL: ch.URL, Location: ch.Location}
		case ch.Kind == millrace.Delete:
			fmt.Fprintf(&c.out, "delete %s\n", ch.URL)
		default:
			c.cursor = ch.Mark.Cursor
			fmt.Fprintf(&c.out, "mark whole=%t %s\n", ch.Mark.Whole, ch.Mark.Cursor)
		}
	}
}

func (c *conversation) page(src millrace.Source, ref millrace.Ref) {
	p, err := src.Page(c.t.Context(), ref)
	if err != nil {
		c.failed(err)
		return
	}
	ref.Version = p.Version
	c.held[ref.URL] = ref
	fmt.Fprintf(&c.out, "page %s %q version %s\n", p.URL, p.Title, p.Version)
	for line := range strings.Lines(strings.TrimSpace(p.Text()) + "\n") {
		if strings.TrimSpace(line) != "" {
			fmt.Fprintf(&c.out, "  %s", line)
		}
	}
}

// failed notes an error, with what a caller can do about it.
func (c *conversation) failed(err error) {
	kind := "other"
	for name, is := range map[string]error{
		"not found": millrace.ErrNotFound, "invalid": millrace.ErrInvalid, "conflict": millrace.ErrConflict, "unmodified": millrace.ErrUnmodified,
		"unavailable": millrace.ErrUnavailable, "forbidden": millrace.ErrForbidden,
	} {
		if errors.Is(err, is) {
			kind = name
		}
	}
	if skip, ok := errors.AsType[*millrace.SkipError](err); ok {
		fmt.Fprintf(&c.out, "skip %s: %v\n", skip.URL, skip.Err)
		return
	}
	fmt.Fprintf(&c.out, "error %s: %v\n", kind, err)
}
