package discover_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/discover"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// guarded returns a client for servers on loopback.
func guarded() *http.Client { return fetch.New(&fetch.Options{AllowPrivate: true, Delay: -1}).HTTP() }

// site is a site made of handlers. The first handler that has a document serves it. The site counts
// the requests.
type site struct {
	*httptest.Server
	mu       sync.Mutex
	asked    map[string]int // number of requests by method and path
	handlers []http.Handler
	silent   []string // paths without a response
}

func newSite(t testing.TB, handlers ...http.Handler) *site {
	s := &site{asked: map[string]int{}, handlers: handlers}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked[r.Method+" "+r.URL.RequestURI()]++
	handlers := s.handlers
	s.mu.Unlock()
	if slices.Contains(s.silent, r.URL.Path) {
		<-r.Context().Done()
		return
	}
	answers := make([]*httptest.ResponseRecorder, 0, len(handlers))
	for _, h := range handlers {
		a := httptest.NewRecorder()
		h.ServeHTTP(a, r)
		if a.Code != http.StatusNotFound {
			answers = append(answers, a)
		}
	}
	if len(answers) == 0 {
		http.NotFound(w, r)
		return
	}
	// Each page has the links of all protocols.
	first := answers[0]
	for k, v := range first.Header() {
		w.Header()[k] = v
	}
	body := first.Body.String()
	for _, a := range answers[1:] {
		if r.URL.Path == "/" {
			w.Header()["Link"] = append(w.Header()["Link"], a.Header()["Link"]...)
			head, _, _ := strings.Cut(a.Body.String(), "</head>")
			_, head, _ = strings.Cut(head, "</title>")
			body = strings.Replace(body, "</head>", head+"</head>", 1)
		}
		if r.URL.Path == "/robots.txt" {
			body += a.Body.String()
		}
	}
	w.WriteHeader(first.Code)
	_, _ = w.Write([]byte(body))
}

// twice returns the requests that were sent more than once.
func (s *site) twice() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, n := range s.asked {
		if n > 1 {
			all = append(all, fmt.Sprintf("%s %d times", k, n))
		}
	}
	slices.Sort(all)
	return all
}

func (s *site) requests() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.asked {
		n += m
	}
	return n
}

// pages returns the n pages of a small site.
func pages(n int) (all []*millrace.Page) {
	for i := range n {
		u := fmt.Sprintf("/docs/page-%03d/", i)
		if i == 0 {
			u = "/"
		}
		text := strings.Repeat(fmt.Sprintf("Wheel %d turns in the race of the mill. ", i), 20)
		all = append(all, &millrace.Page{
			URL: u, Title: fmt.Sprintf("Page %d", i), Kind: millrace.Documentation, Language: "en", Summary: "A wheel turns.",
			Modified: time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC), Known: millrace.AllFields, Detail: millrace.DetailBlocks,
			Blocks: []millrace.Block{{Type: millrace.HeadingBlock, Level: 1, Text: "Page"}, {Type: millrace.TextBlock, Text: text}},
		})
	}
	return all
}

// publish serves n pages in the given protocols.
func publish(t testing.TB, n int, o protocol.PublisherOptions, protocols ...protocol.Protocol) *site {
	t.Helper()
	s := newSite(t)
	for _, proto := range protocols {
		o := o
		for _, r := range protocols {
			o.Protocols = append(o.Protocols, r.Name)
		}
		server := protocoltest.Serve(proto, &o)
		v := protocoltest.NewView(millrace.Site{Base: s.URL + "/"}, pages(n), proto.Tagger)
		if err := server.Show(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		s.handlers = append(s.handlers, server)
	}
	return s
}

func probe(t *testing.T, url string, o *discover.Options) *discover.SiteReport {
	t.Helper()
	if o == nil {
		o = &discover.Options{}
	}
	if o.Protocols == nil {
		o.Protocols = all.Protocols()
	}
	if o.Timeout == 0 {
		o.Timeout = time.Hour
	}
	s, err := discover.Probe(t.Context(), guarded(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// files is a site of documents, by path. Documents whose path has no extension are HTML.
type files map[string]string

func (f files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, ok := f[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	for _, end := range [][2]string{{".xml", "application/xml"}, {".txt", "text/plain"}, {".json", "application/json"}, {"", "text/html"}} {
		if strings.HasSuffix(r.URL.Path, end[0]) {
			w.Header().Set("Content-Type", end[1])
			break
		}
	}
	http.ServeContent(w, r, "", time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), strings.NewReader(body))
}

// Each protocol alone, and all of them together, are found with the right offers, with few requests
// and none twice.
func TestProbe(t *testing.T) {
	const n = 40
	protocols := all.Protocols()
	for _, proto := range protocols {
		t.Run(proto.Name, func(t *testing.T) {
			s := publish(t, n, protocol.PublisherOptions{}, proto)
			got := probe(t, s.URL+"/docs/page-001/?x#y", nil)
			w := got.Way(proto.Name)
			if w == nil || !w.Open() || w.Offer.Pages != n {
				t.Fatalf("%+v, absent %v", got.Ways, got.Absent)
			}
			if len(got.Ways) != 2 || len(got.Absent) != len(protocols)-1 || got.URL != s.URL+"/" {
				t.Errorf("%s: ways %v, absent %v", got.URL, got.Ways, got.Absent)
			}
			if twice := s.twice(); len(twice) > 0 {
				t.Errorf("asked twice: %v", twice)
			}
			if n := s.requests(); n > 24 || got.Spent.Bytes > 200_000 {
				t.Errorf("%d requests, %v", n, got.Spent)
			}
			if p := got.Plan(nil); p.First.Primary != proto.Name {
				t.Errorf("the plan is %+v", p.First)
			}
		})
	}
	t.Run("all", func(t *testing.T) {
		s := publish(t, n, protocol.PublisherOptions{}, protocols...)
		got := probe(t, s.URL, nil)
		if len(got.Ways) != len(protocols)+1 || len(got.Absent) != 0 {
			t.Fatalf("ways %v, absent %v", got.Ways, got.Absent)
		}
		for _, w := range got.Ways {
			if !w.Open() || w.Offer.Pages != n || w.Reason != "" {
				t.Errorf("%s: %+v: %s", w.Protocol, w.Offer, w.Reason)
			}
		}
		if twice := s.twice(); len(twice) > 0 {
			t.Errorf("asked twice: %v", twice)
		}
		if n := s.requests(); n > 32 {
			t.Errorf("%d requests", n)
		}
		p := got.Plan(nil)
		if !strings.HasPrefix(line(p.First), "scp fill web openfeeder tct-0") || p.Refresh.Primary != "scp" {
			t.Errorf("first %s, refresh %s", line(p.First), line(p.Refresh))
		}
	})
}

const home = `<html><head><title>x</title><link rel="license" href="/license"></head><body><a href="/a">a</a> <a href="b?c">b</a>
	<a href="/a#d">a again</a> <a href="https://elsewhere.example/">no</a> <a href="mailto:a@b.example">no</a></body></html>`

// The plain web is measured by its sitemap, by an index of many sitemaps, or by the links of the
// root.
func TestProbeWeb(t *testing.T) {
	page := func(n int) string { return "<html><body>" + strings.Repeat("word ", n) }
	urlset := func(host string, from, to int) string {
		var b strings.Builder
		b.WriteString(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, "<url><loc>%s/p/%d</loc></url>", host, i)
		}
		return b.String() + "</urlset>"
	}
	t.Run("sitemap", func(t *testing.T) {
		f := files{"/": home}
		s := newSite(t, f)
		f["/sitemap.xml"] = urlset(s.URL, 0, 500)
		for i := range 500 {
			f[fmt.Sprintf("/p/%d", i)] = page(1000)
		}
		got := probe(t, s.URL, nil)
		o := got.Way(discover.Web).Offer
		if o == nil || o.Pages != 500 || o.Basis == "" || got.Page != cost(1, 5012) {
			t.Fatalf("%+v, a page is %v", o, got.Page)
		}
		size := int64(len(f["/sitemap.xml"]))
		want := protocol.Offer{
			Entry: s.URL + "/", Pages: 500, Detail: millrace.DetailBlocks, Fields: o.Fields, Deletes: true, Basis: o.Basis,
			First: cost(501, 500*5012+size), Unchanged: cost(501, 0), Changed: cost(501, size), PerChange: cost(0, 5012),
		}
		if d := cmp.Diff(&want, o); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if d := cmp.Diff([]discover.License{{URL: s.URL + "/license", From: "HTML"}}, got.Licenses); d != "" {
			t.Error(d)
		}
		if s.requests() > 20 {
			t.Errorf("%d requests", s.requests())
		}
	})
	t.Run("pages that robots.txt disallows", func(t *testing.T) {
		f := files{"/": home, "/robots.txt": "User-agent: *\nDisallow: /p/\nAllow: /p/0$\n", "/p/0": page(1000)}
		s := newSite(t, f)
		f["/sitemap.xml"] = urlset(s.URL, 0, 500)
		got := probe(t, s.URL, nil)
		if o := got.Way(discover.Web).Offer; o == nil || o.Pages != 1 || o.First.Requests != 2 || got.Page != cost(1, 5012) {
			t.Errorf("%+v, a page is %v", o, got.Page)
		}
		if got := probe(t, s.URL, &discover.Options{IgnorePolicy: true}).Way(discover.Web).Offer; got == nil || got.Pages != 500 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("index", func(t *testing.T) {
		f := files{"/": home}
		s := newSite(t, f)
		var b strings.Builder
		b.WriteString(`<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
		for i := range 20 {
			fmt.Fprintf(&b, "<sitemap><loc>%s/map-%d.xml</loc></sitemap>", s.URL, i)
			f[fmt.Sprintf("/map-%d.xml", i)] = urlset(s.URL, i*100, i*100+100)
		}
		f["/maps.xml"] = b.String() + "</sitemapindex>"
		f["/robots.txt"] = "Sitemap: /maps.xml\nSitemap: /list.json\n"
		got := probe(t, s.URL, nil)
		o := got.Way(discover.Web).Offer
		if o == nil || o.Pages != 2000 || o.First.Requests != 2000+21 || o.Basis == "" {
			t.Fatalf("%+v", o)
		}
	})
	t.Run("links", func(t *testing.T) {
		s := newSite(t, files{"/": home, "/a": page(100), "/b": page(300)})
		got := probe(t, s.URL, nil)
		o := got.Way(discover.Web).Offer
		if o == nil || o.Pages != -1 || o.First.Requests != 3 {
			t.Fatalf("%+v", o)
		}
		if got.Page.Bytes != (512+1512)/2 {
			t.Errorf("a page is %v", got.Page)
		}
	})
	t.Run("no validators", func(t *testing.T) {
		s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				w.Header().Set("Content-Type", "text/html")
				_, _ = w.Write([]byte(home))
				return
			}
			http.NotFound(w, r)
		}))
		o := probe(t, s.URL, nil).Way(discover.Web).Offer
		if o == nil || o.Unchanged.Bytes != 3*int64(len(home)) || o.PerChange.Bytes != 0 {
			t.Fatalf("pages without validators must be fetched whole: %+v", o)
		}
	})
	t.Run("a copy of another host", func(t *testing.T) {
		f := files{"/": strings.Replace(home, "<head>", `<head><link rel="canonical" href="https://example.com/">`, 1), "/sitemap.xml": urlset("https://example.com", 0, 70)}
		for i := range 70 {
			f[fmt.Sprintf("/p/%d", i)] = page(10)
		}
		s := newSite(t, f)
		if got := probe(t, s.URL, nil); got.Way(discover.Web).Offer.Pages != 70 || got.Page.Bytes != 62 {
			t.Errorf("%+v, %v", got.Way(discover.Web).Offer, got.Page)
		}
	})
	t.Run("nothing but an image", func(t *testing.T) {
		s := newSite(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			if r.URL.Path != "/" {
				w.WriteHeader(http.StatusNotFound)
			}
		}))
		got := probe(t, s.URL, nil)
		if len(got.Ways) != 1 || got.Ways[0].Open() || got.Ways[0].Code != "no-html" {
			t.Errorf("%+v", got.Ways)
		}
		if p := got.Plan(nil); p.First.Primary != "" || p.First.Why == "" {
			t.Errorf("%+v", p.First)
		}
	})
	t.Run("elsewhere", func(t *testing.T) {
		other := newSite(t, files{"/": home})
		s := newSite(t, http.RedirectHandler(other.URL+"/", http.StatusMovedPermanently))
		got := probe(t, s.URL, &discover.Options{Protocols: []protocol.Protocol{}})
		if got.Moved != other.URL+"/" || got.Ways[0].Open() {
			t.Errorf("%q, %+v", got.Moved, got.Ways)
		}
	})
}

// The usage policy of a site is reported, and forbidden ways are left out.
func TestProbeTerms(t *testing.T) {
	policy := &millrace.Policy{
		Terms: "https://example.com/terms", Purposes: map[millrace.Purpose]bool{millrace.AITrain: false, millrace.AIInput: true},
	}
	s := publish(t, 5, protocol.PublisherOptions{Policy: policy}, all.Protocols()...)
	got := probe(t, s.URL, &discover.Options{Purpose: millrace.AITrain})
	if len(got.Terms) == 0 {
		t.Fatal("the policy is not found")
	}
	for _, w := range got.Ways {
		if w.Allowed || w.Code != "policy-refuses" {
			t.Errorf("%s: %t: %s", w.Protocol, w.Allowed, w.Reason)
		}
	}
	if p := got.Plan(nil); p.First.Primary != "" {
		t.Errorf("the plan uses %s", p.First.Primary)
	}
	if got := probe(t, s.URL, &discover.Options{Purpose: millrace.AITrain, IgnorePolicy: true}); got.Plan(nil).First.Primary == "" || got.Ways[0].Reason == "" {
		t.Errorf("ignored: %+v", got.Ways)
	}
	if got := probe(t, s.URL, &discover.Options{Purpose: millrace.AIInput}); got.Plan(nil).First.Primary == "" {
		t.Errorf("for another purpose: %+v", got.Ways)
	}
}

// robots.txt is fetched first, and obeyed with any client.
func TestProbeRobots(t *testing.T) {
	const robots = "License: https://rsl.example/license.xml\nUser-agent: millrace\nDisallow: /\nAllow: /sitemap.xml\nCrawl-delay: 0.01\n" +
		"Content-Signal: search=yes, ai-train=no\nUser-agent: other\nContent-Signal: search=no\nLICENSE: /b.xml\n"
	want := discover.Robots{
		RootRule: "line 3: Disallow: /", Delay: 10 * time.Millisecond,
		Statements: []discover.RobotsStatement{{Name: "content-signal", Value: "search=yes, ai-train=no", Line: 6}},
	}
	for name, client := range map[string]*http.Client{"guarded": guarded(), "plain": {}} {
		s := newSite(t, files{"/": home, "/robots.txt": robots})
		got, err := discover.Probe(t.Context(), client, s.URL, &discover.Options{Protocols: all.Protocols()})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got.Robots); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if d := cmp.Diff([]discover.License{{URL: "https://rsl.example/license.xml", From: "robots.txt"}, {URL: s.URL + "/b.xml", From: "robots.txt"}}, got.Licenses); d != "" {
			t.Error(d)
		}
		if w := got.Way(discover.Web); w.Allowed || w.Code != "robots-disallow" {
			t.Errorf("%s: %+v", name, w)
		}
		for k := range s.asked {
			if k != "GET /robots.txt" && k != "GET /sitemap.xml" {
				t.Errorf("%s: unexpected request %s", name, k)
			}
		}
	}
}

// A hostile server causes little cost, and an error of one line.
func TestProbeHostile(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request, text string) {
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(strings.Repeat(text, 1000))); err != nil {
				return
			}
		}
	}
	drip := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte("<"))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(20 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
	}
	serve := func(t *testing.T, h http.HandlerFunc) string {
		srv := httptest.NewServer(h)
		t.Cleanup(srv.Close)
		return srv.URL
	}
	t.Run("endless documents", func(t *testing.T) {
		u := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/robots.txt":
				endless(w, r, "# nothing\n")
			case r.URL.Path == "/":
				w.Header().Set("Content-Type", "text/html")
				_, _ = w.Write([]byte(home))
			case strings.HasSuffix(r.URL.Path, ".xml"):
				_, _ = w.Write([]byte(`<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`))
				endless(w, r, "<url><loc>http://"+r.Host+"/a</loc></url>")
			case strings.HasSuffix(r.URL.Path, ".json"):
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"version":1,"profile":"tct-1","items":[`))
				endless(w, r, `{"a":1},`)
			default:
				w.Header().Set("Content-Type", "text/html")
				endless(w, r, "<p>")
			}
		})
		got := probe(t, u, &discover.Options{MaxBytes: 4 << 20})
		if got.Spent.Bytes > 5<<20 || got.Spent.Requests > 40 {
			t.Errorf("%v", got.Spent)
		}
	})
	t.Run("a byte now and then", func(t *testing.T) {
		u := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				return
			}
			w.Header().Set("Content-Type", "text/html")
			drip(w, r)
		})
		start := time.Now()
		_, err := discover.Probe(t.Context(), guarded(), u, &discover.Options{Timeout: time.Second, Protocols: all.Protocols()})
		if took := time.Since(start); took > time.Minute {
			t.Errorf("it took %s", took)
		}
		if !errors.Is(err, millrace.ErrUnavailable) || millrace.ErrorCode(err) != "probe-timeout" {
			t.Error(err)
		}
	})
	t.Run("a root that hangs", func(t *testing.T) {
		s := publish(t, 5, protocol.PublisherOptions{}, all.Protocols()...)
		s.silent = []string{"/", "/openfeeder"}
		got := probe(t, s.URL, &discover.Options{Timeout: 2 * time.Second})
		if w := got.Way("openfeeder"); w == nil || w.Open() || !w.Unavailable || w.Code != "probe-timeout" {
			t.Errorf("%+v", w)
		}
		if w := got.Way(discover.Web); w.Open() || !w.Unavailable || w.Code != "probe-timeout" {
			t.Errorf("%+v", w)
		}
		if w := got.Way("scp"); w == nil || !w.Open() {
			t.Errorf("the protocol that responds is not found: %+v", got.Ways)
		}
	})
	t.Run("no answer", func(t *testing.T) {
		u := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		_, err := discover.Probe(t.Context(), guarded(), u, &discover.Options{Timeout: 200 * time.Millisecond})
		if !errors.Is(err, millrace.ErrUnavailable) || millrace.ErrorCode(err) != "probe-timeout" {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := discover.Probe(ctx, guarded(), u, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	t.Run("a loop, and one that says no", func(t *testing.T) {
		u := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/loop") {
				http.Redirect(w, r, "/loop"+r.URL.Path, http.StatusFound)
				return
			}
			w.WriteHeader(http.StatusForbidden)
		})
		got := probe(t, u, nil)
		if w := got.Way(discover.Web); w.Open() || w.Reason == "" {
			t.Errorf("%+v", w)
		}
		if p := got.Plan(nil); p.First.Primary != "" || strings.Contains(p.First.Why, "\n") {
			t.Errorf("%+v", p)
		}
	})
	t.Run("a site that is busy", func(t *testing.T) {
		var mu sync.Mutex
		asked := 0
		u := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/robots.txt" {
				return
			}
			mu.Lock()
			asked++
			mu.Unlock()
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		if _, err := discover.Probe(t.Context(), guarded(), u, nil); !errors.Is(err, millrace.ErrUnavailable) || millrace.ErrorCode(err) != "http-503" {
			t.Error(err)
		}
		if asked > 2 {
			t.Errorf("asked %d times", asked)
		}
	})
	t.Run("few requests", func(t *testing.T) {
		s := publish(t, 5, protocol.PublisherOptions{}, all.Protocols()...)
		if got := probe(t, s.URL, &discover.Options{MaxRequests: 3}); got.Spent.Requests != 3 {
			t.Errorf("%v", got.Spent)
		}
	})
	t.Run("no server", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		_, err = discover.Probe(t.Context(), guarded(), "http://"+l.Addr().String(), nil)
		if !errors.Is(err, millrace.ErrUnavailable) || strings.Contains(err.Error(), "\n") {
			t.Error(err)
		}
		if _, err := discover.Probe(t.Context(), nil, "http://"+l.Addr().String(), nil); !errors.Is(err, millrace.ErrForbidden) {
			t.Errorf("loopback by the default client: %v", err)
		}
		for _, bad := range []string{"", "example.com", "ftp://example.com/", "http://"} {
			if _, err := discover.Probe(t.Context(), guarded(), bad, nil); !errors.Is(err, millrace.ErrInvalid) {
				t.Errorf("%q: %v", bad, err)
			}
		}
	})
}

func ExampleProbe() {
	site := httptest.NewServer(files{"/": home, "/a": "<html>a", "/b": "<html>b"})
	defer site.Close()
	found, _ := discover.Probe(context.Background(), site.Client(), site.URL, &discover.Options{Protocols: all.Protocols()})
	plan := found.Plan(nil)
	fmt.Println(len(found.Ways), plan.First.Primary, plan.First.Cost.Requests)
	// Output: 1 crawl 3
}
