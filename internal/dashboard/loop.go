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

// loop sends requests to a handler in this process over connections in memory, so that its client
// receives the framing and the fields that a server adds.
type loop struct {
	own       *ownRequests
	server    *http.Server
	transport *http.Transport
}

// newLoop returns a loop for the origins of urls. It sends the key with each request, except for
// paths below /.well-known/. The caller must call Close.
func newLoop(h http.Handler, key string, urls ...string) *loop {
	l := &loop{
		server: &http.Server{
			Handler: h, ReadHeaderTimeout: 10 * time.Second,
			ErrorLog: log.New(io.Discard, "", 0), // the handler logs its own failures
		},
	}
	dial := pipenet.Serve(l.server).Dial // the server runs until Close
	l.transport = &http.Transport{
		DialContext: dial,
		// The handler receives https as plain HTTP, as behind a proxy.
		DialTLSContext: dial, DisableCompression: true, MaxResponseHeaderBytes: 1 << 20,
	}
	l.own = newOwnRequests(l.transport, key, urls...)
	return l
}

// Close ends all requests.
func (l *loop) Close() {
	l.transport.CloseIdleConnections()
	_ = l.server.Close() // closing the listener cannot fail
}

// client returns an HTTP client that sends its requests to the handler.
func (l *loop) client() *http.Client { return &http.Client{Transport: l.own} }

// ownRequests sends requests of the owner to the site. A URL of another origin fails with
// [check.ErrLimit].
type ownRequests struct {
	origins map[string]bool   // such as "https://example.com"
	key     string            // may be empty
	mark    func(http.Header) // marks requests as the owner's. If nil, they need no mark.
	next    http.RoundTripper
}

// newOwnRequests returns a transport for requests to the origins of urls. It sends them with next.
func newOwnRequests(next http.RoundTripper, key string, urls ...string) *ownRequests {
	o := &ownRequests{origins: make(map[string]bool), key: key, next: next}
	for _, u := range urls {
		o.origins[originOf(u)] = true
	}
	return o
}

// RoundTrip implements [http.RoundTripper]. It sends the key with each request, except for paths
// below /.well-known/, whose documents are public.
func (o *ownRequests) RoundTrip(r *http.Request) (*http.Response, error) {
	if !o.origins[r.URL.Scheme+"://"+strings.ToLower(r.URL.Host)] {
		return nil, fmt.Errorf("fetch %s://%s: not this site: %w", r.URL.Scheme, r.URL.Host, check.ErrLimit)
	}
	r = r.Clone(r.Context())
	if o.key != "" && !strings.HasPrefix(r.URL.Path, "/.well-known/") {
		r.Header.Set("Authorization", "Bearer "+o.key)
	}
	if o.mark != nil {
		o.mark(r.Header)
	}
	return o.next.RoundTrip(r)
}

// originOf returns the scheme and the host of a URL.
func originOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}
