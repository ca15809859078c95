package arc

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/protocol"
)

// Conversations: what the reader says to a server, request by request, and
// what it makes of the answers. Each file has a script, pairs of requests and
// responses that come in that order and no others, and what the script gives.
// A response that a file gives by another's name is that one.
//
// The lines of a script:
//
//	changes        read the stream from the last cursor
//	anew           read the stream from the start
//	page URL       ask for a page as the stream or the last answer named it
//	single URL     ask for a page without a list
//	show URL       print what the last page of that URL says
//	clock 25h      let time pass
//	policy         ask for the policy
//	deltas N       lists of so many bytes have deltas, from now on
//	limit N        lists of so many bytes are too large, from now on
//	key            have a key for the site, from now on
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
			synctest.Test(t, func(t *testing.T) {
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
	start  time.Time // of the bubble, which stands for the script's
	o      ReaderOptions
	held   map[string]millrace.Ref
	pages  map[string]*millrace.Page
	cursor millrace.Cursor
}

var scriptStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newConversation(t *testing.T, a *txtar.Archive) *conversation {
	c := &conversation{t: t, start: time.Now(), held: map[string]millrace.Ref{}, pages: map[string]*millrace.Page{}}
	named := map[string]string{}
	for _, f := range a.Files {
		switch text := string(f.Data); f.Name {
		case "script":
			c.script = strings.Split(strings.TrimSpace(text), "\n")
		case "request":
			c.pairs = append(c.pairs, pair{request: strings.TrimSpace(text)})
		case "response":
			c.pairs[len(c.pairs)-1].response = text
		case "want":
		default:
			if name, ok := strings.CutPrefix(f.Name, "response "); ok {
				if text == "" {
					text = named[name]
				}
				named[name] = text
				c.pairs[len(c.pairs)-1].response = text
			}
		}
	}
	return c
}

// RoundTrip checks that a request is the next one of the script, with its
// conditional fields, and answers it.
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
	body = strings.TrimSuffix(body, "\n")
	head = strings.TrimSuffix(head, "\n") + "\n"
	if !strings.Contains(head, "Content-Length") {
		head += fmt.Sprintf("Content-Length: %d\n", len(body))
	}
	if r.Method == http.MethodHead || strings.HasPrefix(head, "HTTP/1.1 304") {
		body = ""
	}
	wire := strings.ReplaceAll(head, "\n", "\r\n") + "\r\n" + body
	return http.ReadResponse(bufio.NewReader(strings.NewReader(wire)), r)
}

func (c *conversation) run(t *testing.T) string {
	c.o.Now = func() time.Time { return scriptStart.Add(time.Since(c.start)) }
	rules := Rules()
	c.o.Note = func(n protocol.Note) {
		if !strings.HasPrefix(n.Rule, Name+"/reader/") && !slices.ContainsFunc(rules, func(r check.Rule) bool { return r.ID == n.Rule }) {
			t.Errorf("there is no rule %s", n.Rule)
		}
		fmt.Fprintf(&c.out, "note %s %s: %s\n", n.Rule, n.URL, n.Text)
	}
	open := func() *Reader {
		return NewReader(&http.Client{Transport: c}, "https://example.com/", &c.o)
	}
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	src := open()
	for _, line := range c.script {
		fmt.Fprintf(&c.out, "> %s\n", line)
		verb, arg, _ := strings.Cut(line, " ")
		switch verb {
		case "changes":
			c.changes(t, src)
		case "anew":
			c.cursor = ""
			c.changes(t, src)
		case "page":
			c.page(t, src, c.held[arg])
		case "single":
			c.page(t, src, millrace.Ref{URL: arg, Version: c.held[arg].Version})
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
				fmt.Fprintf(&c.out, "error %s: %s\n", kind(err), err)
			} else {
				fmt.Fprintf(&c.out, "policy %+v\n", *p)
			}
		default:
			t.Fatalf("script: %s", line)
		}
	}
	// How pages are read is nothing that a conversation is about.
	return regexp.MustCompile(`"by":"[^"]*"`).ReplaceAllString(c.out.String(), `"by":"…"`)
}

func (c *conversation) changes(t *testing.T, src millrace.Source) {
	for ch, err := range src.Changes(t.Context(), c.cursor) {
		var skip *millrace.SkipError
		switch {
		case errors.As(err, &skip):
			fmt.Fprintf(&c.out, "skip absent=%v %s: %s\n", skip.Absent, skip.URL, skip.Err)
		case err != nil:
			fmt.Fprintf(&c.out, "error %s: %s\n", kind(err), err)
		case ch.Kind == millrace.Put && ch.Page != nil:
			fmt.Fprintf(&c.out, "put %s %q version %s\n", ch.URL, ch.Page.Title, ch.Version)
			c.pages[ch.URL] = ch.Page
		case ch.Kind == millrace.Put:
			fmt.Fprintf(&c.out, "ask %s\n", ch.Location)
			held := c.held[ch.URL]
			held.URL, held.Location = ch.URL, ch.Location
			c.held[ch.URL] = held
		case ch.Kind == millrace.Delete:
			fmt.Fprintf(&c.out, "delete %s\n", ch.URL)
		case ch.Kind == millrace.Mark:
			fmt.Fprintf(&c.out, "mark whole=%v\n%s\n", ch.Mark.Whole, ch.Mark.Cursor)
			c.cursor = ch.Mark.Cursor
		}
	}
}

func (c *conversation) page(t *testing.T, src millrace.Source, have millrace.Ref) {
	began := time.Now()
	p, err := src.Page(t.Context(), have)
	if d := time.Since(began); d > 0 {
		fmt.Fprintf(&c.out, "after %s\n", d)
	}
	if err != nil {
		fmt.Fprintf(&c.out, "error %s: %s\n", kind(err), err)
		return
	}
	fmt.Fprintf(&c.out, "page %s %q version %s\n", p.URL, p.Title, p.Version)
	have.Version = p.Version
	c.held[have.URL], c.pages[have.URL] = have, p
}

func (c *conversation) show(p *millrace.Page) {
	if p == nil {
		c.out.WriteString("there is no such page\n")
		return
	}
	fmt.Fprintf(&c.out, "title %q summary %q tags %q kind %q noindex %v auth %v\n", p.Title, p.Summary, p.Tags, p.Kind, p.Access.NoIndex, p.Access.Auth)
	if p.Extra[Name] != nil {
		fmt.Fprintf(&c.out, "snapshot %s\n", p.Extra[Name])
	}
	if text := p.Text(); text != "" {
		fmt.Fprintf(&c.out, "%s\n", text)
	}
}

func kind(err error) string {
	for _, e := range []error{
		millrace.ErrUnmodified, millrace.ErrNotFound, millrace.ErrInvalid, millrace.ErrConflict,
		millrace.ErrUnavailable, millrace.ErrForbidden, millrace.ErrTooLarge, errors.ErrUnsupported,
	} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	return "?"
}
