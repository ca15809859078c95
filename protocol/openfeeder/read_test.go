package openfeeder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// stranger is a site of another implementation. It maps paths with queries, or paths alone, to
// responses, and records the requests.
type stranger struct {
	answers map[string]string // a body, or "STATUS body", or "-> URL"
	header  map[string]http.Header
	asked   []string
}

const strange = "https://strange.example"

func (s *stranger) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	target := strings.TrimPrefix(r.URL.String(), strange)
	s.asked = append(s.asked, target)
	text, ok := s.answers[target]
	if !ok {
		text, ok = s.answers[r.URL.Path]
	}
	rec := httptest.NewRecorder()
	rec.Header().Set("Content-Type", mediaType)
	for k, v := range s.header[r.URL.Path] {
		rec.Header()[k] = v
	}
	code := http.StatusOK
	if !ok {
		code = http.StatusNotFound
	}
	if word, rest, _ := strings.Cut(text, " "); len(word) == 3 {
		if n, err := strconv.Atoi(word); err == nil && n >= 200 {
			code, text = n, rest
		}
	}
	if to, moved := strings.CutPrefix(text, "-> "); moved {
		rec.Header().Set("Location", to)
		code, text = http.StatusFound, ""
	}
	if etag := rec.Header().Get("ETag"); etag != "" && r.Header.Get("If-None-Match") == etag {
		code, text = http.StatusNotModified, ""
	}
	rec.WriteHeader(code)
	_, _ = io.WriteString(rec, text)
	resp := rec.Result()
	resp.Request = r
	return resp, nil
}

func discoveryOf(feed string) string {
	return `{"version":"1.0","site":{"name":"S","url":"` + strange + `/","language":"en"},"feed":` + feed + `,"capabilities":[],"contact":null}`
}

const usual = `{"endpoint":"/openfeeder","type":"paginated"}`

// list returns page number of an index with these URLs.
func list(number, total int, urls ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"schema":"openfeeder/1.0","type":"index","page":%d,"total_pages":%d,"items":[`, number, total)
	for i, u := range urls {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"url":%q,"title":"T","published":null,"summary":""}`, u)
	}
	return b.String() + "]}"
}

func pageURL(number int) string { return fmt.Sprintf("/openfeeder?limit=50&page=%d", number) }

// readStream reads a stream. It returns the changes in short form, and the final cursor.
func readStream(t *testing.T, src millrace.Source, since millrace.Cursor) (events []string, cursor millrace.Cursor, err error) {
	t.Helper()
	for c, err := range src.Changes(t.Context(), since) {
		switch {
		case err != nil:
			if skip, ok := errors.AsType[*millrace.SkipError](err); ok {
				events = append(events, "skip "+skip.URL)
				continue
			}
			return events, cursor, err
		case c.Kind == millrace.Put:
			events = append(events, "+"+strings.TrimPrefix(c.URL, strange))
		case c.Kind == millrace.Delete:
			events = append(events, "-"+strings.TrimPrefix(c.URL, strange))
		case c.Checkpoint.Complete:
			events, cursor = append(events, "whole"), c.Checkpoint.Cursor
		default:
			events, cursor = append(events, "mark"), c.Checkpoint.Cursor
		}
	}
	return events, cursor, nil
}

func (s *stranger) reader(o *ReaderOptions) millrace.Source {
	return NewReader(&http.Client{Transport: s}, strange+"/some/page", o)
}

func TestReadDiscovery(t *testing.T) {
	index := map[string]string{pageURL(1): list(1, 1, "/a"), "/feed": list(1, 1, "/f")}
	for _, tt := range []struct {
		name    string
		answers map[string]string
		header  http.Header // header of the root
		want    string      // changes, or the code of the error
	}{
		{"well-known", map[string]string{discovery: discoveryOf(usual)}, nil, "+/a whole"},
		{"a Link field to the document", map[string]string{"/d.json": discoveryOf(usual), "/": ""}, http.Header{"Link": {`</x>; rel=icon, </d.json>; rel="openfeeder"`}}, "+/a whole"},
		{"a Link field to the endpoint", map[string]string{"/": ""}, http.Header{"Link": {`</feed>; rel="alternate"; title="OpenFeeder"`}}, "+/f whole"},
		{"a link element", map[string]string{"/d.json": discoveryOf(usual), "/": `<link rel=openfeeder href=d.json>`}, http.Header{"Content-Type": {"text/html"}}, "+/a whole"},
		{"a meta element", map[string]string{"/": `<base href="/"><meta name="openfeeder" content="feed"><body>`}, http.Header{"Content-Type": {"text/html"}}, "+/f whole"},
		{"a field alone", map[string]string{"/": ""}, http.Header{"X-Openfeeder": {"1.0"}}, "+/a whole"},
		{"a page in place of all", map[string]string{discovery: "<!doctype html>", "/": "<p>"}, http.Header{"Content-Type": {"text/html"}}, "error json-syntax https://strange.example/.well-known/openfeeder.json line 1, byte 0"},
		{"nothing", map[string]string{"/": "<p>"}, nil, "error not-found"},
		{"another version", map[string]string{discovery: strings.Replace(discoveryOf(usual), "1.0", "2.0", 1)}, nil, "error unknown-version"},
		{"over http", map[string]string{discovery: discoveryOf(`{"endpoint":"http://strange.example/openfeeder"}`)}, nil, "error openfeeder/2.1 https://strange.example/.well-known/openfeeder.json /feed/endpoint"},
		{"out of order", map[string]string{discovery: "500 x"}, nil, "error http-500"},
		{"closed", map[string]string{discovery: "403 " + string(failure{authRequired, "No."}.encode())}, nil, "error http-403"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &stranger{answers: map[string]string{}, header: map[string]http.Header{"/": tt.header}}
			for _, m := range []map[string]string{index, tt.answers} {
				for k, v := range m {
					s.answers[k] = v
				}
			}
			events, _, err := readStream(t, s.reader(nil), "")
			got := strings.Join(events, " ")
			if err != nil {
				got = "error " + protocoltest.ErrorAt(err)
			}
			if got != tt.want {
				t.Errorf("%s, want %s: %v", got, tt.want, err)
			}
		})
	}
}

// A feed whose site.url has another origin loses no page. Relative items and those on that
// origin are pages of the origin where the feed was found. Pages of other sites are skipped.
func TestReadOtherName(t *testing.T) {
	const day = "2026-01-01T00:00:00Z"
	for _, other := range []string{"https://www.strange.example", "http://strange.example", "http://strange.example:8080", "https://cdn.example"} {
		t.Run(other, func(t *testing.T) {
			about := strings.Replace(discoveryOf(`{"endpoint":"/openfeeder","type":"paginated"}`), strange, other, 1)
			if strings.HasPrefix(other, "http:") {
				about = strings.Replace(about, `"/openfeeder"`, `"`+other+`/openfeeder"`, 1)
			}
			s := &stranger{answers: map[string]string{
				discovery: about, "/openfeeder": list(1, 1, "/a", other+"/b", strange+"/c", "https://bank.example/d"),
				"/openfeeder?url=%2Fb&limit=50": chunked(other+"/b", day, 1, 0, 1),
			}}
			var notes []string
			r := s.reader(&ReaderOptions{ReaderOptions: protocol.ReaderOptions{Note: func(n protocol.Note) { notes = append(notes, n.Rule) }}})
			events, _, err := readStream(t, r, "")
			if got := strings.Join(events, " "); err != nil || got != "+/a +/b +/c skip https://bank.example/d whole" {
				t.Errorf("%s, %v", got, err)
			}
			if !slices.Contains(notes, Name+"/2.1/site-origin") {
				t.Errorf("noted %q", notes)
			}
			if p, err := r.Page(t.Context(), millrace.Ref{URL: strange + "/b"}); err != nil || p.URL != strange+"/b" {
				t.Errorf("Page: %+v, %v", p, err)
			}
			found := map[string]int{}
			for _, f := range examined(t, s).Findings {
				found[f.Rule]++
			}
			if found[Name+"/2.1/site-origin"] != 1 || found[Name+"/3.3/item-url"] != 1 || found[Name+"/3/endpoint"] != 0 {
				t.Errorf("check found %v", found)
			}
		})
	}
}

// Valid and invalid indexes of other sites.
func TestReadIndex(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers map[string]string
		want    string
		notes   string
	}{
		{"pages", map[string]string{pageURL(1): list(1, 2, "/a", "/b"), pageURL(2): list(2, 2, "/c")}, "+/a +/b +/c whole", ""},
		{"a host that looks at no parameters", map[string]string{"/openfeeder": list(1, 3, "/a", "/b")}, "+/a +/b mark", "3.1/page"},
		{"the same without a number", map[string]string{"/openfeeder": list(0, 3, "/a", "/b")}, "+/a +/b mark", "3.1/page"},
		{
			"other sites",
			map[string]string{"/openfeeder": list(1, 1, "/a", "https://other.example/x", "", "http://strange.example/b")},
			"+/a skip https://other.example/x skip  skip http://strange.example/b whole", "",
		},
		{"a number without end", map[string]string{"/openfeeder": list(0, 1<<30)}, "whole", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &stranger{answers: map[string]string{discovery: discoveryOf(usual)}}
			for k, v := range tt.answers {
				s.answers[k] = v
			}
			var notes []string
			events, _, err := readStream(t, s.reader(&ReaderOptions{ReaderOptions: protocol.ReaderOptions{Note: func(n protocol.Note) {
				if n.Rule != Name+"/9/x-openfeeder" && n.Rule != Name+"/8/error-body" {
					notes = append(notes, strings.TrimPrefix(n.Rule, Name+"/"))
				}
			}}}), "")
			if got := strings.Join(events, " "); got != tt.want || err != nil || strings.Join(notes, " ") != tt.notes {
				t.Errorf("%s, %v, notes %v; want %s, %s", got, err, notes, tt.want, tt.notes)
			}
		})
	}
}

func reply(token, rest string) string {
	return `{"openfeeder_version":"1.0","sync":{"as_of":"2026-01-01T00:00:00Z","sync_token":"` + token + `"` + rest + `}`
}

// If a site has never sent a tombstone, its index is compared regularly. After the first
// tombstone, it is not.
func TestReadCompare(t *testing.T) {
	s := &stranger{answers: map[string]string{
		discovery: discoveryOf(usual), pageURL(1): list(1, 1, "/a", "/b"),
		"/openfeeder": reply("one", `},"added":[],"updated":[{"url":"/a","title":"A"}],"deleted":[]`),
	}}
	src := s.reader(&ReaderOptions{Compare: 2})
	var got []string
	cursor := millrace.Cursor("")
	for i := range 7 {
		if i == 5 {
			s.answers["/openfeeder"] = reply("two", `},"added":[],"updated":[],"deleted":[{"url":"`+strange+`/b","deleted_at":"2026-01-01T00:00:00Z"}]`)
		}
		events, c, err := readStream(t, src, cursor)
		if err != nil {
			t.Fatal(err)
		}
		cursor = c
		got = append(got, strings.Join(events, " "))
	}
	want := []string{"+/a +/b +/a whole", "+/a mark", "+/a mark", "+/a +/b +/a whole", "+/a mark", "-/b mark", "-/b mark"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// After a 410, the index is read again.
	s.answers["/openfeeder?since=two"] = "410 " + string(failure{resyncRequired, "Too old."}.encode())
	s.answers["/openfeeder"] = "400 x"
	if again, _, err := readStream(t, src, cursor); err != nil || strings.Join(again, " ") != "+/a +/b whole" {
		t.Errorf("%v, %v", again, err)
	}
}

// If an index has a token, but its replies say that they lack deletions, the index is compared
// regularly.
func TestReadUntracked(t *testing.T) {
	s := &stranger{answers: map[string]string{
		discovery: discoveryOf(usual), pageURL(1): strings.Replace(list(1, 1, "/a", "/b"), `"items"`, `"sync_token":"one","items"`, 1),
		"/openfeeder": reply("one", `,"deleted_tracking":false},"added":[],"updated":[],"deleted":[]`),
	}}
	src := s.reader(&ReaderOptions{Compare: 1})
	var got []string
	cursor := millrace.Cursor("")
	for range 3 {
		events, c, err := readStream(t, src, cursor)
		if err != nil {
			t.Fatal(err)
		}
		cursor = c
		got = append(got, strings.Join(events, " "))
	}
	if diff := cmp.Diff([]string{"+/a +/b whole", "mark", "+/a +/b whole"}, got); diff != "" {
		t.Error(diff)
	}
}

// A server with as many tombstones as the specification recommends to keep may have dropped
// others. The index shows those deletions.
func TestReadFullTombstones(t *testing.T) {
	reader := func(n int) string {
		s := &stranger{answers: map[string]string{
			discovery: discoveryOf(usual), pageURL(1): list(1, 1, "/a", "/lost"),
			"/openfeeder": reply("one", `},"added":[],"updated":[],"deleted":[{"url":"`+strange+`/gone","deleted_at":"2026-01-01T00:00:00Z"}]`),
		}}
		src := s.reader(nil)
		_, cursor, err := readStream(t, src, "")
		if err != nil {
			t.Fatal(err)
		}
		var dead []string
		for i := range n {
			dead = append(dead, fmt.Sprintf(`{"url":"%s/%d","deleted_at":"2026-01-02T00:00:00Z"}`, strange, i))
		}
		s.answers[pageURL(1)] = list(1, 1, "/a")
		s.answers["/openfeeder?since=one"] = reply("two", `},"added":[],"updated":[],"deleted":[`+strings.Join(dead, ",")+`]`)
		s.answers["/openfeeder"] = reply("two", `},"added":[],"updated":[],"deleted":[]`)
		events, cursor, err := readStream(t, src, cursor)
		if err != nil || len(events) < n || events[n-1] != fmt.Sprintf("-/%d", n-1) {
			t.Fatalf("%q %v", events, err)
		}
		if later, _, err := readStream(t, src, cursor); err != nil || strings.Join(later, " ") != "mark" {
			t.Errorf("later: %q %v", later, err)
		}
		return strings.Join(events[n:], " ")
	}
	if got := reader(recommendedTombstones - 1); got != "mark" {
		t.Errorf("one less: %q", got)
	}
	if got := reader(recommendedTombstones); got != "+/a whole" {
		t.Errorf("as many: %q", got)
	}
}

// A static feed is read through its own links, and not again while its files are unchanged.
func TestReadStatic(t *testing.T) {
	s := &stranger{
		answers: map[string]string{
			discovery:       discoveryOf(`{"endpoint":"/f/index.json","type":"static"}`),
			"/f/1.json":     `{"schema":"openfeeder/1.0","url":"/a","title":"A","language":"en","chunks":[{"id":"1","text":"Hello.","type":"paragraph"}],"meta":{"total_chunks":1,"returned_chunks":1}}`,
			"/f/2":          `{"schema":"openfeeder/1.0","page":2,"total_pages":2,"items":[{"url":"/b","document":"https://other.example/2.json"},{"url":"/c"}]}`,
			"/f/index.json": `{"schema":"openfeeder/1.0","page":1,"total_pages":2,"next":"2","items":[{"url":"/a","document":"1.json","revision":"r1"}]}`,
		},
		header: map[string]http.Header{"/f/index.json": {"Etag": {`"i"`}}, "/f/2": {"Etag": {`"j"`}}},
	}
	src := s.reader(nil)
	events, cursor, err := readStream(t, src, "")
	if got := strings.Join(events, " "); err != nil || got != "+/a skip "+strange+"/b +/c whole" {
		t.Errorf("%s, %v", got, err)
	}
	p, err := src.Page(t.Context(), millrace.Ref{URL: "/a"})
	if err != nil || p.Text() != "Hello." || p.URL != strange+"/a" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := src.Page(t.Context(), millrace.Ref{URL: "/c"}); !errors.Is(err, millrace.ErrNotFound) {
		t.Errorf("a page without a file: %v", err)
	}
	if again, _, err := readStream(t, src, cursor); err != nil || strings.Join(again, " ") != "mark" {
		t.Errorf("without changes: %v, %v", again, err)
	}
	s.answers["/f/2"] = `{"schema":"openfeeder/1.0","items":[],"next":"index.json"}`
	s.header["/f/2"] = nil
	if _, _, err := readStream(t, src, cursor); !errors.Is(err, millrace.ErrInvalid) {
		t.Errorf("an index that links to itself: %v", err)
	}
}

// If a host returns its index for every page, the reader stops requesting pages.
func TestReadFlat(t *testing.T) {
	s := &stranger{answers: map[string]string{discovery: discoveryOf(usual), "/openfeeder": list(1, 1, "/a", "/b")}}
	src := s.reader(nil)
	for range 8 {
		if _, err := src.Page(t.Context(), millrace.Ref{URL: "/a"}); millrace.ErrorCode(err) != "query-ignored" || !errors.Is(err, millrace.ErrInvalid) {
			t.Fatal(err)
		}
	}
	if len(s.asked) != 1+ignoredAfter {
		t.Errorf("requested %q", s.asked)
	}
	for body, want := range map[string]string{list(1, 1, "/a"): "query-ignored", "{}": "not-found", "[": "not-found"} { // body of the reply
		if code := millrace.ErrorCode(ignoredQuery(millrace.ErrNotFound, []byte(body), "u")); code != want {
			t.Errorf("%s: %s, want %s", body, code, want)
		}
	}
	s.asked = nil
	s.answers["/openfeeder?url=%2Fb&limit=50"] = chunked("/b", "2026-01-01T00:00:00Z", 1, 0, 1)
	src = s.reader(nil)
	for _, u := range []string{"/a", "/a", "/b", "/a", "/a", "/b"} {
		if _, err := src.Page(t.Context(), millrace.Ref{URL: u}); (err == nil) != (u == "/b") {
			t.Fatalf("%s: %v", u, err)
		}
	}
}

func chunked(u, updated string, total, from, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"schema":"openfeeder/1.0","url":%q,"title":"A","updated":%q,"language":"en","chunks":[`, u, updated)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"%d","text":"Text %d.","type":"paragraph"}`, from+i, from+i)
	}
	fmt.Fprintf(&b, `],"meta":{"total_chunks":%d,"returned_chunks":%d}}`, total, n)
	return b.String()
}

func TestReadPage(t *testing.T) {
	const day1, day2 = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
	part := func(n int) string {
		if n == 1 {
			return "/openfeeder?url=%2Fa&limit=50"
		}
		return fmt.Sprintf("/openfeeder?url=%%2Fa&limit=50&page=%d", n)
	}
	for _, tt := range []struct {
		name    string
		answers map[string]string
		texts   int // number of blocks of the page
		want    string
	}{
		{"one part", map[string]string{part(1): chunked("/a", day1, 2, 0, 2)}, 2, ""},
		{"three parts", map[string]string{part(1): chunked("/a", day1, 5, 0, 2), part(2): chunked("/a", day1, 5, 2, 2), part(3): chunked("/a", day1, 5, 4, 1)}, 5, ""},
		{"a server without parts", map[string]string{"/openfeeder": chunked("/a", day1, 5, 0, 2)}, 2, ""},
		{"parts of two states", map[string]string{part(1): chunked("/a", day1, 4, 0, 2), part(2): chunked("/a", day2, 4, 2, 2)}, 0, "unavailable"},
		{"with a slash", map[string]string{part(1): chunked("/a/", day1, 1, 0, 1)}, 1, ""},
		{"another page", map[string]string{part(1): chunked("/b", day1, 1, 0, 1)}, 0, "openfeeder/3.2 https://strange.example/a"},
		{"another site", map[string]string{part(1): chunked("https://other.example/a", day1, 1, 0, 1)}, 0, "openfeeder/3.2 https://strange.example/a"},
		{"an index", map[string]string{"/openfeeder": list(1, 1, "/a")}, 0, "query-ignored https://strange.example/openfeeder?url=%2Fa&limit=50"},
		{"gone", map[string]string{part(1): "404 " + string(failure{notFound, "No such page."}.encode())}, 0, "http-404"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &stranger{answers: tt.answers}
			s.answers[discovery] = discoveryOf(usual)
			p, err := s.reader(nil).Page(t.Context(), millrace.Ref{URL: "/a"})
			if tt.want != "" {
				if got := protocoltest.ErrorAt(err); got != tt.want {
					t.Errorf("%s, want %s: %v", got, tt.want, err)
				}
				return
			}
			if err != nil || len(p.Blocks) != tt.texts || p.Version != day1 {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

// The key is sent only to the site's own origin, whatever the feed contains.
func TestReadKey(t *testing.T) {
	var seen []string
	s := &stranger{answers: map[string]string{
		discovery: discoveryOf(`{"endpoint":"https://other.example/openfeeder"}`), "/openfeeder": list(1, 1, "/a"),
	}}
	spy := protocoltest.Transport(func(r *http.Request) (*http.Response, error) {
		seen = append(seen, r.URL.Host+" "+r.Header.Get("Authorization"))
		return s.RoundTrip(r)
	})
	o := &ReaderOptions{ReaderOptions: protocol.ReaderOptions{Key: func(origin string) string {
		return map[string]string{strange: "k"}[origin]
	}}}
	if _, _, err := readStream(t, NewReader(&http.Client{Transport: spy}, strange, o), ""); err != nil {
		t.Fatal(err)
	}
	slices.Sort(seen)
	if got := strings.Join(slices.Compact(seen), ", "); got != "other.example , strange.example Bearer k" {
		t.Error(got)
	}
}

// For any responses of a site, the reader ends and yields no page of another site.
func FuzzRead(f *testing.F) {
	for _, s := range []string{
		discoveryOf(usual), list(1, 2, "/a"), chunked("/a", "2026-01-01T00:00:00Z", 3, 0, 1),
		reply("x", `},"added":[],"updated":[],"deleted":[{"url":"/a"}]`), reply("x", `,"next":"?since=y"},"added":[]`), "", "[]", "null",
	} {
		f.Add(discoveryOf(usual), s, s)
	}
	f.Fuzz(func(t *testing.T, about, index, sync string) {
		s := &stranger{answers: map[string]string{discovery: about, pageURL(1): index, "/openfeeder": sync, "/": ""}}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		calm := protocoltest.Transport(func(r *http.Request) (*http.Response, error) {
			if len(s.asked) > 50 {
				stop() // the site may make the reader continue for a long time
			}
			return s.RoundTrip(r)
		})
		src := NewReader(&http.Client{Transport: calm}, strange, nil)
		for c, err := range src.Changes(ctx, "") {
			if err == nil && c.Kind != millrace.KindCheckpoint && !strings.HasPrefix(c.URL, strange+"/") {
				t.Errorf("%+v", c)
			}
		}
		if p, err := src.Page(ctx, millrace.Ref{URL: "/a"}); err == nil && !strings.HasPrefix(p.URL, strange+"/") {
			t.Errorf("%+v", p)
		}
	})
}

// Link targets of any root are http or https URLs.
func FuzzPointers(f *testing.F) {
	f.Add(`</d.json>; rel="openfeeder", <x>; rel=a`, `<link rel=openfeeder href=x><meta name=openfeeder content=y>`)
	f.Add(`<a>;rel="x\"`, `<base href="//b"><link title=OpenFeeder rel=alternate href="%zz">`)
	f.Fuzz(func(t *testing.T, field, html string) {
		head := http.Header{"Link": {field}, "Content-Type": {"text/html"}}
		found := targets(kit.HeadOf(&check.Response{URL: strange + "/a", Header: head, Body: []byte(html)}))
		for _, u := range found {
			if !strings.HasPrefix(u, "http://") && !strings.HasPrefix(u, "https://") {
				t.Errorf("%q", u)
			}
		}
	})
}
