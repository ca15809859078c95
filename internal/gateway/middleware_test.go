package gateway

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/access"
)

// BenchmarkMiddleware measures a 304 with and without all checks of the client.
func BenchmarkMiddleware(b *testing.B) {
	const n = 10_000
	all := Options{
		Access: access.Options{Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Rate: 1e7, FilesRate: 1e9, Bots: known(b), Rules: rules(b, "training=10000000/s", "search=allow", "unverified=403")},
	}
	for _, c := range []struct {
		name, agent string
		o           Options
	}{{"without", "GPTBot/1.2", Options{}}, {"bot", "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)", all}, {"browser", browser, all}} {
		pages := make([]*millrace.Page, n)
		for i := range pages {
			pages[i] = page(fmt.Sprintf("/page-%d/", i), fmt.Sprint("Page ", i))
		}
		g := setup{pages: pages, o: c.o}.gateway(b)
		requests := make([]*http.Request, n)
		for i := range requests {
			r := httptest.NewRequest(http.MethodGet, fmt.Sprintf("/page-%d/llm.json", i), nil)
			r.Header.Set("If-None-Match", ask(g, "HEAD", r.URL.Path).Header().Get("ETag"))
			r.Header.Set("User-Agent", c.agent)
			r.Header.Set("X-Forwarded-For", theirs)
			r.RemoteAddr = "127.0.0.1:4711"
			requests[i] = r
		}
		b.Run(c.name, func(b *testing.B) {
			rnd := rand.New(rand.NewPCG(1, 2))
			w := &sink{}
			b.ReportAllocs()
			for b.Loop() {
				w.h = make(http.Header)
				g.ServeHTTP(w, requests[rnd.IntN(n)])
			}
			if w.status != http.StatusNotModified {
				b.Fatal(w.status)
			}
		})
	}
}
