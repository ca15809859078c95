package crawl

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// site is a website for tests that records its requests.
type site struct {
	*httptest.Server
	mu   sync.Mutex
	mux  map[string]http.HandlerFunc // by path and query, or path alone
	log  []string
	cond int // number of conditional requests
}

func newSite(t *testing.T) *site {
	s := &site{mux: map[string]http.HandlerFunc{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.log = append(s.log, r.URL.RequestURI())
	if r.Header.Get("If-None-Match")+r.Header.Get("If-Modified-Since") != "" {
		s.cond++
	}
	h := s.mux[r.URL.RequestURI()]
	if h == nil {
		h = s.mux[r.URL.Path]
	}
	if h == nil {
		for p, f := range s.mux {
			if rest, ok := strings.CutSuffix(p, "*"); ok && strings.HasPrefix(r.URL.Path, rest) {
				h = f
			}
		}
	}
	s.mu.Unlock()
	if h == nil {
		http.NotFound(w, r)
		return
	}
	h(w, r)
}

// set changes the response to an address; nil = 404.
func (s *site) set(path string, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mux[path] = h
}

// asked returns the addresses requested since the last call, sorted.
func (s *site) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log, s.cond = nil, 0
	slices.Sort(log)
	return log
}

// html returns a handler for a page with a title, a text, links and an ETag.
func html(title, text string, links ...string) http.HandlerFunc {
	return document(doc(title, text, links...))
}

func document(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		tag := `"` + hex(hash(fnvStart, body)) + `"`
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, body)
	}
}

func doc(title, text string, links ...string) string {
	return head(title, "", text, links...)
}

func head(title, inHead, text string, links ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<!DOCTYPE html><html lang=en><head><title>%s</title>%s</head><body><nav>", title, inHead)
	for _, l := range links {
		fmt.Fprintf(&b, "<a href=%q>%s</a> ", l, l)
	}
	fmt.Fprintf(&b, "</nav><main><h1>%s</h1><p>%s</p></main></body></html>", title, text)
	return b.String()
}

// words returns a text that is unique to a seed.
func words(seed string) string {
	var b strings.Builder
	h := hash(fnvStart, seed)
	for range 60 {
		h = mix(h + 1)
		fmt.Fprintf(&b, "w%x ", h%5000)
	}
	return seed + " says: " + b.String() + "."
}

// mill is a store that mirrors a site.
type mill struct {
	t     *testing.T
	url   string
	store *memory.Store
	site  store.Site
}

func newMill(t *testing.T, url string) *mill {
	t.Helper()
	m := &mill{t: t, url: url, store: memory.New(nil)}
	var err error
	if m.site, err = m.store.Site(t.Context(), url, url); err != nil {
		t.Fatal(err)
	}
	return m
}

func client() *http.Client {
	return fetch.New(&fetch.Options{AllowPrivate: true}).HTTP()
}

const from = "test crawl"

// open creates a crawl, as in a new process.
func (m *mill) open(o Options) *Crawl {
	m.t.Helper()
	o.KnownRefs = func(ctx context.Context, urls ...string) iter.Seq2[millrace.Ref, error] {
		return m.site.KnownRefs(ctx, from, urls...)
	}
	c, err := New(client(), m.url, &o)
	if err != nil {
		m.t.Fatal(err)
	}
	return c
}

// run mirrors the site once.
func (m *mill) run(c *Crawl) *mirror.Report {
	m.t.Helper()
	rep, err := m.try(c)
	if err != nil {
		m.t.Fatal(err)
	}
	return rep
}

func (m *mill) try(c *Crawl) (*mirror.Report, error) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), 20*time.Minute)
	defer cancel()
	return mirror.Sync(ctx, from, c, m.site, nil)
}

// pages returns the identities of the stored pages.
func (m *mill) pages() []string {
	m.t.Helper()
	v, err := m.site.Head(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	urls := []string{}
	for p, err := range store.Visible(v).Scan(m.t.Context(), millrace.Scan{}) {
		if err != nil {
			m.t.Fatal(err)
		}
		urls = append(urls, strings.TrimPrefix(p.URL, strings.TrimSuffix(m.url, "/")))
	}
	slices.Sort(urls)
	return urls
}

func (m *mill) seq() uint64 {
	m.t.Helper()
	v, err := m.site.Head(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	return v.Site().Seq
}

// reason returns the code of the reason why an address was skipped, or "" if the address was not
// skipped.
func reason(rep *mirror.Report, url string) string {
	for _, s := range rep.Skipped {
		if strings.HasSuffix(s.URL, url) {
			return s.Code
		}
	}
	return ""
}

func equal[T any](t *testing.T, what string, got, want []T) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func TestCrawl(t *testing.T) {
	s := newSite(t)
	s.set("/", html("Home", words("home"), "/a", "/b", "/missing", "/pic.jpg", "/doc.pdf", "http://elsewhere.invalid/", "/a?utm_source=x#y"))
	s.set("/a", html("A", words("a"), "/", "/c"))
	s.set("/b", html("B", words("b"), "/c"))
	s.set("/c", html("C", words("c")))
	s.set("/only-listed", html("L", words("l")))
	s.set("/sitemap.xml", document(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>`+s.URL+`/only-listed</loc></url></urlset>`))
	m := newMill(t, s.URL+"/")
	rep := m.run(m.open(Options{}))
	equal(t, "pages", m.pages(), []string{"/", "/a", "/b", "/c", "/only-listed"})
	if got := reason(rep, "/missing"); got != "http-404" {
		t.Errorf("the reason is %q", got)
	}
	if rep.SkippedN != 1 {
		t.Errorf("skipped: %v", rep.Skipped)
	}
	seq := m.seq()
	s.asked()
	want := []string{"/", "/a", "/b", "/c", "/only-listed", "/robots.txt", "/sitemap.xml"}
	for i, want := range [][]string{slices.Insert(slices.Clone(want), 4, "/missing"), want} {
		rep = m.run(m.open(Options{}))
		if m.seq() != seq {
			t.Errorf("run %d has written", i+2)
		}
		cond := s.cond
		equal(t, fmt.Sprintf("requests of run %d", i+2), s.asked(), want)
		if cond != 6 {
			t.Errorf("%d were conditional", cond)
		}
		if rep.Unchanged != 5 || rep.Added+rep.Updated+rep.Deleted != 0 {
			t.Errorf("%+v", rep)
		}
	}
	s.set("/a", html("A", words("a again"), "/", "/d"))
	s.set("/d", html("D", words("d")))
	s.set("/c", nil)
	m.run(m.open(Options{}))
	equal(t, "pages", m.pages(), []string{"/", "/a", "/b", "/d", "/only-listed"})
}

// through creates a crawl that uses the client cl.
func (m *mill) through(cl *http.Client, o Options) *Crawl {
	c := m.open(o)
	c.client, c.single = cl, fetch.NoRedirects(cl)
	return c
}

func TestComplete(t *testing.T) {
	broken := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "x", http.StatusInternalServerError) }
	for _, c := range []struct {
		name string
		site func(s *site)
		o    Options
		want bool
	}{
		{name: "all", want: true},
		{name: "a link to nowhere", site: func(s *site) { s.set("/p/3", nil) }, want: true},
		{name: "disallowed", site: func(s *site) { s.set("/robots.txt", text("User-agent: *\nDisallow: /p/3")) }, want: true},
		{name: "a page that is unavailable", site: func(s *site) { s.set("/p/3", broken) }},
		{name: "a sitemap that is unavailable", site: func(s *site) { s.set("/sitemap.xml", broken) }},
		{name: "cut off", o: Options{MaxPages: 10}},
		{name: "beyond the limit", o: Options{MaxPages: 3}},
		{name: "beyond the depth", o: Options{MaxDepth: 2}},
		{name: "no root", site: func(s *site) { s.set("/", nil) }},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			chain(s, 20)
			m := newMill(t, s.URL+"/")
			if m.open(Options{}).Complete() {
				t.Error("complete before the first run")
			}
			if c.site != nil {
				c.site(s)
			}
			for i := range 2 { // in the second run, the pages answer 304
				crawl := m.open(c.o)
				_, _ = m.try(crawl)
				if got := crawl.Complete(); got != c.want {
					t.Errorf("run %d: %v", i, got)
				}
			}
		})
	}
}
