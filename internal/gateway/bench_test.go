package gateway

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// sink is a ResponseWriter that discards the body. reset prepares it for the next request.
type sink struct {
	h      http.Header
	status int
	n      int
}

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(b []byte) (int, error) { s.n += len(b); return len(b), nil }

// Each pair of benchmarks compares the whole gateway, with a warm cache and random pages, with a
// handler that only writes prepared bytes and header fields.
func BenchmarkWarm(b *testing.B) {
	const n = 10_000
	pages := make([]*millrace.Page, n)
	for i := range pages {
		pages[i] = page(fmt.Sprintf("/page-%d/", i), fmt.Sprint("Page ", i))
	}
	logged := setup{pages: pages, o: Options{RequestLog: io.Discard}}.gateway(b)
	for _, c := range []struct {
		name   string
		accept string
		status int
	}{{"200", "", 200}, {"200-gzip", "gzip, deflate, br, zstd", 200}, {"304", "", 304}} {
		requests := make([]*http.Request, n)
		answers := make(map[string]*httptest.ResponseRecorder, n)
		for i := range requests {
			r := httptest.NewRequest(http.MethodGet, fmt.Sprintf("/page-%d/llm.json", i), nil)
			if c.accept != "" {
				r.Header.Set("Accept-Encoding", c.accept)
			}
			if c.status == 304 {
				r.Header.Set("If-None-Match", ask(logged, "HEAD", r.URL.Path).Header().Get("ETag"))
			}
			w := httptest.NewRecorder()
			logged.ServeHTTP(w, r)
			if w.Code != c.status {
				b.Fatal(w.Code)
			}
			requests[i], answers[r.URL.Path] = r, w
		}
		plain := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a := answers[r.URL.Path]
			h := w.Header()
			for name, value := range a.Header() {
				h[name] = value
			}
			if c.status == 304 {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			_, _ = w.Write(a.Body.Bytes())
		})
		for _, h := range []struct {
			name string
			http.Handler
		}{{"bare", plain}, {"gateway", quiet{logged}}, {"gateway+log", logged}} {
			b.Run(c.name+"/"+h.name, func(b *testing.B) {
				rnd := rand.New(rand.NewPCG(1, 2))
				w := &sink{}
				b.ReportAllocs()
				for b.Loop() {
					w.h = make(http.Header)
					h.ServeHTTP(w, requests[rnd.IntN(n)])
				}
			})
		}
	}
}

// quiet serves a gateway without its request log.
type quiet struct{ g *Gateway }

func (q quiet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	log := q.g.requests
	q.g.requests = nil
	q.g.ServeHTTP(w, r)
	q.g.requests = log
}

// A cold 304 calls the protocol and adds a cache entry. The view is in memory.
func BenchmarkCold304(b *testing.B) {
	const n = 10_000
	pages := make([]*millrace.Page, n)
	for i := range pages {
		pages[i] = page(fmt.Sprintf("/page-%d/", i), fmt.Sprint("Page ", i))
	}
	g := setup{pages: pages, cache: 1 << 16}.gateway(b)
	requests := make([]*http.Request, n)
	for i := range requests {
		requests[i] = httptest.NewRequest(http.MethodGet, fmt.Sprintf("/page-%d/llm.json", i), nil)
		requests[i].Header.Set("If-None-Match", ask(g, "HEAD", requests[i].URL.Path).Header().Get("ETag"))
	}
	w := &sink{}
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		w.h = make(http.Header)
		g.ServeHTTP(w, requests[i%n])
		i++
	}
	if w.status != 304 {
		b.Fatal(w.status)
	}
}

// discardEvents discards events.
type discardEvents struct{ last store.Event }

func (k *discardEvents) Record(e store.Event) { k.last = e }

// BenchmarkEvents measures the cost of the event and the metrics of a 304.
func BenchmarkEvents(b *testing.B) {
	p := []*millrace.Page{page("/", "Home")}
	for _, c := range []struct {
		name, agent string
		o           Options
	}{
		{"none", gptBot, Options{}},
		{"events", gptBot, Options{Events: new(discardEvents)}},
		{"events of a browser", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36", Options{Events: new(discardEvents)}},
		{"metrics", gptBot, Options{Metrics: NewMetrics()}},
		{"both", gptBot, Options{Events: new(discardEvents), Metrics: NewMetrics()}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.o.Access.Bots = known(b)
			g := setup{pages: []*millrace.Page{{URL: "/", Title: p[0].Title, Known: p[0].Known, Detail: p[0].Detail, Blocks: p[0].Blocks}}, o: c.o}.gateway(b)
			r := httptest.NewRequest(http.MethodGet, "/llm.json", nil)
			r.Header.Set("User-Agent", c.agent)
			r.Header.Set("If-None-Match", ask(g, "HEAD", "/llm.json").Header().Get("ETag"))
			w := &sink{}
			b.ReportAllocs()
			for b.Loop() {
				w.h = make(http.Header)
				g.ServeHTTP(w, r)
			}
			if w.status != 304 {
				b.Fatal(w.status)
			}
		})
	}
}
