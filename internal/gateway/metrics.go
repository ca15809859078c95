package gateway

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/store"
)

// metricsPath is where Prometheus looks.
const metricsPath = "/metrics"

// MetricsOptions say what a gateway cannot know itself. What is nil is left out.
type MetricsOptions struct {
	// From are networks whose clients may read the metrics, beside those of this
	// machine and of private networks.
	From []netip.Prefix
	// Looked gives when the source of the site was looked at last, the zero time for
	// never, and whether it could not be read then.
	Looked func() (at time.Time, failed bool)
	// Dropped counts the events that could not be recorded.
	Dropped func() uint64
	// Behind gives how far those are behind who are told of events.
	Behind func() []Behind
}

// Behind is how far somebody is behind who is told of events.
type Behind struct {
	Name   string
	Events uint64        // that wait
	Age    time.Duration // of the oldest of them
}

// Metrics count the requests of a site, of one gateway or of several that take
// each other's place. It is safe for concurrent use.
type Metrics struct {
	all *prometheus.Registry

	series    atomic.Pointer[map[seriesName]*series] // never changed, but replaced
	durations atomic.Pointer[map[string]*durations]  // by protocol; the same
	more      sync.Mutex                             // whoever replaces them
}

// seriesName is what requests are told apart by.
type seriesName struct {
	protocol string
	endpoint store.Endpoint
	outcome  store.Outcome
	bot      string // the family; "none" = it says nothing of a machine
}

type series struct{ requests, bytes atomic.Uint64 }

const (
	nobody    = "none"
	others    = "other" // machines of no known family, and those for whom there is no room
	maxSeries = 2000    // a scrape and a store of metrics have to bear them
)

// bounds are the upper bounds of durations, in seconds.
var bounds = [...]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

type durations struct {
	counts [len(bounds) + 1]atomic.Uint64
	nanos  atomic.Int64
}

func (d *durations) add(took time.Duration) {
	i, _ := slices.BinarySearch(bounds[:], took.Seconds())
	d.counts[i].Add(1)
	d.nanos.Add(int64(took))
}

// NewMetrics makes metrics that have counted nothing.
func NewMetrics() *Metrics {
	m := &Metrics{all: prometheus.NewRegistry()}
	m.series.Store(new(map[seriesName]*series))
	m.durations.Store(new(map[string]*durations))
	m.all.MustRegister(m, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// count counts one request. lasting: how long it took says nothing.
func (m *Metrics) count(e *store.Event, bot string, lasting bool) {
	name := seriesName{e.Protocol, e.Endpoint, store.OutcomeOf(e.Status), bot}
	s := (*m.series.Load())[name]
	if s == nil {
		s = m.add(name)
	}
	s.requests.Add(1)
	s.bytes.Add(uint64(max(e.Bytes, 0)))
	if lasting {
		return
	}
	d := (*m.durations.Load())[e.Protocol]
	if d == nil {
		d = m.time(e.Protocol)
	}
	d.add(e.Took)
}

// add makes a series, or gives one that stands for all for whom there is no room.
func (m *Metrics) add(name seriesName) *series {
	m.more.Lock()
	defer m.more.Unlock()
	have := *m.series.Load()
	if len(have) >= maxSeries && name.bot != nobody {
		name.bot = others
	}
	if s := have[name]; s != nil {
		return s
	}
	next := maps.Clone(have)
	if next == nil {
		next = make(map[seriesName]*series)
	}
	s := new(series)
	next[name] = s
	m.series.Store(&next)
	return s
}

func (m *Metrics) time(protocol string) *durations {
	m.more.Lock()
	defer m.more.Unlock()
	have := *m.durations.Load()
	if d := have[protocol]; d != nil {
		return d
	}
	next := maps.Clone(have)
	if next == nil {
		next = make(map[string]*durations)
	}
	d := new(durations)
	next[protocol] = d
	m.durations.Store(&next)
	return d
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("millrace_"+name, help, labels, nil)
}

var (
	requestsDesc = describe("requests_total", "Requests that were answered. bot is who runs the machine, other if nobody knows, none if it does not say that it is one.",
		"protocol", "endpoint", "outcome", "bot")
	bytesDesc    = describe("response_body_bytes_total", "Bytes of bodies as they were sent.", "protocol", "endpoint", "outcome", "bot")
	durationDesc = describe("request_duration_seconds", "Time from a request to the end of its answer, without requests that listen.", "protocol")

	activeDesc    = describe("requests_active", "Requests that are being answered.")
	streamsDesc   = describe("streams_open", "Requests that listen.")
	editionDesc   = describe("edition_sequence", "Sequence number of the published edition.")
	changedDesc   = describe("edition_changed_timestamp_seconds", "Time of the newest change in the published edition.")
	ageDesc       = describe("edition_age_seconds", "Time since the newest change in the published edition.")
	lagDesc       = describe("edition_lag_seconds", "Time from the commit of the oldest change of the last publication until it was visible.")
	pagesDesc     = describe("edition_pages", "Pages of the published edition.")
	lookedDesc    = describe("source_looked_timestamp_seconds", "Time of the last look at the source, 0 before the first.")
	lookAgeDesc   = describe("source_look_age_seconds", "Time since the last look at the source.")
	lookFailDesc  = describe("source_look_failed", "1 if the source could not be read at the last look.")
	droppedDesc   = describe("events_dropped_total", "Requests of machines that could not be recorded.")
	behindDesc    = describe("exporter_waiting_events", "Events that a service does not have yet.", "exporter")
	behindAgeDesc = describe("exporter_lag_seconds", "Age of the oldest event that a service does not have yet.", "exporter")
)

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requestsDesc, bytesDesc, durationDesc} {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for name, s := range *m.series.Load() {
		labels := []string{name.protocol, string(name.endpoint), string(name.outcome), name.bot}
		to <- prometheus.MustNewConstMetric(requestsDesc, prometheus.CounterValue, float64(s.requests.Load()), labels...)
		to <- prometheus.MustNewConstMetric(bytesDesc, prometheus.CounterValue, float64(s.bytes.Load()), labels...)
	}
	for protocol, d := range *m.durations.Load() {
		buckets, n := make(map[float64]uint64, len(bounds)), uint64(0)
		for i := range bounds {
			n += d.counts[i].Load()
			buckets[bounds[i]] = n
		}
		n += d.counts[len(bounds)].Load()
		to <- prometheus.MustNewConstHistogram(durationDesc, n, time.Duration(d.nanos.Load()).Seconds(), buckets, protocol)
	}
}

// label makes a text what a label may be.
func label(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// present collects how a gateway stands.
type present struct{ g *Gateway }

// Describe implements [prometheus.Collector]; what there is depends.
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
	gauge(activeDesc, float64(g.active.Load()))
	gauge(streamsDesc, float64(g.streams.now()))
	var ed *edition.Edition
	if g.press != nil {
		ed = g.press.Current()
	}
	if ed != nil {
		site := ed.View.Site()
		gauge(editionDesc, float64(site.Seq))
		gauge(pagesDesc, float64(site.Pages))
		since(changedDesc, ageDesc, site.Time)
		gauge(lagDesc, g.press.Lag().Seconds())
	}
	o := &g.o.MetricsOptions
	if o.Looked != nil {
		at, failed := o.Looked()
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
				name += " " + strconv.Itoa(seen[name]) // two that are shown alike
			}
			gauge(behindDesc, float64(b.Events), name)
			gauge(behindAgeDesc, max(0, b.Age.Seconds()), name)
		}
	}
}

// measured makes what answers with the metrics.
func (g *Gateway) measured() http.Handler {
	own := prometheus.NewRegistry()
	own.MustRegister(present{g})
	return promhttp.HandlerFor(prometheus.Gatherers{g.o.Metrics.all, own}, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// metrics answers with the metrics, false for those who may not have them: to
// them there are none, and what the site has there is theirs.
func (g *Gateway) metrics(w *response, r *http.Request) bool {
	if g.measures == nil || r.URL.Path != metricsPath || r.Method != http.MethodGet && r.Method != http.MethodHead || !w.near() {
		return false
	}
	w.silent = true
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	h.Set("X-Content-Type-Options", "nosniff")
	g.measures.ServeHTTP(w, r)
	return true
}

// passed are the fields that say that a request has come through somebody else.
var passed = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via", "Cdn-Loop"}

// near reports whether a request comes from this machine, a private network or
// one of those that may read the metrics, and by no way round: a proxy that is
// believed says for whom it asks, any other asks for the whole world. Many proxies
// say nothing of themselves unless they are told to; what gives these away is that
// they speak HTTP/1.0. A page in a browser asks for nobody.
func (w *response) near() bool {
	r := w.r
	if !r.ProtoAtLeast(1, 1) || r.Header["Origin"] != nil || r.Header["Sec-Fetch-Mode"] != nil && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		return false
	}
	for _, name := range passed {
		if r.Header[name] == nil {
			continue
		}
		if from := address(r.RemoteAddr); !w.g.trusted(from) || r.Header["X-Forwarded-For"] == nil || w.client() == from {
			return false
		}
	}
	a := w.client()
	return a.IsValid() && (a.IsLoopback() || a.IsPrivate() ||
		slices.ContainsFunc(w.g.o.MetricsOptions.From, func(p netip.Prefix) bool { return p.Contains(a) }))
}
