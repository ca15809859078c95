package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/store"
)

// scrape returns the metrics by name and labels, as a scraper on this machine gets them.
func scrape(t *testing.T, g http.Handler) map[string]float64 {
	t.Helper()
	w := fromHere(g, "/metrics")
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	out := make(map[string]float64)
	for line := range strings.Lines(w.Body.String()) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[i+1:], 64)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		out[line[:i]] = v
	}
	return out
}

func fromHere(g http.Handler, target string, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.RemoteAddr = "127.0.0.1:1"
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

func TestMetrics(t *testing.T) {
	m := NewMetrics()
	scanned := time.Now().Add(-time.Minute)
	o := Options{Access: access.Options{Bots: known(t)}, Metrics: m, MetricsOptions: MetricsOptions{
		LastScan: func() (time.Time, bool) { return scanned, true },
		Dropped:  func() uint64 { return 7 },
		Fleet: func() *store.FleetStats {
			return &store.FleetStats{Time: time.Unix(1_700_000_000, 0), Sites: 9, Failing: 2, Due: 3, Leased: 1, Requests: 50, Received: 4000, Lag: [4]time.Duration{0, time.Second, time.Minute, time.Hour}}
		},
		Behind: func() []Behind {
			return []Behind{{Name: `a "quoted" one`, Events: 3, Age: 90 * time.Second}, {Name: `a "quoted" one`}, {Name: "\xff"}}
		},
	}}
	s := setup{files: site(), protocols: []edition.Protocol{{Name: "notes", Publisher: new(notes)}}, o: o}
	g := s.gateway(t)
	for range 3 {
		ask(g, "GET", "/a/llm.json", "User-Agent", gptBot)
	}
	ask(g, "GET", "/a/llm.json", "User-Agent", "NewCrawler", "If-None-Match", "*")
	ask(g, "GET", "/none", "User-Agent", "Mozilla/5.0 Firefox/128.0")
	ask(g, "GET", "/healthz")
	inside, _ := g.OwnHandler()
	ask(inside, "GET", "/none")
	fromHere(g, "/metrics")

	body := ask(g, "GET", "/a/llm.json").Body.Len()
	got := scrape(t, g)
	for name, want := range map[string]float64{
		`millrace_requests_total{bot="openai",endpoint="fetch",outcome="sent",protocol="tct-01"}`:            3,
		`millrace_response_body_bytes_total{bot="openai",endpoint="fetch",outcome="sent",protocol="tct-01"}`: float64(3 * body),
		`millrace_requests_total{bot="other",endpoint="fetch",outcome="unmodified",protocol="tct-01"}`:       1,
		`millrace_requests_total{bot="none",endpoint="fetch",outcome="missing",protocol="html"}`:             1,
		`millrace_requests_total{bot="none",endpoint="fetch",outcome="sent",protocol="tct-01"}`:              1,
		`millrace_request_duration_seconds_count{protocol="tct-01"}`:                                         5,
		`millrace_request_duration_seconds_bucket{protocol="tct-01",le="+Inf"}`:                              5,
		`millrace_fleet_sites{state="all"}`:                                                                  9, `millrace_fleet_sites{state="failing"}`: 2, `millrace_fleet_sites{state="due"}`: 3, `millrace_fleet_leases`: 1,
		`millrace_fleet_lag_seconds{quantile="0.99"}`: 60, `millrace_fleet_lag_seconds{quantile="1"}`: 3600,
		`millrace_fleet_counted_timestamp_seconds`: 1_700_000_000, `millrace_fleet_requests_total`: 50, `millrace_fleet_received_bytes_total`: 4000,
		`millrace_requests_active`:                                      0,
		`millrace_streams_open`:                                         0,
		`millrace_edition_sequence`:                                     1,
		`millrace_edition_pages`:                                        3,
		`millrace_source_scan_failed`:                                   1,
		`millrace_events_dropped_total`:                                 7,
		`millrace_exporter_waiting_events{exporter="a \"quoted\" one"}`: 3,
		`millrace_exporter_lag_seconds{exporter="a \"quoted\" one"}`:    90,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s: %v, want %v", name, v, want)
		}
	}
	requests := 0.0
	for name, v := range got {
		if strings.HasPrefix(name, "millrace_requests_total") {
			requests += v
		}
	}
	if requests != 6 {
		t.Errorf("%v requests are counted, want 6", requests)
	}
	if age := got["millrace_source_scan_age_seconds"]; age < 59 || age > 120 {
		t.Errorf("the last scan was %v s ago", age)
	}
	if got["go_goroutines"] == 0 || got["process_start_time_seconds"] == 0 {
		t.Error("the metrics of the process are missing")
	}

	// The next gateway continues the counts.
	s.pages, s.site = nil, nil
	next := s.gateway(t)
	ask(next, "GET", "/a/llm.json", "User-Agent", gptBot)
	if n := scrape(t, next)[`millrace_requests_total{bot="openai",endpoint="fetch",outcome="sent",protocol="tct-01"}`]; n != 4 {
		t.Errorf("after a gateway was replaced: %v", n)
	}
}

// A request from another network or through a proxy gets the site's own page.
func TestMetricsAreNear(t *testing.T) {
	const proxy = "10.1.1.1"
	o := Options{Metrics: NewMetrics(), Access: access.Options{Proxies: []netip.Prefix{netip.MustParsePrefix(proxy + "/32")}}}
	o.MetricsOptions.From = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
	g := setup{files: site(), o: o}.gateway(t)
	for _, tt := range []struct {
		from   string
		fields []string
		may    bool
	}{
		{"127.0.0.1", nil, true},
		{"[::1]", nil, true},
		{"192.168.7.9", nil, true},
		{"[fd00::1]", nil, true},
		{"[::ffff:10.0.0.7]", nil, true},
		{"198.51.100.7", nil, true},
		{"203.0.113.5", nil, false},
		{"[2001:db8::1]", nil, false},
		{"169.254.169.254", nil, false},
		{"127.0.0.1", []string{"X-Forwarded-For", "127.0.0.1"}, false},
		{"127.0.0.1", []string{"Forwarded", "for=127.0.0.1"}, false},
		{"127.0.0.1", []string{"Via", "1.1 cache"}, false},
		{"127.0.0.1", []string{"X-Real-IP", "127.0.0.1"}, false},
		{"127.0.0.1", []string{"Origin", "http://evil.example"}, false},
		{"127.0.0.1", []string{"Sec-Fetch-Mode", "cors"}, false},
		{"127.0.0.1", []string{"Sec-Fetch-Mode", "navigate"}, true},
		{proxy, nil, true},
		{proxy, []string{"X-Forwarded-For", "203.0.113.5"}, false},
		{proxy, []string{"X-Forwarded-For", "127.0.0.1, 203.0.113.5"}, false},
		{proxy, []string{"X-Forwarded-For", "nonsense"}, false},
		{proxy, []string{"X-Forwarded-For", "192.168.0.4"}, true},
		{proxy, []string{"Via", "1.1 proxy"}, false},
		{proxy, []string{"Via", "1.1 proxy", "X-Forwarded-For", "192.168.0.4"}, true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.RemoteAddr = tt.from + ":1"
		for i := 0; i < len(tt.fields); i += 2 {
			r.Header.Set(tt.fields[i], tt.fields[i+1])
		}
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if may := w.Code == 200; may != tt.may || !may && (w.Code != 404 || strings.Contains(w.Body.String(), "millrace_")) {
			t.Errorf("%s with %v: %d", tt.from, tt.fields, w.Code)
		}
	}
	old := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	old.RemoteAddr, old.Proto, old.ProtoMinor = "127.0.0.1:1", "HTTP/1.0", 0
	w := httptest.NewRecorder()
	if g.ServeHTTP(w, old); w.Code != 404 {
		t.Errorf("through a proxy that adds no header fields: %d", w.Code)
	}
	if w := fromHere(setup{}.gateway(t), "/metrics"); w.Code != 404 {
		t.Errorf("without metrics: %d", w.Code)
	}
	if w := ask(g, "GET", "/robots.txt"); strings.Contains(w.Body.String(), "metrics") {
		t.Errorf("robots.txt names the metrics: %s", w.Body)
	}
}

// The number of series is bounded for any number of clients. All requests are counted.
func TestMetricsAreBounded(t *testing.T) {
	m := NewMetrics()
	const each, workers = 1500, 4
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for j := range each {
				m.count(&store.Event{Protocol: "web", Endpoint: store.EndpointFetch, Status: 200, Bytes: 2, Took: time.Millisecond}, fmt.Sprint(i, "-", j), j%2 == 0)
			}
		})
	}
	all.Wait()
	g := setup{o: Options{Metrics: m}}.gateway(t)
	var requests, bytes, names float64
	for name, v := range scrape(t, g) {
		switch {
		case strings.HasPrefix(name, "millrace_requests_total"):
			requests += v
			names++
		case strings.HasPrefix(name, "millrace_response_body_bytes_total"):
			bytes += v
		}
	}
	if requests != each*workers || bytes != 2*each*workers || names > maxSeries+1 {
		t.Errorf("%v requests with %v bytes in %v series", requests, bytes, names)
	}
}
