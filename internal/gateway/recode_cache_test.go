package gateway

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/proxy"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/protocol/tct"
)

// inGzip returns a page compressed with gzip.
func inGzip(page string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, page)
	_ = z.Close()
	return b.Bytes()
}

// scripted is a site's server with one page, whose content is the current value of html.
type scripted struct {
	html    atomic.Pointer[string]
	mu      sync.Mutex
	header  http.Header // guarded by mu
	chunked bool        // no Content-Length is sent
}

// setHeader sets the header of later responses.
func (s *scripted) setHeader(h http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.header = h
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := []byte(*s.html.Load())
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	s.mu.Lock()
	header := s.header
	s.mu.Unlock()
	for name, values := range header {
		h[name] = values
	}
	if r.Header.Get("Accept-Encoding") == "gzip" {
		h.Set("Content-Encoding", "gzip")
		body = inGzip(string(body))
	}
	if !s.chunked {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	_, _ = w.Write(body)
	if s.chunked {
		_ = http.NewResponseController(w).Flush()
	}
}

const pageElement = `<link rel="alternate" type="application/json" href="https://x.test/a/llm.json"/>` + "\n"

// numbered returns version n of a page. All versions have the same length, compressed too.
func numbered(n int) string {
	return fmt.Sprintf("<html><head><title>%04d</title></head><body>%s</body></html>", n, strings.Repeat("<p>the page</p>", 500))
}

func linkedPage(html string) string {
	return strings.Replace(html, "</head>", pageElement+"</head>", 1)
}

// Clients get the current bytes of a page in both codings and with both methods, even if the
// site's server sends outdated validators.
func TestCachedPagesAreCurrent(t *testing.T) {
	for name, s := range map[string]*scripted{
		"truthful or not": {header: http.Header{"Etag": {`"always"`}}},
		"by date":         {header: http.Header{"Last-Modified": {"Fri, 02 Jan 2026 03:04:05 GMT"}}},
		"no validator":    {},
		"no length":       {header: http.Header{"Etag": {`"always"`}}, chunked: true},
		"nothing":         {chunked: true},
		"private":         {header: http.Header{"Cache-Control": {"private"}}},
	} {
		html := numbered(0)
		s.html.Store(&html)
		b := inFront(t, s, proxy.Options{}, setup{}, nil)
		rnd := rand.New(rand.NewPCG(1, 2))
		for range 60 {
			if rnd.IntN(3) == 0 {
				next := numbered(rnd.IntN(4)) // a request may still read the last one
				s.html.Store(&next)
				html = next
			}
			want := linkedPage(html)
			if rnd.IntN(2) == 0 {
				resp, got := send(t, "GET", b.url+"/a/", "", "Accept-Encoding", "gzip")
				if got = decodedIn(t, "gzip", []byte(got)); got != want || resp.Header.Get("Content-Encoding") != "gzip" || resp.Header.Get("Vary") != "Accept-Encoding" {
					t.Fatalf("%s: %v %.80q, want %.80q", name, resp.Header, got, want)
				}
				continue
			}
			resp, got := send(t, "GET", b.url+"/a/", "")
			if got != want || !s.chunked && resp.ContentLength != int64(len(want)) || resp.Header.Get("Content-Encoding") != "" {
				t.Fatalf("%s: %v %.80q, want %.80q", name, resp.Header, got, want)
			}
		}
	}
}

// Only pages that any client may get are cached, and only while they have the links.
func TestCachedPages(t *testing.T) {
	for _, c := range []struct {
		name    string
		header  http.Header
		request []string
		cached  bool
	}{
		{"a validator", http.Header{"Etag": {`"v1"`}}, nil, true},
		{"no validator", nil, nil, true},
		{"a cookie of the client", nil, []string{"Cookie", "a=b"}, true},
		{"Vary: Accept-Encoding", http.Header{"Vary": {"accept-encoding, Accept"}}, nil, true},
		{"Vary: Cookie", http.Header{"Vary": {"Accept-Encoding, Cookie"}}, nil, false},
		{"Vary: *", http.Header{"Vary": {"*"}}, nil, false},
		{"private", http.Header{"Cache-Control": {"max-age=60, Private"}}, nil, false},
		{"no-store", http.Header{"Cache-Control": {"no-cache", "no-store"}}, nil, false},
		{"Set-Cookie", http.Header{"Set-Cookie": {"a=b"}}, nil, false},
		{"Authorization", nil, []string{"Authorization", "Basic eDp5"}, false},
		{"no-transform", http.Header{"Cache-Control": {"no-transform"}}, nil, false},
	} {
		s := &scripted{header: c.header}
		html := numbered(1)
		s.html.Store(&html)
		b := inFront(t, s, proxy.Options{}, setup{}, nil)
		s.setHeader(http.Header{"Etag": {`"v"`}})
		resp, _ := send(t, "GET", b.url+"/a/", "", "Authorization", "x") // this response is not cached
		mark := strings.TrimSuffix(strings.TrimPrefix(resp.Header.Get("Etag"), `W/"v`), `"`)
		s.setHeader(c.header)
		for range 2 {
			if resp, got := send(t, "GET", b.url+"/a/", "", append(c.request, "Accept-Encoding", "gzip")...); resp.StatusCode != http.StatusOK || !strings.Contains(decodedIn(t, "gzip", []byte(got)), "<title>0001") {
				t.Errorf("%s: %v", c.name, resp.Header)
			}
		}
		host := strings.TrimPrefix(b.url, "http://")
		if _, body := b.g.server.CachedBody(host+"/a/", mark); (body != nil) != c.cached {
			t.Errorf("%s: %d bytes are cached, want %t", c.name, len(body), c.cached)
		}
		if counted := b.g.pages.RecodingBytes(); counted != 0 {
			t.Errorf("%s: %d bytes are still counted", c.name, counted)
		}
	}
}

// After a response that must not be cached, the page is requested without a coding while it
// gets elements. It is still compressed for the client.
func TestRecodeRequestsIdentity(t *testing.T) {
	private := http.Header{"Cache-Control": {"private"}, "Etag": {`"v1"`}}
	open := http.Header{"Etag": {`"v1"`}}
	cookie := http.Header{"Etag": {`"v1"`}, "Set-Cookie": {"a=b"}}
	fixed := http.Header{"Cache-Control": {"private, no-transform"}}
	plain := http.Header{"Cache-Control": {"private"}, "Content-Type": {"text/plain"}}
	for _, c := range []struct {
		name    string
		header  []http.Header // of successive responses
		asked   string        // Accept-Encoding of the requests
		ignores bool
		request []string
	}{
		{"private", []http.Header{private, private, private}, "gzip identity identity", false, nil},
		{"private, always gzip", []http.Header{private, private, private}, "gzip identity identity", true, nil},
		{"may be cached again", []http.Header{private, open, open, open}, "gzip identity gzip gzip", false, nil},
		{"only for some clients", []http.Header{open, open, cookie, open, cookie}, "gzip gzip gzip gzip gzip", false, nil},
		{"must not be transformed any more", []http.Header{private, fixed, fixed, fixed}, "gzip identity gzip gzip", false, nil},
		{"no longer HTML", []http.Header{private, plain, plain}, "gzip identity gzip", false, nil},
		{"may be cached", []http.Header{open, open}, "gzip gzip", false, nil},
		{"Authorization", []http.Header{private, private}, "gzip gzip", false, []string{"Authorization", "Basic eDp5"}},
		{"HEAD", []http.Header{private, private, private}, "gzip identity identity", false, []string{"X-Method", "HEAD"}},
		{"no gzip", []http.Header{private, private}, "identity identity", false, []string{"Accept-Encoding", "br"}},
	} {
		for _, chunked := range []bool{false, true} {
			s := &scripted{chunked: chunked}
			html := numbered(1)
			s.html.Store(&html)
			var asked string
			b := inFront(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/a/" { // not a request of the test
					http.NotFound(w, r)
					return
				}
				if asked = r.Header.Get("Accept-Encoding"); c.ignores {
					r.Header.Set("Accept-Encoding", "gzip")
				}
				s.ServeHTTP(w, r)
			}), proxy.Options{}, setup{}, nil)
			fields := c.request
			if !slices.Contains(fields, "Accept-Encoding") {
				fields = append([]string{"Accept-Encoding", "gzip"}, fields...)
			}
			method := "GET"
			if slices.Contains(fields, "HEAD") {
				method = "HEAD"
			}
			for i, want := range strings.Fields(c.asked) {
				s.setHeader(c.header[i])
				resp, got := send(t, method, b.url+"/a/", "", fields...)
				if asked != want {
					t.Errorf("%s, chunked %t, request %d: %s is requested, want %s", c.name, chunked, i, asked, want)
				}
				coding := resp.Header.Get("Content-Encoding")
				inserted := resp.Header.Get("Content-Type") != "text/plain" && !strings.Contains(resp.Header.Get("Cache-Control"), "no-transform")
				if inserted && (coding == "gzip") != slices.Contains(fields, "gzip") || inserted && coding == "gzip" && resp.Header.Get("Vary") != "Accept-Encoding" {
					t.Errorf("%s, chunked %t, request %d: %v", c.name, chunked, i, resp.Header)
				}
				if tag := c.header[i].Get("Etag"); inserted && tag != "" && !strings.HasPrefix(resp.Header.Get("Etag"), `W/"v1~`) {
					t.Errorf("%s, chunked %t, request %d: ETag %s", c.name, chunked, i, resp.Header.Get("Etag"))
				}
				if coding == "gzip" && method == "GET" {
					got = decodedIn(t, "gzip", []byte(got))
				}
				if page := linkedPage(html); method == "GET" && inserted && got != page || method == "HEAD" && got != "" {
					t.Errorf("%s, chunked %t, request %d: %.80q", c.name, chunked, i, got)
				}
			}
			if counted := b.g.pages.RecodingBytes(); counted != 0 {
				t.Errorf("%s: %d bytes are still counted", c.name, counted)
			}
		}
	}
}

func request(t *testing.T, path string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A page that breaks off or is too large is passed on as it arrives.
func TestIncompletePagesAreNotCached(t *testing.T) {
	big := "<html><head></head><body>" + strings.Repeat("x", 2<<20)
	b := inFront(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html")
		switch body := inGzip(numbered(1)); r.Header.Get("X-Case") {
		case "cut":
			h.Set("Content-Encoding", "gzip")
			h.Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = w.Write(body[:len(body)/2])
		case "damaged":
			body[len(body)/2] ^= 0xff
			h.Set("Content-Encoding", "gzip")
			h.Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = w.Write(body)
		case "truncated, not coded":
			h.Set("Content-Length", "1000")
			_, _ = io.WriteString(w, numbered(1)[:500])
		case "large":
			h.Set("Content-Length", strconv.Itoa(len(big)))
			_, _ = io.WriteString(w, big)
		case "bomb":
			body = inGzip("<html><head></head><body>" + strings.Repeat("x", 16<<20))
			h.Set("Content-Encoding", "gzip")
			h.Set("Content-Length", strconv.Itoa(len(body)))
			_, _ = w.Write(body)
		}
	}), proxy.Options{}, setup{}, nil)
	for name, want := range map[string]int{"cut": -1, "damaged": -1, "truncated, not coded": -1, "large": len(linkedPage(big)), "bomb": 16<<20 + len(linkedPage("<html><head></head><body>"))} {
		r := request(t, b.url+"/a/")
		r.Header.Set("X-Case", name)
		r.Header.Set("Accept-Encoding", "gzip")
		var n int
		resp, err := plainClient(t).Do(r)
		if err == nil {
			var body []byte
			body, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if n = len(body); resp.Header.Get("Content-Encoding") == "gzip" && err == nil {
				var z *gzip.Reader
				if z, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
					body, err = io.ReadAll(z)
					n = len(body)
				}
			}
		}
		if (err != nil) != (want < 0) || err == nil && n != want {
			t.Errorf("%s: %d bytes, %v, want %d", name, n, err, want)
		}
	}
	if counted := b.g.pages.RecodingBytes(); counted != 0 {
		t.Errorf("%d bytes are still counted", counted)
	}
}

// After a page is hidden, neither its documents nor its links in the HTML come from the cache.
func TestHiddenIsNotCached(t *testing.T) {
	s := &scripted{header: http.Header{"Etag": {`"v1"`}}}
	html := numbered(1)
	s.html.Store(&html)
	site := new(oneView)
	front := inFront(t, s, proxy.Options{}, setup{site: site}, nil)
	folderSite := new(oneView)
	folder := setup{site: folderSite, files: inMemory("index.html", htmlPage, "a/index.html", htmlPage)}.gateway(t)
	show := func(path string, fields ...string) string {
		_, a := send(t, "GET", front.url+path, "", fields...)
		if strings.HasPrefix(a, "\x1f\x8b") {
			a = decodedIn(t, "gzip", []byte(a))
		}
		return a + ask(folder, "GET", path, fields...).Body.String()
	}
	for range 3 {
		if got := show("/a/") + show("/a/", "Accept-Encoding", "gzip"); !strings.Contains(got, "/a/llm.json") {
			t.Fatalf("links are missing: %q", got)
		}
		if got := show("/a/llm.json"); strings.Count(got, "All about A") < 2 {
			t.Fatalf("document not found: %q", got)
		}
	}
	for g, v := range map[*Gateway]*oneView{front.g: site, folder: folderSite} {
		draft := tct.Draft01()
		v.mu.Lock()
		v.view = protocoltest.NewView(millrace.Site{Base: "https://x.test/", Epoch: "e", Seq: 2, Time: past}, []*millrace.Page{page("/", "Home")}, draft.Tagger)
		v.mu.Unlock()
		if _, err := g.server.Publish(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		for _, coding := range []string{"identity", "gzip"} {
			if got := show("/a/", "Accept-Encoding", coding); strings.Contains(got, "/a/llm.json") {
				t.Errorf("%s: a hidden page has links: %q", coding, got)
			}
			if got := show("/a/llm.json", "Accept-Encoding", coding); strings.Contains(got, "All about A") {
				t.Errorf("%s: the document of a hidden page: %q", coding, got)
			}
		}
	}
}
