package simulation

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"
)

// balancer sends each request to one of the replicas, and passes every response to the
// oracle.
type balancer struct{ n *network }

// ServeHTTP forwards a request. If the replica is unreachable or interrupts its response, the
// client gets a 502 or a broken connection, as from any proxy.
func (b *balancer) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	w := b.n.w
	l := w.pick(b.n.rng)
	if l == nil {
		w.logf("%s %s: no replica", r.Method, r.URL)
		http.Error(to, "no replica", http.StatusServiceUnavailable)
		return
	}
	x := w.oracle.ask(l, r)
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = "http", host, ""
	resp, err := l.transport.RoundTrip(out)
	if err != nil {
		w.logf("%s %s at %s: %v", r.Method, r.URL, l.name, err)
		http.Error(to, "bad gateway", http.StatusBadGateway)
		return
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if w.broken.oldBody && l.name == replicaName(0) && strings.HasSuffix(r.URL.Path, ".json") && resp.StatusCode == http.StatusOK {
		body = w.oracle.first(r, resp, body)
	}
	if err == nil {
		x.answered(resp, body)
	}
	h := to.Header()
	for name, v := range resp.Header {
		h[name] = v
	}
	to.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(to, bytes.NewReader(body))
	if err != nil {
		w.logf("%s %s at %s was interrupted: %v", r.Method, r.URL, l.name, err)
		panic(http.ErrAbortHandler)
	}
}

// exchange is one request, with the edition that was published when it was sent.
type exchange struct {
	o     *oracle
	l     *process
	r     *http.Request
	at    time.Time
	lo    int // index of the replica's edition; -1 = none
	known int // index of the oldest edition that the replica must have seen; -1 = none
	turn  int // of the requests and responses, in order
}
