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

// loop sends requests to a handler in this process over connections in memory. So its client
// receives the framing and fields that a server adds. A URL of another origin fails with
// [check.ErrLimit].
type loop struct {
	origins   map[string]bool // such as "https://example.com"
	key       string          // "" = none
	server    *http.Server
	transport *http.Transport
}

// newLoop returns a loop for the origins of URLs. It sends the key with each request, except
// for public documents. Call Close.
func newLoop(h http.Handler, key string, urls ...string) *loop {
	l := &loop{
		origins: make(map[string]bool), key: key,
		server: &http.Server{
			Handler: h, ReadHeaderTimeout: 10 * time.Second,
			ErrorLog: log.New(io.Discard, "", 0), // the handler logs its own failures
		},
	}
	dial := pipenet.Serve(l.server).Dial // until Close
	l.transport = &http.Transport{
		DialContext: dial,
		// The handler receives https as plain HTTP, as behind a proxy.
		DialTLSContext: dial, DisableCompression: true, MaxResponseHeaderBytes: 1 << 20,
	}
	for _, u := range urls {
		l.origins[originOf(u)] = true
	}
	return l
}

// Close ends all requests.
func (l *loop) Close() {
	l.transport.CloseIdleConnections()
	_ = l.server.Close() // closing the listener cannot fail
}

// client returns an HTTP client.
func (l *loop) client() *http.Client { return &http.Client{Transport: l} }

// RoundTrip implements [http.RoundTripper].
func (l *loop) RoundTrip(r *http.Request) (*http.Response, error) {
	if !l.origins[r.URL.Scheme+"://"+strings.ToLower(r.URL.Host)] {
		return nil, fmt.Errorf("fetch %s://%s: not this site: %w", r.URL.Scheme, r.URL.Host, check.ErrLimit)
	}
	// Public documents are requested without the key.
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
