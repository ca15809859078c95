package dashboard

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/pipenet"
)

// loop asks a handler of this process over connections in memory, so that a
// client sees what one over the network would: the fields that a server adds,
// and bodies as they are framed. It fetches nothing else: a URL of another
// origin fails with [check.ErrLimit].
type loop struct {
	origins   map[string]bool // such as "https://example.com"
	key       string          // "" = none is shown
	server    *http.Server
	transport *http.Transport
}

// newLoop returns one for the origins of these URLs. key is shown wherever
// machines show theirs. Close it.
func newLoop(h http.Handler, key string, urls ...string) *loop {
	l := &loop{
		origins: make(map[string]bool), key: key,
		server: &http.Server{
			Handler: h, ReadHeaderTimeout: 10 * time.Second,
			ErrorLog: log.New(io.Discard, "", 0), // the handler tells of its own failures
		},
	}
	dial := pipenet.Serve(l.server).Dial // until Close
	l.transport = &http.Transport{
		DialContext: dial,
		// What is https to the client is plain to the handler, as behind a proxy.
		DialTLSContext: dial, DisableCompression: true, MaxResponseHeaderBytes: 1 << 20,
	}
	for _, u := range urls {
		l.origins[originOf(u)] = true
	}
	return l
}

// Close ends every request that is under way.
func (l *loop) Close() {
	l.transport.CloseIdleConnections()
	_ = l.server.Close() // the listener has nothing that could fail
}

// client returns the client of it.
func (l *loop) client() *http.Client { return &http.Client{Transport: l} }

// RoundTrip implements [http.RoundTripper].
func (l *loop) RoundTrip(r *http.Request) (*http.Response, error) {
	if !l.origins[r.URL.Scheme+"://"+strings.ToLower(r.URL.Host)] {
		return nil, fmt.Errorf("%s://%s is another site, which is not asked from here: %w", r.URL.Scheme, r.URL.Host, check.ErrLimit)
	}
	// What everybody has to see is asked for as a stranger does.
	if l.key != "" && !strings.HasPrefix(r.URL.Path, "/.well-known/") {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+l.key)
	}
	return l.transport.RoundTrip(r)
}

// originOf returns the scheme and the host of a URL.
func originOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}
