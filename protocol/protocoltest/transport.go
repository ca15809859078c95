package protocoltest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
)

// Transport is a function that implements [http.RoundTripper].
type Transport func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// Answer returns a transport without a network. It passes requests for the given hosts to h, or all
// requests if no hosts are given. Other requests fail.
func Answer(h http.Handler, hosts ...string) Transport {
	return func(r *http.Request) (*http.Response, error) {
		if len(hosts) > 0 && !slices.Contains(hosts, r.URL.Hostname()) {
			return nil, fmt.Errorf("%s does not belong to the site", r.URL)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		resp := w.Result()
		resp.Request = r
		return resp, nil
	}
}
