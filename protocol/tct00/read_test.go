package tct00

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
//	changes        read the stream from the last cursor
//	page URL       ask for a page as the stream or the last answer named it
//	single URL     ask for a page without a list
//	clock 25h      let time pass
//	handshake      ask pages whether they lead to their M-URLs from now on
//	policy         ask for the policy
//	again          read with another reader from now on
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
			got := c.run(t)
			if len(c.pairs) > 0 {
				t.Errorf("never asked:\n%s", c.pairs[0].request)
			}
			last := &a.Files[len(a.Files)-1]
			if last.Name != "want" {
				t.Fatal("the last file is not want")
			}
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

// RoundTrip checks that a request is the next one of the script, with its
// conditional fields, and answers it.
func (c *conversation) RoundTrip(r *http.Request) (*http.Response, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Method, r.URL)
	for _, name := range []string{"If-None-Match", "If-Modified-Since"} {
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
	body = strings.TrimSuffix(body, "\n")
	if r.Method == http.MethodHead || strings.HasPrefix(head, "HTTP/1.1 304") {
		body = ""
	}
	head = strings.TrimSuffix(head, "\n") + "\n"
	if !strings.Contains(head, "Content-Length") {
		head += fmt.Sprintf("Content-Length: %d\n", len(body))
	}
	wire := strings.ReplaceAll(head, "\n", "\r\n") + "\r\n" + body
	return http.ReadResponse(bufio.NewReader(strings.NewReader(wire)), r)
}

func (c *conversation) run(t *testing.T) string {
	c.o.Now = func() time.Time { return c.now }
	c.o.Note = func(n protocol.Note) { fmt.Fprintf(&c.out, "note %s %s: %s\n", n.Rule, n.URL, n.Text) }
	open := func() *Reader {
		return NewReader(&http.Client{Transport: c}, "https://example.com/", &c.o)
	}
	src := open()
	for _, line := range c.script {
		fmt.Fprintf(&c.out, "> %s\n", line)
		verb, arg, _ := strings.Cut(line, " ")
		switch verb {
		case "changes":
			c.changes(t, src)
		case "page":
			c.page(t, src, c.held[arg])
		case "single":
			c.page(t, src, millrace.Ref{URL: arg, Version: c.held[arg].Version})
		case "clock":
			d, err := time.ParseDuration(arg)
			if err != nil {
				t.Fatal(err)
			}
			c.now = c.now.Add(d)
		case "handshake":
			c.o.Handshake = true
			src = open()
		case "again":
			src = open()
		case "policy":
			if p, err := src.Policy(t.Context()); err != nil {
				fmt.Fprintf(&c.out, "error %s: %s\n", kind(err), err)
			} else {
				fmt.Fprintf(&c.out, "policy %+v\n", *p)
			}
		default:
			t.Fatalf("script: %s", line)
		}
	}
	return c.out.String()
}

func (c *conversation) changes(t *testing.T, src millrace.Source) {
	for ch, err := range src.Changes(t.Context(), c.cursor) {
		var skip *millrace.SkipError
		switch {
		case errors.As(err, &skip):
			fmt.Fprintf(&c.out, "skip %s\n", skip.Err)
		case err != nil:
			fmt.Fprintf(&c.out, "error %s: %s\n", kind(err), err)
		case ch.Kind == millrace.Put:
			fmt.Fprintf(&c.out, "put %s version %s at %s", ch.URL, ch.Version, ch.Location)
			if ch.Section != "" {
				fmt.Fprintf(&c.out, " of %s", ch.Section)
			}
			c.out.WriteByte('\n')
			held := c.held[ch.URL]
			held.URL, held.Location = ch.URL, ch.Location
			c.held[ch.URL] = held
		case ch.Kind == millrace.Mark:
			fmt.Fprintf(&c.out, "mark whole=%v %s\n%s\n", ch.Mark.Whole, ch.Mark.Section, ch.Mark.Cursor)
			c.cursor = ch.Mark.Cursor
		}
	}
}

func (c *conversation) page(t *testing.T, src millrace.Source, have millrace.Ref) {
	p, err := src.Page(t.Context(), have)
	if err != nil {
		fmt.Fprintf(&c.out, "error %s: %s\n", kind(err), err)
		return
	}
	fmt.Fprintf(&c.out, "page %s %q version %s\n", p.URL, p.Title, p.Version)
	have.Version = p.Version
	c.held[have.URL] = have
}

func kind(err error) string {
	for _, e := range []error{
		millrace.ErrUnmodified, millrace.ErrNotFound, millrace.ErrInvalid, millrace.ErrConflict,
		millrace.ErrUnavailable, millrace.ErrForbidden, millrace.ErrTooLarge,
	} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	return "?"
}
