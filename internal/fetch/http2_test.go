package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// If a server with TLS supports HTTP/2, requests use it, through the checked connection.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	for want, enabled := range map[int]bool{1: false, 2: true} {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != want {
				w.WriteHeader(http.StatusTeapot)
			}
		}))
		srv.EnableHTTP2 = enabled
		srv.StartTLS()
		defer srv.Close()
		at, err := url.Parse(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		c := New(&Options{AllowPrivate: true, IgnoreRobots: true})
		up, err := Upstream(at, nil)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AddCert(srv.Certificate())
		c.transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
		up.TLSClientConfig.RootCAs = pool
		for _, client := range []*http.Client{c.HTTP(), {Transport: up}} {
			resp, err := client.Get(srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.ProtoMajor != want || resp.StatusCode != http.StatusOK {
				t.Errorf("%s %s, want HTTP/%d", resp.Proto, resp.Status, want)
			}
		}
		c.CloseIdleConnections()
		up.CloseIdleConnections()
		private := New(&Options{IgnoreRobots: true})
		private.transport.TLSClientConfig = c.transport.TLSClientConfig
		if resp, err := private.HTTP().Get(srv.URL); err == nil {
			_ = resp.Body.Close()
			t.Error("a loopback address is allowed")
		}
	}
}
