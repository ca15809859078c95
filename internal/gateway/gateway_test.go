package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	artifactmemory "github.com/millrace/millrace/artifact/memory"
	"github.com/millrace/millrace/internal/edition"
)

const htmlPage = "<!DOCTYPE html><html><head><meta charset=utf-8><title>T</title></head><body>x</body></html>"

func site() tree {
	return inMemory("index.html", htmlPage, "a/index.html", htmlPage, "b.html", htmlPage, "style.css", "body{}", "404.html", "<p>own 404", "own/llm.json", "{}",
		"other.html", htmlPage)
}

const alternate = `<https://x.test/a/llm.json>; rel="alternate"; type="application/json"`

func TestSurface(t *testing.T) {
	g := setup{files: site()}.gateway(t)
	for _, c := range []struct {
		method, target string
		status         int
		part           string // of the body
		link           string // in a Link field
	}{
		{"GET", "/healthz", 200, "ok", ""},
		{"GET", "/readyz", 200, "ready", ""},
		{"GET", "/", 200, `href="https://x.test/llm.json"/>`, `</llm-pages.json>; rel="index"; type="application/json"`},
		{"GET", "/a/", 200, `<link rel="alternate" type="application/json" href="https://x.test/a/llm.json"/>`, alternate},
		{"GET", "/a/?utm=1", 200, "/a/llm.json", alternate},
		{"GET", "/b.html", 200, "/b.html/llm.json", ""},
		{"GET", "/other.html", 200, htmlPage, ""},
		{"GET", "/a", 301, "", ""},
		{"GET", "/style.css", 200, "body{}", ""},
		{"GET", "/missing", 404, "<p>own 404", ""},
		{"GET", "/missing/llm.json", 404, `{"error":{"code":"NOT_FOUND"`, ""},
		{"GET", "/llm-pages.json", 200, `"/a/`, ""},
		{"GET", "/a/llm.json", 200, "All about A", `<https://x.test/a/>; rel="canonical"`},
		{"GET", "/own/llm.json", 200, "{}", ""},
		{"POST", "/a/llm.json", 405, "", ""},
		{"POST", "/a/", 405, "", ""},
		{"OPTIONS", "/a/llm.json", 204, "", ""},
		{"GET", "/../../etc/passwd", 404, "", ""},
		{"GET", "//evil.test/", 404, "", ""},
	} {
		w := ask(g, c.method, c.target)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.part) && c.part != `"/a/` {
			t.Errorf("%s %s: %d %q", c.method, c.target, w.Code, w.Body)
		}
		if c.link != "" && !slices.Contains(w.Header()["Link"], c.link) {
			t.Errorf("%s %s: Link %q, want %s", c.method, c.target, w.Header()["Link"], c.link)
		}
		if strings.HasSuffix(c.target, ".json") && w.Code == 200 && c.target != "/own/llm.json" && w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: no nosniff", c.target)
		}
	}
}

func TestReady(t *testing.T) {
	g := setup{files: site(), unready: true}.gateway(t)
	for target, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/": 200, "/a/llm.json": 503} {
		if w := ask(g, "GET", target); w.Code != want {
			t.Errorf("%s: %d, want %d", target, w.Code, want)
		}
	}
	for _, target := range []string{"/", "/llm-pages.json", "/a/llm.json"} {
		if w := ask(setup{unready: true}.gateway(t), "GET", target); w.Code != 503 {
			t.Errorf("mirror: %s: %d", target, w.Code)
		}
	}
}

// If the first edition is published while a request looks for its document without one, the
// request gets the document.
func TestReadyMeanwhile(t *testing.T) {
	v := new(oneView)
	g := setup{unready: true, site: v}.gateway(t)
	v.onHead = func() {
		v.onHead = nil
		if _, err := g.server.Publish(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if w := ask(g, "GET", "/a/llm.json"); w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
}

// If the first edition is published after the documents were searched, the response is not that
// the document does not exist.
func TestReadyAfterSearch(t *testing.T) {
	var g *Gateway
	files := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := g.server.Publish(t.Context()); err != nil {
			t.Error(err)
		}
		http.Error(w, "no file", http.StatusNotFound)
	})
	g = setup{unready: true, o: Options{Origin: files}}.gateway(t)
	for _, want := range []int{503, 200} {
		if w := ask(g, "GET", "/a/llm.json"); w.Code != want {
			t.Errorf("%d, want %d", w.Code, want)
		}
	}
}

// A document whose artifact is missing is unavailable until the artifact is built again. All
// other documents are served.
func TestMissingArtifact(t *testing.T) {
	artifacts := artifactmemory.New(nil)
	g := setup{files: site(), artifacts: artifacts}.gateway(t)
	for info, err := range artifacts.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if err := artifacts.Delete(t.Context(), info.Name); err != nil {
			t.Fatal(err)
		}
	}
	if w := ask(g, "GET", "/llm-pages.json"); w.Code != 503 || w.Header().Get("Retry-After") == "" || w.Header().Get("ETag") != "" {
		t.Errorf("the list: %d %v", w.Code, w.Header())
	}
	if w := ask(g, "GET", "/a/llm.json"); w.Code != 200 {
		t.Errorf("a page's document: %d", w.Code)
	}
	if w := ask(g, "GET", "/readyz"); w.Code != 200 || !strings.Contains(w.Body.String(), ": /llm-pages.json\n") {
		t.Errorf("ready: %d %s", w.Code, w.Body)
	}
	if _, err := g.server.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w := ask(g, "GET", "/llm-pages.json"); w.Code != 200 {
		t.Errorf("the list after rebuilding: %d", w.Code)
	}
	if w := ask(g, "GET", "/readyz"); w.Body.String() != "ready\n" {
		t.Errorf("ready: %s", w.Body)
	}
}

// A page of a folder is prepared with its links: it has a strong validator, a length and
// ranges. HEAD returns the same fields as GET.
func TestPagesWithLinks(t *testing.T) {
	g := setup{files: site()}.gateway(t)
	get := ask(g, "GET", "/a/")
	h := get.Header()
	etag := h.Get("ETag")
	if !strings.HasPrefix(etag, `"`) || h.Get("Content-Length") != fmt.Sprint(get.Body.Len()) || h.Get("Accept-Ranges") != "bytes" || h["Access-Control-Allow-Origin"] != nil {
		t.Errorf("%v", h)
	}
	head := ask(g, "HEAD", "/a/")
	expected := head.Header().Clone()
	expected["Content-Digest"] = expected["Repr-Digest"]
	delete(expected, "Repr-Digest")
	if diff := cmp.Diff(h, expected); diff != "" || head.Body.Len() > 0 || head.Code != 200 {
		t.Errorf("HEAD differs: %s", diff)
	}
	not := ask(g, "GET", "/a/", "If-None-Match", `"other", `+etag)
	if not.Code != 304 || not.Header().Get("ETag") != etag || !slices.Contains(not.Header()["Link"], alternate) || not.Body.Len() > 0 {
		t.Errorf("304: %d %v", not.Code, not.Header())
	}
	if w := ask(g, "GET", "/a/", "If-None-Match", "*"); w.Code != 304 {
		t.Errorf("star: %d", w.Code)
	}
	before, _, _ := strings.Cut(etag, "~")
	for _, tag := range []string{before + `"`, "W/" + before + `"`, before + `~old"`, `"x"`} {
		if w := ask(g, "GET", "/a/", "If-None-Match", tag, "If-Modified-Since", past.Format(http.TimeFormat)); w.Code != 200 {
			t.Errorf("%s: %d: the validator of a page with other links matched", tag, w.Code)
		}
	}
	for _, c := range []struct {
		fields []string
		status int
		body   string
	}{
		{[]string{"Range", "bytes=0-3"}, 206, get.Body.String()[:4]},
		{[]string{"Range", "bytes=-4", "If-Range", etag}, 206, get.Body.String()[get.Body.Len()-4:]},
		{[]string{"Range", "bytes=0-3", "If-Range", before + `"`}, 200, get.Body.String()},
		{[]string{"Range", "bytes=9999-"}, 416, ""},
	} {
		w := ask(g, "GET", "/a/", c.fields...)
		if w.Code != c.status || c.status != 416 && w.Body.String() != c.body {
			t.Errorf("%v: %d %q", c.fields, w.Code, w.Body)
		}
	}
	plainPage := ask(g, "GET", "/other.html")
	if h := plainPage.Header(); strings.HasPrefix(h.Get("ETag"), "W/") || h.Get("Accept-Ranges") != "bytes" || h.Get("Content-Length") == "" {
		t.Errorf("a page without links: %v", h)
	}
	if w := ask(g, "GET", "/other.html", "Range", "bytes=0-3"); w.Code != 206 || w.Body.String() != htmlPage[:4] {
		t.Errorf("range of a page without links: %d %q", w.Code, w.Body)
	}
	css := ask(g, "GET", "/style.css")
	if w := ask(g, "GET", "/style.css", "If-None-Match", css.Header().Get("ETag")); w.Code != 304 || w.Header()["Link"] != nil {
		t.Errorf("css: %d %v", w.Code, w.Header())
	}
}

func TestCharacterSets(t *testing.T) {
	utf16 := "\xff\xfe<\x00p\x00>\x00x\x00"
	f := inMemory("index.html", htmlPage, "a/index.html", utf16, "b.html", "<title>caf\xe9</title><p>x", "c.html", "<p>caf\u00e9", "d.html", strings.Repeat("\u00e9", 1000))
	g := setup{files: f, pages: []*millrace.Page{page("/a/", "A"), page("/b.html", "B")}}.gateway(t)
	if w := ask(g, "GET", "/a/"); w.Body.String() != utf16 || w.Header()["Link"] == nil || w.Header().Get("Content-Type") != "text/html" {
		t.Errorf("UTF-16: %q %v", w.Body, w.Header())
	}
	if w := ask(g, "GET", "/b.html"); !strings.HasPrefix(w.Body.String(), "<title>caf\xe9</title><link ") || w.Header().Get("Content-Type") != "text/html" {
		t.Errorf("latin-1: %q %v", w.Body, w.Header())
	}
	for _, target := range []string{"/c.html", "/d.html"} {
		if got := ask(g, "GET", target).Header().Get("Content-Type"); got != "text/html; charset=utf-8" {
			t.Errorf("%s: UTF-8 without a declaration: %s", target, got)
		}
	}
}

// The response that "/" finally redirects to has the site's links.
func TestRootRedirects(t *testing.T) {
	origin := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			http.Redirect(w, r, "/en/", http.StatusFound)
		case "/en/":
			http.Redirect(w, r, "index", http.StatusSeeOther)
		default:
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, htmlPage)
		}
	})
	g := setup{o: Options{Origin: origin}}.gateway(t)
	for target, want := range map[string]bool{"/": false, "/en/": false, "/en/index": true, "/other": false} {
		w := ask(g, "GET", target)
		if got := strings.Contains(strings.Join(w.Header()["Link"], ","), "llm-pages.json"); got != want {
			t.Errorf("%s: %t, want %t: %v", target, got, want, w.Header())
		}
	}
	loop := setup{o: Options{Origin: http.RedirectHandler("/", http.StatusFound)}}.gateway(t)
	if w := ask(loop, "GET", "/"); w.Code != 302 {
		t.Errorf("loop: %d", w.Code)
	}
}

// feeder advertises a document by its absolute URL.
type feeder struct{ lister }

func (feeder) Advertise(v millrace.View) millrace.Advertisement {
	return millrace.Advertisement{Root: []millrace.Link{{URL: strings.TrimSuffix(v.Site().EndpointBase, "/") + "/feed.atom", Rel: "alternate"}}}
}

func TestWelcome(t *testing.T) {
	for name, s := range map[string]setup{"mirror": {}, "folder without a home page": {files: inMemory("b.html", htmlPage)}} {
		s.protocols = []edition.Protocol{{Name: "feeder", Publisher: feeder{}}}
		g := s.gateway(t)
		w := ask(g, "GET", "/")
		for _, part := range []string{"<h1>Home</h1>", `href="/llm-pages.json"`, "3 pages", `<a href="/feed.atom">/feed.atom</a>`} {
			if w.Code != 200 || !strings.Contains(w.Body.String(), part) {
				t.Errorf("%s: %d without %s: %s", name, w.Code, part, w.Body)
			}
		}
		if !strings.Contains(strings.Join(w.Header()["Link"], ","), `</llm-pages.json>; rel="index"`) {
			t.Errorf("%s: %v", name, w.Header())
		}
		if not := ask(g, "GET", "/", "If-None-Match", w.Header().Get("ETag")); not.Code != 304 {
			t.Errorf("%s: %d", name, not.Code)
		}
		if w := ask(g, "GET", "/a/"); w.Code != 404 {
			t.Errorf("%s: %d", name, w.Code)
		}
		if w := ask(g, "POST", "/"); w.Code != 405 {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
}

func TestBasesWithPaths(t *testing.T) {
	g := setup{base: "https://x.test/blog/", docs: "https://x.test/do%20cs/", files: site()}.gateway(t)
	for target, want := range map[string]int{
		"/do%20cs/a/llm.json": 200, "/do%20cs/llm-pages.json": 200, "/a/llm.json": 404, "/do%20csa/llm.json": 404, "/do%20cs": 404,
		"/blog/": 200, "/blog/a/": 200, "/a/": 404, "/blog": 301, "/healthz": 200, "/blog/healthz": 404, "/": 301, "/?x": 301,
	} {
		if w := ask(g, "GET", target); w.Code != want {
			t.Errorf("%s: %d, want %d", target, w.Code, want)
		}
	}
	if w := ask(g, "GET", "/blog/a"); w.Header().Get("Location") != "/blog/a/" {
		t.Errorf("redirect to %s", w.Header().Get("Location"))
	}
	// TCT draft-01, section 1.4.1: the lists are discovered from the root of the origin.
	if w := ask(g, "HEAD", "/"); w.Header().Get("Location") != "/blog/" {
		t.Errorf("the root links to %q", w.Header().Get("Location"))
	}
	if w := ask(g, "GET", "/blog/"); !strings.Contains(strings.Join(w.Header()["Link"], ","), "</do%20cs/llm-pages.json>") {
		t.Errorf("%v", w.Header())
	}
	if _, err := New(nil, &Options{Base: "http://[bad"}); !errors.Is(err, millrace.ErrInvalid) {
		t.Errorf("invalid base: %v", err)
	}
}

// rogue is a protocol whose documents misbehave.
type rogue struct{}

func (rogue) Find(_ context.Context, _ millrace.View, r *http.Request) (*millrace.Document, error) {
	d := &millrace.Document{Path: r.URL.Path, ETag: "x", Header: http.Header{}}
	switch r.URL.Path {
	case "/panic.json":
		panic("secret panic")
	case "/render.json":
		d.Write = func(context.Context, io.Writer) error { panic("secret panic") }
		return d, nil
	case "/error.json":
		return nil, errors.New("secret error")
	case "/invalid.json":
		return nil, fmt.Errorf("secret: %w", millrace.ErrInvalid)
	case "/forbidden.json":
		return nil, fmt.Errorf("secret: %w", millrace.ErrForbidden)
	case "/large.json":
		return nil, fmt.Errorf("secret: %w", millrace.ErrTooLarge)
	case "/wrong.json":
		return nil, fmt.Errorf("secret: %w", &millrace.RequestError{Status: http.StatusBadRequest})
	case "/busy.json":
		return nil, fmt.Errorf("secret: %w", millrace.ErrUnavailable)
	}
	return nil, millrace.ErrNotFound
}

func (rogue) All(context.Context, millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(func(*millrace.Document, error) bool) {}
}
func (rogue) Advertise(millrace.View) millrace.Advertisement { return millrace.Advertisement{} }

func TestFailures(t *testing.T) {
	var log bytes.Buffer
	g := setup{protocols: []edition.Protocol{{Name: "rogue", Publisher: rogue{}}}, log: &log}.gateway(t)
	for target, want := range map[string]int{
		"/panic.json": 500, "/render.json": 500, "/error.json": 500, "/invalid.json": 500, "/forbidden.json": 500, "/large.json": 500,
		"/wrong.json": 400, "/busy.json": 503,
	} {
		log.Reset()
		w := ask(g, "GET", target)
		var e struct {
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Error.Code == "" || w.Code != want {
			t.Errorf("%s: %d %s %v", target, w.Code, w.Body, err)
		}
		if strings.Contains(w.Body.String(), "secret") || strings.Contains(fmt.Sprint(w.Header()), "secret") {
			t.Errorf("%s: reveals internal details: %s", target, w.Body)
		}
		if logged := strings.Contains(log.String(), "secret"); logged != (want >= 500) {
			t.Errorf("%s: log %q", target, log.String())
		}
		if (w.Header().Get("Retry-After") != "") != (want == 503) {
			t.Errorf("%s: %v", target, w.Header())
		}
	}
	if w := ask(g, "GET", "/render.json", "If-None-Match", `"x"`); w.Code != 304 {
		t.Errorf("a 304 rendered: %d", w.Code)
	}
	half := setup{o: Options{Origin: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		panic("half")
	})}}.gateway(t)
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("a panic after the header: %v", err)
		}
	}()
	ask(half, "GET", "/x")
}

func TestRequestLog(t *testing.T) {
	var out bytes.Buffer
	g := setup{o: Options{RequestLog: &out}}.gateway(t)
	ask(g, "GET", "/a/llm.json?key=secret", "Authorization", "Bearer secret")
	ask(g, "GET", "/%22\"é")
	ask(g, "HEAD", "/a/llm.json")
	if out.Len() != 0 {
		t.Error("not buffered")
	}
	g.requests.flush()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 3 || strings.Contains(out.String(), "secret") {
		t.Fatalf("%q", out.String())
	}
	for i, form := range []string{`"GET /a/llm.json HTTP/1.1" 200 `, `"GET /%22\"\xc3\xa9 HTTP/1.1" 404 `, `"HEAD /a/llm.json HTTP/1.1" 200 0 0.`} {
		if !strings.HasPrefix(lines[i], "2001:db8:") || !strings.Contains(lines[i], form) {
			t.Errorf("%q, want %q", lines[i], form)
		}
	}
}
