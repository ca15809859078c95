package tct01

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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
//	head           ask by HEAD from now on
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
	open := func() millrace.Source {
		return NewReader(&http.Client{Transport: c}, "https://example.com/some/page", &c.o)
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
		case "head":
			c.o.Head = true
			src = open()
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

// answers is a transport that answers each URL with one body.
type answers map[string]func() io.Reader

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	h := http.Header{"Content-Type": {contentType}}
	if r.URL.Path == "/" {
		h.Add("Link", `</list>; rel="index"; type="application/json"`)
	}
	body := a[r.URL.Path]
	if body == nil {
		body = func() io.Reader { return strings.NewReader("") }
	}
	return &http.Response{StatusCode: 200, Header: h, Body: io.NopCloser(body()), ContentLength: -1, Request: r}, nil
}

func plainText(s string) func() io.Reader { return func() io.Reader { return strings.NewReader(s) } }

func collect(t *testing.T, src millrace.Source) (puts []millrace.Change, skips []*millrace.SkipError, marks int, err error) {
	t.Helper()
	for c, e := range src.Changes(t.Context(), "") {
		var skip *millrace.SkipError
		switch {
		case errors.As(e, &skip):
			skips = append(skips, skip)
		case e != nil:
			err = e
		case c.Kind == millrace.Mark:
			marks++
		default:
			puts = append(puts, c)
		}
	}
	return puts, skips, marks, err
}

// A list that lies: each entry stands or falls alone, with its place.
func TestListsThatLie(t *testing.T) {
	list := `{"version":1,"items":[
{"cUrl":"https://example.com/a","mUrl":"https://example.com/a/llm.json","etag":"sha256-1"},
{"cUrl":"HTTPS://EXAMPLE.com:443/a","mUrl":"https://example.com/b/llm.json","etag":"sha256-2"},
{"cUrl":"https://example.com/c","mUrl":"https://evil.example/llm.json","etag":"sha256-3"},
{"cUrl":"https://example.com/d","mUrl":"http://example.com/d/llm.json","etag":"sha256-3"},
{"cUrl":"javascript:alert(1)","mUrl":"https://example.com/e/llm.json","etag":"x"},
{"mUrl":"https://example.com/e/llm.json","etag":"x"},
{"cUrl":"https://example.com/f","etag":"x"},
{"cUrl":7},
"x",
{"cUrl":"https://user@example.com/g","mUrl":"https://example.com/g/llm.json","etag":"x"},
{"cUrl":"https://example.com/h","mUrl":"https://example.com/h/llm.json"},
{"cUrl":"https://example.com/i","mUrl":"https://example.com/i/llm.json","contentHash":"sha256-9"}
]}`
	puts, skips, marks, err := collect(t, NewReader(&http.Client{Transport: answers{"/list": plainText(list)}}, base, nil))
	if err != nil || marks != 1 {
		t.Fatal(marks, err)
	}
	var got []string
	for _, p := range puts {
		got = append(got, p.URL+" "+p.Version)
	}
	want := []string{`https://example.com/a "sha256-1"`, "https://example.com/h ", `https://example.com/i "sha256-9"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("puts (-want +got):\n%s", diff)
	}
	if len(skips) != 9 {
		t.Errorf("%d skips", len(skips))
	}
	for i, s := range skips {
		fe, ok := errors.AsType[*millrace.FormatError](s)
		if !ok || fe.Section != "1.7.1" || fe.URL != base+"list" || !strings.Contains(fe.Position, fmt.Sprintf("/items/%d", i+1)) {
			t.Errorf("skip %d: %v", i, s)
		}
	}
}

// A list that is broken anywhere, even at its end, applies nothing.
func TestBrokenLists(t *testing.T) {
	good := bytes.NewBufferString(listHead)
	for i := range 20_000 { // more than is spooled in memory
		if i > 0 {
			good.WriteByte(',')
		}
		fmt.Fprintf(good, `{"cUrl":"https://example.com/%d","mUrl":"https://example.com/%d/llm.json","etag":"sha256-%d"}`, i, i, i)
	}
	t.Setenv("TMPDIR", t.TempDir())
	for _, c := range []struct{ name, end string }{
		{"cut", ""}, {"closed badly", "}"}, {"data after it", "]} x"}, {"other version", `],"x":1,"version":2}`},
	} {
		puts, skips, marks, err := collect(t, NewReader(&http.Client{Transport: answers{"/list": plainText(good.String() + c.end)}}, base, nil))
		if err == nil || len(puts)+len(skips)+marks > 0 {
			t.Errorf("%s: %d puts, %d skips, %d marks, %v", c.name, len(puts), len(skips), marks, err)
		}
	}
	puts, _, marks, err := collect(t, NewReader(&http.Client{Transport: answers{"/list": plainText(good.String() + listTail)}}, base, nil))
	if err != nil || len(puts) != 20_000 || marks != 1 {
		t.Errorf("whole: %d puts, %d marks, %v", len(puts), marks, err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestBadCursorAndEndpoint(t *testing.T) {
	client := &http.Client{Transport: answers{"/list": plainText(listHead + listTail)}}
	for _, bad := range []millrace.Cursor{
		"x", "{}", `{"root":"https://other.example/","found":"2026-01-01T00:00:00Z","lists":[{"url":"https://other.example/l"}]}`,
	} {
		for _, err := range NewReader(client, base, nil).Changes(t.Context(), bad) {
			if !errors.Is(err, millrace.ErrConflict) {
				t.Errorf("cursor %s: %v", bad, err)
			}
		}
	}
	for _, bad := range []string{"", "example.com", "ftp://example.com/", "https://", "https://user:pass@example.com/"} {
		src := NewReader(client, bad, nil)
		if _, _, _, err := collect(t, src); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("endpoint %q: %v", bad, err)
		}
		if _, err := src.Page(t.Context(), millrace.Ref{URL: base}); !errors.Is(err, millrace.ErrInvalid) {
			t.Errorf("endpoint %q: %v", bad, err)
		}
	}
}

func TestTooManyLists(t *testing.T) {
	var links []string
	for i := range maxLists + 1 {
		links = append(links, fmt.Sprintf(`</%d>; rel=index; type=application/json`, i))
	}
	transport := transportFunc(func(r *http.Request) (*http.Response, error) {
		h := http.Header{"Link": {strings.Join(links, ", ")}}
		return &http.Response{StatusCode: 200, Header: h, Body: http.NoBody, Request: r}, nil
	})
	if _, _, _, err := collect(t, NewReader(&http.Client{Transport: transport}, base, nil)); !errors.Is(err, millrace.ErrTooLarge) {
		t.Error(err)
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRecent(t *testing.T) {
	var r recent
	for i := range 3 * recentItems {
		r.add(fmt.Sprint(i), fmt.Sprint("v", i))
	}
	if len(r.etag) > recentItems || len(r.ring) != recentItems {
		t.Errorf("%d are remembered", len(r.etag))
	}
	last := 3*recentItems - 1
	if v, ok := r.get(fmt.Sprint(last)); !ok || v != fmt.Sprint("v", last) {
		t.Errorf("the last is %q", v)
	}
	if _, ok := r.get("0"); ok {
		t.Error("the first is still there")
	}
}

func TestSamePage(t *testing.T) {
	urls := []string{"https://e.com/a", "http://e.com/a", "https://e.com/a/", "https://e.com/a?x", "https://e.com/b", "https://f.com/a"}
	want := []int{exact, near, near, different, different, different}
	var got []int
	for _, u := range urls {
		got = append(got, samePage(urls[0], u))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
