package gateway

import "github.com/millrace/millrace/store"

// fleet writes the counts of the sites that workers pull into the store.
func (x *exposition) fleet(st *store.FleetStats) {
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
