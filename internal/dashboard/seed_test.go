package dashboard

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/millrace/millrace/store"
)

// seedTime is when the events of seed end.
var seedTime = time.Date(2026, 11, 20, 15, 30, 0, 0, time.UTC)

// seed records requests of bots over a number of days, for pages of the handbook and for
// missing paths. Some queries are hostile.
func seed(t testing.TB, h *handbook, days int) {
	t.Helper()
	h.Usage = h.store
	rng := rand.New(rand.NewPCG(7, 7))
	bots := []struct {
		name, family string
		identity     store.BotIdentity
		a            float64 // requests a day
		protocols    []string
	}{
		{"GPTBot", "openai", store.Verified, 120, []string{"html", "tct-01", "web", "site"}},
		{"ClaudeBot", "anthropic", store.Verified, 90, []string{"web", "html", "openfeeder"}},
		{"Googlebot", "google", store.Verified, 70, []string{"html", "site"}},
		{"PerplexityBot", "perplexity", store.Unverified, 40, []string{"openfeeder", "web"}},
		{"Bytespider", "bytedance", store.Forged, 25, []string{"html"}},
		{"CCBot", "commoncrawl", store.Unverified, 22, []string{"html", "scp", "site"}},
		{"Amazonbot", "amazon", store.Unverified, 14, []string{"html", "arc"}},
		{"OAI-SearchBot", "openai", store.Verified, 12, []string{"tct-01", "arc"}},
		{"Applebot", "apple", store.Unverified, 9, []string{"html"}},
		{"other", "", store.Unverified, 6, []string{"html", "site"}},
	}
	paths := []string{"/", "/start.html", "/guide/wheels.html", "/guide/sluices.html", "/news/flood.html"}
	queries := []string{"how wide is a millrace", "undershot wheel", "<script>alert(1)</script>", "Wehr \x1b[31m rot", "opening hours"}
	var events []store.Event
	for day := range days {
		start := seedTime.Add(-time.Duration(days-day) * 24 * time.Hour)
		swing := 1 + .35*math.Sin(float64(day)/4.4) + .012*float64(day)
		for _, b := range bots {
			for i := range int(b.a * swing * (.7 + .6*rng.Float64())) {
				e := store.Event{
					Time: start.Add(time.Duration(rng.Int64N(int64(24 * time.Hour)))), Bot: b.name, Family: b.family, Identity: b.identity,
					Protocol: b.protocols[rng.IntN(len(b.protocols))], Endpoint: store.EndpointFetch, Path: paths[rng.IntN(len(paths))],
					Status: 200, Bytes: 2100 + rng.Int64N(2000), Size: 6000, HTML: 61_000, Received: 12_400, Results: 1,
					Took: time.Duration(200+rng.IntN(2500)) * time.Microsecond,
				}
				if e.Protocol == "html" {
					e.Bytes, e.Size = 12_400, 61_000
				}
				if e.Protocol == "site" {
					e.Endpoint, e.Path, e.Results, e.HTML, e.Received, e.Bytes, e.Size = store.EndpointDiscovery, "/robots.txt", 0, 0, 0, 700, 700
				}
				switch n := rng.IntN(100); {
				case b.identity == store.Forged && n < 60:
					e.Status, e.Bytes = 403, 300
				case n < 34:
					e.Status, e.Bytes, e.Size, e.Cached = 304, 0, 0, true
				case n < 39:
					e.Status, e.Path, e.Bytes, e.HTML, e.Received, e.Results = 404, fmt.Sprintf("/old/%d.html", i%7), 500, 0, 0, 0
				case n < 40 && day%5 == 0:
					e.Status, e.Bytes = 502, 100
				case n < 52 && e.Protocol == "openfeeder":
					e.Endpoint, e.Path, e.Query, e.Results, e.HTML, e.Received = store.EndpointSearch, "/openfeeder", queries[rng.IntN(len(queries))], int64(rng.IntN(3)), 0, 0
				case n < 55 && e.Protocol != "html" && e.Protocol != "site":
					e.Endpoint, e.Path, e.Results, e.Bytes, e.HTML, e.Received = store.EndpointIndex, "/index.json", 5, 1900, 0, 0
				}
				events = append(events, e)
			}
		}
	}
	for len(events) > 0 {
		n := min(5000, len(events))
		if err := h.Usage.Record(t.Context(), h.Name, events[:n]); err != nil {
			t.Fatal(err)
		}
		events = events[n:]
	}
}
