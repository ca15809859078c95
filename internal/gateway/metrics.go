package gateway

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/store"
)

// metricsPath is the path that Prometheus scrapes.
const metricsPath = "/metrics"

// MetricsOptions are values from outside the gateway. nil values are omitted.
type MetricsOptions struct {
	// From are networks whose clients may read the metrics, in addition to this machine and
	// private networks.
	From []netip.Prefix
	// LastScan returns the time of the last scan of the source, zero for never, and
	// whether it failed.
	LastScan func() (at time.Time, failed bool)
	// Dropped returns the number of events that were not recorded.
	Dropped func() uint64
	// Behind returns the backlog of each receiver of events.
	Behind func() []Behind
}

// Behind is the backlog of a receiver of events.
type Behind struct {
	Name   string
	Events uint64        // waiting events
	Age    time.Duration // age of the oldest waiting event
}

// Metrics count the requests of a site, across the gateways that replace each
// other. It is safe for concurrent use.
type Metrics struct {
	all             *prometheus.Registry
	requests, bytes *prometheus.CounterVec
	durations       *prometheus.HistogramVec

	series sync.Map   // map of seriesName to *series
	more   sync.Mutex // held while a series is added
	have   int        // number of series
}

// seriesName holds the labels of a series of requests.
type seriesName struct {
	protocol string
	endpoint store.Endpoint
	outcome  store.Outcome
	bot      string // operator of the bot; "none" = not a bot
}

type series struct {
	requests, bytes prometheus.Counter
	duration        prometheus.Observer
}

const (
	noBot     = "none"
	others    = "other" // unknown operators, and all series above maxSeries
	maxSeries = 2000    // bounds the cost of a scrape
)

// bounds are the upper bounds of durations, in seconds.
var bounds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// NewMetrics returns empty metrics.
func NewMetrics() *Metrics {
	all := prometheus.NewRegistry()
	all.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	auto, labels := promauto.With(all), []string{"protocol", "endpoint", "outcome", "bot"}
	return &Metrics{
		all: all,
		requests: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_requests_total",
			Help: "Requests answered, by protocol, endpoint, outcome and operator of the bot (none for other clients).",
		}, labels),
		bytes: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_response_body_bytes_total",
			Help: "Bytes of response bodies sent.",
		}, labels),
		durations: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "millrace_request_duration_seconds",
			Help:    "Duration of requests, without event streams.",
			Buckets: bounds,
		}, []string{"protocol"}),
	}
}

// count counts one request. If lasting is set, it omits the duration.
func (m *Metrics) count(e *store.Event, bot string, lasting bool) {
	name := seriesName{e.Protocol, e.Endpoint, store.OutcomeOf(e.Status), bot}
	found, ok := m.series.Load(name)
	if !ok {
		found = m.add(name)
	}
	s := found.(*series)
	s.requests.Inc()
	s.bytes.Add(float64(max(e.Bytes, 0)))
	if !lasting {
		s.duration.Observe(e.Took.Seconds())
	}
}

// add makes a series. Above maxSeries, bots share the series "other".
func (m *Metrics) add(name seriesName) any {
	m.more.Lock()
	defer m.more.Unlock()
	if m.have >= maxSeries && name.bot != noBot {
		name.bot = others
	}
	labels := []string{name.protocol, string(name.endpoint), string(name.outcome), name.bot}
	s, found := m.series.LoadOrStore(name, &series{
		m.requests.WithLabelValues(labels...), m.bytes.WithLabelValues(labels...), m.durations.WithLabelValues(name.protocol),
	})
	if !found {
		m.have++
	}
	return s
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("millrace_"+name, help, labels, nil)
}

var (
	activeDesc    = describe("requests_active", "Requests in progress.")
	streamsDesc   = describe("streams_open", "Event streams in progress.")
	editionDesc   = describe("edition_sequence", "Sequence number of the published edition.")
	changedDesc   = describe("edition_changed_timestamp_seconds", "Time of the newest change in the published edition.")
	ageDesc       = describe("edition_age_seconds", "Time since the newest change in the published edition.")
	lagDesc       = describe("edition_lag_seconds", "Time from a commit until its changes were visible: of the last publication, or of a waiting change if that is longer.")
	pagesDesc     = describe("edition_pages", "Number of pages in the published edition, with archive pages that protocols do not list.")
	lookedDesc    = describe("source_scanned_timestamp_seconds", "Time of the last scan of the source, 0 before the first.")
	lookAgeDesc   = describe("source_scan_age_seconds", "Time since the last scan of the source.")
	lookFailDesc  = describe("source_scan_failed", "1 if the last scan of the source failed.")
	droppedDesc   = describe("events_dropped_total", "Events of bots that could not be recorded.")
	behindDesc    = describe("exporter_waiting_events", "Events that wait to be sent to a service.", "exporter")
	behindAgeDesc = describe("exporter_lag_seconds", "Age of the oldest event that waits to be sent to a service.", "exporter")
)

// label makes a text valid as the value of a label.
func label(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// present collects the current state of a gateway.
type present struct{ g *Gateway }

// Describe implements [prometheus.Collector]; the collector is unchecked.
func (present) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (s present) Collect(to chan<- prometheus.Metric) {
	g, now := s.g, time.Now()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	since := func(at, age *prometheus.Desc, t time.Time) {
		if t.IsZero() {
			gauge(at, 0)
			return
		}
		gauge(at, float64(t.UnixMilli())/1000)
		gauge(age, max(0, now.Sub(t).Seconds()))
	}
	gauge(activeDesc, float64(g.guard.Active()))
	gauge(streamsDesc, float64(g.guard.Listening()))
	var ed *edition.Edition
	if g.server != nil {
		ed = g.server.Current()
	}
	if ed != nil {
		site := ed.View.Site()
		gauge(editionDesc, float64(site.Seq))
		gauge(pagesDesc, float64(site.Pages))
		since(changedDesc, ageDesc, site.Time)
		last, waiting := g.server.Lag()
		gauge(lagDesc, max(last, waiting).Seconds())
	}
	o := &g.o.MetricsOptions
	if o.LastScan != nil {
		at, failed := o.LastScan()
		since(lookedDesc, lookAgeDesc, at)
		bad := 0.0
		if failed {
			bad = 1
		}
		gauge(lookFailDesc, bad)
	}
	if o.Dropped != nil {
		to <- prometheus.MustNewConstMetric(droppedDesc, prometheus.CounterValue, float64(o.Dropped()))
	}
	if o.Behind != nil {
		seen := make(map[string]int)
		for _, b := range o.Behind() {
			name := label(b.Name)
			if seen[name]++; seen[name] > 1 {
				name += " " + strconv.Itoa(seen[name]) // two receivers with the same text
			}
			gauge(behindDesc, float64(b.Events), name)
			gauge(behindAgeDesc, max(0, b.Age.Seconds()), name)
		}
	}
}

// measured returns the handler of the metrics.
func (g *Gateway) measured() http.Handler {
	own := prometheus.NewRegistry()
	own.MustRegister(present{g})
	return promhttp.HandlerFor(prometheus.Gatherers{g.o.Metrics.all, own}, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// metrics serves the metrics to clients that may read them. For others, the path
// belongs to the site.
func (g *Gateway) metrics(w *response, r *http.Request) (bool, error) {
	if g.measures == nil || r.URL.Path != metricsPath || r.Method != http.MethodGet && r.Method != http.MethodHead || !w.near() {
		return false, nil
	}
	w.silent = true
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	h.Set("X-Content-Type-Options", "nosniff")
	g.measures.ServeHTTP(w, r)
	return true, nil
}

// passed are the header fields that proxies add.
var passed = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via", "Cdn-Loop"}

// near reports whether a request comes from this machine, a private network or a network that
// may read the metrics.
//
// Requests through untrusted proxies are never near, because the client is unknown. HTTP/1.0
// is a sign of a proxy that adds no header fields. Requests that a page in a browser makes are
// not near either.
func (w *response) near() bool {
	r := w.r
	if !r.ProtoAtLeast(1, 1) || r.Header["Origin"] != nil || r.Header["Sec-Fetch-Mode"] != nil && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		return false
	}
	for _, name := range passed {
		if r.Header[name] == nil {
			continue
		}
		if from := access.ParseAddress(r.RemoteAddr); !w.g.guard.Trusted(from) || r.Header["X-Forwarded-For"] == nil || w.Address() == from {
			return false
		}
	}
	a := w.Address()
	return a.IsValid() && (a.IsLoopback() || a.IsPrivate() ||
		slices.ContainsFunc(w.g.o.MetricsOptions.From, func(p netip.Prefix) bool { return p.Contains(a) }))
}
