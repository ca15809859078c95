package gateway

import (
	"bytes"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/store"
)

// exposition is a list of metrics in the text format of Prometheus, version 0.0.4.
type exposition struct{ bytes.Buffer }

// metric begins a metric. Its samples follow.
func (x *exposition) metric(name, kind, help string) {
	fmt.Fprintf(x, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// sample adds a value to the current metric.
func (x *exposition) sample(name, labels string, v float64) {
	x.WriteString(name + labels + " " + strconv.FormatFloat(v, 'g', -1, 64) + "\n")
}

// label makes a text valid as the value of a label.
func label(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// labels returns the labels of a sample. pairs are names, each followed by its value, which is
// valid UTF-8.
func labels(pairs ...string) string {
	var b strings.Builder
	before := byte('{')
	for i := 0; i < len(pairs); i += 2 {
		b.WriteByte(before)
		b.WriteString(pairs[i] + `="` + labelEscapes.Replace(pairs[i+1]) + `"`)
		before = ','
	}
	b.WriteByte('}')
	return b.String()
}

// bounds are the upper bounds of durations, in seconds.
var bounds = [...]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// histogram counts durations. It is safe for concurrent use.
type histogram struct {
	counts [len(bounds) + 1]atomic.Uint64 // counts by bound; the last one counts longer durations
	sum    atomic.Int64                   // nanoseconds
}

func (h *histogram) observe(d time.Duration) {
	h.counts[sort.SearchFloat64s(bounds[:], d.Seconds())].Add(1)
	h.sum.Add(int64(d))
}

// write adds the samples of a histogram with one label.
func (h *histogram) write(x *exposition, name, label, value string) {
	total := uint64(0)
	for i := range h.counts {
		total += h.counts[i].Load()
		le := "+Inf"
		if i < len(bounds) {
			le = strconv.FormatFloat(bounds[i], 'g', -1, 64)
		}
		x.sample(name+"_bucket", labels(label, value, "le", le), float64(total))
	}
	x.sample(name+"_sum", labels(label, value), time.Duration(h.sum.Load()).Seconds())
	x.sample(name+"_count", labels(label, value), float64(total))
}

// fleet writes the counts of the sites that workers pull into the store.
func (x *exposition) fleet(st *store.FleetStats) {
	x.metric("millrace_fleet_counted_timestamp_seconds", "gauge", "Time of the counts of the sites that watch --all pulls.")
	x.sample("millrace_fleet_counted_timestamp_seconds", "", float64(st.Time.Unix()))
	x.metric("millrace_fleet_sites", "gauge", "Sites that watch --all pulls: all, paused, new, failing, and due now.")
	for _, s := range []struct {
		state string
		n     int
	}{{"all", st.Sites}, {"paused", st.Paused}, {"new", st.New}, {"failing", st.Failing}, {"due", st.Due}} {
		x.sample("millrace_fleet_sites", labels("state", s.state), float64(s.n))
	}
	x.metric("millrace_fleet_leases", "gauge", "Groups of hosts that workers are pulling from.")
	x.sample("millrace_fleet_leases", "", float64(st.Leased))
	x.metric("millrace_fleet_lag_seconds", "gauge", "Time since sites became due: percentiles of all sites that are not paused.")
	for i, q := range []string{"0.5", "0.9", "0.99", "1"} {
		x.sample("millrace_fleet_lag_seconds", labels("quantile", q), st.Lag[i].Seconds())
	}
	x.metric("millrace_fleet_requests_total", "counter", "Requests of all pulls of these sites.")
	x.sample("millrace_fleet_requests_total", "", float64(st.Requests))
	x.metric("millrace_fleet_received_bytes_total", "counter", "Bytes received by all pulls of these sites.")
	x.sample("millrace_fleet_received_bytes_total", "", float64(st.Received))
}
