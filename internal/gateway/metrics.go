package gateway

import (
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/store"
)

// metricsPath is the path that Prometheus scrapes.
const metricsPath = "/metrics"

// MetricsOptions are values from outside the gateway. nil values are omitted.
type MetricsOptions struct {
	// From lists networks whose clients may read the metrics, in addition to this machine and
	// private networks.
	From []netip.Prefix
	// LastScan returns the time of the last scan of the source, or zero if there was none, and
	// whether that scan failed.
	LastScan func() (at time.Time, failed bool)
	// Dropped returns the number of events that were not recorded.
	Dropped func() uint64
	// Replicas returns the number of processes that serve the site.
	Replicas func() int
	// Fleet returns the last counts of the sites that workers pull into the store, or nil.
	Fleet func() *store.FleetStats
	// Behind returns the backlog of each receiver of events.
	Behind func() []Behind
}

// Behind is the backlog of a receiver of events.
type Behind struct {
	Name   string
	Events uint64        // waiting events
	Age    time.Duration // age of the oldest waiting event
}

// Metrics counts the requests of a site. Successive gateways of the site share it. It is safe for
// concurrent use.
type Metrics struct {
	series sync.Map   // map of seriesName to *series
	more   sync.Mutex // held while adding a series
	have   int        // current number of series

	durations map[string]*histogram // by protocol; guarded by more
}

// seriesName holds the labels of a series of requests.
type seriesName struct {
	protocol string
	endpoint store.Endpoint
	outcome  store.Outcome
	bot      string // operator of the bot; "none" = not a bot
}

type series struct {
	requests, bytes atomic.Uint64
	duration        *histogram
}

const (
	noBot     = "none"
	others    = "other" // unknown operators, and all series above maxSeries
	maxSeries = 2000    // bounds the cost of a scrape
)

// NewMetrics returns empty metrics.
func NewMetrics() *Metrics {
	metrics.ExposeMetadata(true) // adds the types of the metrics of the process
	return &Metrics{durations: make(map[string]*histogram)}
}

// count counts one request. If lasting is set, it does not count the duration.
func (m *Metrics) count(e *store.Event, bot string, lasting bool) {
	name := seriesName{e.Protocol, e.Endpoint, store.OutcomeOf(e.Status), bot}
	found, ok := m.series.Load(name)
	if !ok {
		found = m.add(name)
	}
	s := found.(*series)
	s.requests.Add(1)
	s.bytes.Add(uint64(max(e.Bytes, 0))) //nolint:gosec // not negative
	if !lasting {
		s.duration.observe(e.Took)
	}
}

// add creates a series. Above maxSeries, bots share the series "other".
func (m *Metrics) add(name seriesName) any {
	m.more.Lock()
	defer m.more.Unlock()
	if m.have >= maxSeries && name.bot != noBot {
		name.bot = others
	}
	h := m.durations[name.protocol]
	if h == nil {
		h = new(histogram)
		m.durations[name.protocol] = h
	}
	s, found := m.series.LoadOrStore(name, &series{duration: h})
	if !found {
		m.have++
	}
	return s
}

// write adds the metrics of requests.
func (m *Metrics) write(x *exposition) {
	all := make(map[string]*series)
	m.series.Range(func(k, v any) bool {
		name := k.(seriesName)
		all[labels("bot", name.bot, "endpoint", string(name.endpoint), "outcome", string(name.outcome), "protocol", name.protocol)] = v.(*series)
		return true
	})
	order := slices.Sorted(maps.Keys(all))
	x.metric("millrace_requests_total", "counter", "Responses, by protocol, endpoint, outcome and operator of the bot (none for other clients).")
	for _, l := range order {
		x.sample("millrace_requests_total", l, float64(all[l].requests.Load()))
	}
	x.metric("millrace_response_body_bytes_total", "counter", "Bytes of response bodies sent.")
	for _, l := range order {
		x.sample("millrace_response_body_bytes_total", l, float64(all[l].bytes.Load()))
	}
	m.more.Lock()
	durations := maps.Clone(m.durations)
	m.more.Unlock()
	x.metric("millrace_request_duration_seconds", "histogram", "Duration of requests, except event streams.")
	for _, protocol := range slices.Sorted(maps.Keys(durations)) {
		durations[protocol].write(x, "millrace_request_duration_seconds", "protocol", protocol)
	}
}

// WriteMetrics writes the metrics of the site, without those of the process, in the text format of
// Prometheus. Options.Metrics must be set.
func (g *Gateway) WriteMetrics(w io.Writer) error {
	_, err := g.exposition().WriteTo(w)
	return err
}

// exposition returns the metrics of the site.
func (g *Gateway) exposition() *exposition {
	x := new(exposition)
	g.o.Metrics.write(x)
	g.writeState(x)
	return x
}

// writeState adds the current state of the gateway.
func (g *Gateway) writeState(x *exposition) {
	now := time.Now()
	gauge := func(name, help string, v float64) {
		x.metric(name, "gauge", help)
		x.sample(name, "", v)
	}
	since := func(name, help, ageName, ageHelp string, t time.Time) {
		if t.IsZero() {
			gauge(name, help, 0)
			return
		}
		gauge(name, help, float64(t.UnixMilli())/1000)
		gauge(ageName, ageHelp, max(0, now.Sub(t).Seconds()))
	}
	gauge("millrace_requests_active", "Requests in progress.", float64(g.guard.Active()))
	gauge("millrace_streams_open", "Event streams in progress.", float64(g.guard.Listening()))
	var ed *edition.Edition
	if g.server != nil {
		ed = g.server.Current()
	}
	if ed != nil {
		site := ed.View.Site()
		gauge("millrace_edition_sequence", "Sequence number of the published edition.", float64(site.Seq))
		gauge("millrace_edition_pages", "Number of pages in the published edition, including archive pages, which protocols do not list.", float64(site.Pages))
		since("millrace_edition_changed_timestamp_seconds", "Time of the newest change in the published edition.",
			"millrace_edition_age_seconds", "Time since the newest change in the published edition.", site.Time)
		builder := 0.0
		if g.server.Builder() {
			builder = 1
		}
		gauge("millrace_edition_builder", "1 if this process builds the editions, 0 if it follows another one.", builder)
		last, waiting := g.server.Lag()
		gauge("millrace_edition_lag_seconds", "Time from a commit until its changes are visible: that of the last publication, or the age of a waiting change if that is longer.", max(last, waiting).Seconds())
		responses, saved := g.server.SentAsChanges()
		x.metric("millrace_changes_sent_total", "counter", "Responses that were coded against an earlier version.")
		x.sample("millrace_changes_sent_total", "", float64(responses))
		x.metric("millrace_changes_saved_bytes_total", "counter", "Bytes saved by coding responses against an earlier version, compared with their plain coding.")
		x.sample("millrace_changes_saved_bytes_total", "", float64(saved))
	}
	o := &g.o.MetricsOptions
	if o.LastScan != nil {
		at, failed := o.LastScan()
		since("millrace_source_scanned_timestamp_seconds", "Time of the last scan of the source, 0 before the first.",
			"millrace_source_scan_age_seconds", "Time since the last scan of the source.", at)
		bad := 0.0
		if failed {
			bad = 1
		}
		gauge("millrace_source_scan_failed", "1 if the last scan of the source failed.", bad)
	}
	if o.Replicas != nil {
		gauge("millrace_replicas", "Number of processes that serve the site from the same store.", float64(o.Replicas()))
	}
	if o.Fleet != nil {
		if st := o.Fleet(); st != nil && st.Sites > 0 {
			x.fleet(st)
		}
	}
	if o.Dropped != nil {
		x.metric("millrace_events_dropped_total", "counter", "Bot events that were dropped because they could not be recorded.")
		x.sample("millrace_events_dropped_total", "", float64(o.Dropped()))
	}
	if o.Behind != nil {
		all, names, seen := o.Behind(), []string(nil), make(map[string]int)
		for _, b := range all {
			name := label(b.Name)
			if seen[name]++; seen[name] > 1 {
				name += " " + strconv.Itoa(seen[name]) // distinguishes receivers with the same text
			}
			names = append(names, labels("exporter", name))
		}
		x.metric("millrace_exporter_waiting_events", "gauge", "Events that wait to be sent to a service.")
		for i, b := range all {
			x.sample("millrace_exporter_waiting_events", names[i], float64(b.Events))
		}
		x.metric("millrace_exporter_lag_seconds", "gauge", "Age of the oldest event that waits to be sent to a service.")
		for i, b := range all {
			x.sample("millrace_exporter_lag_seconds", names[i], max(0, b.Age.Seconds()))
		}
	}
}

// metrics serves the metrics to clients that may read them. For other clients, the path belongs to
// the site.
func (g *Gateway) metrics(w *response, r *http.Request) (bool, error) {
	if r.URL.Path != metricsPath || r.Method != http.MethodGet && r.Method != http.MethodHead || !w.near() {
		return false, nil
	}
	w.silent = true
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	x := g.exposition()
	metrics.WriteProcessMetrics(x)
	metrics.WriteFDMetrics(x)
	_, err := x.WriteTo(w)
	return true, err
}

// passed lists the header fields that proxies add.
var passed = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via", "Cdn-Loop"}

// near reports whether a request comes from this machine, a private network or a network that may
// read the metrics.
//
// Requests through untrusted proxies are never near, because the client is unknown; HTTP/1.0
// indicates a proxy that adds no header fields. Requests from scripts are never near either.
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
