package fetch

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/pipenet"
)

// memory is a network without a network: every connection reaches handler.
// It works with fake time.
func memory(t *testing.T, handler http.HandlerFunc) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	srv := &http.Server{Handler: handler}
	t.Cleanup(func() { _ = srv.Close() })
	return pipenet.Serve(srv).Dial
}

// raw is a network whose servers answer each request with whatever answer
// writes; the connection closes when it returns.
func raw(t *testing.T, answer func(net.Conn, *http.Request)) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	return func(context.Context, string, string) (net.Conn, error) {
		a, b := net.Pipe()
		go func() {
			defer b.Close()
			if req, err := http.ReadRequest(bufio.NewReader(b)); err == nil {
				answer(b, req)
			}
		}()
		return a, nil
	}
}

func say(c net.Conn, parts ...string) { _, _ = c.Write([]byte(strings.Join(parts, ""))) }

// newClient returns a client without delays that is closed with the test. It
// asks for no robots.txt; see obedient.
func newClient(t *testing.T, o Options) *Client {
	t.Helper()
	o.IgnoreRobots = true
	if o.Delay == 0 {
		o.Delay = -1
	}
	c := New(&o)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// obedient makes a client that obeys robots.txt.
func obedient(t *testing.T, o Options) *Client {
	t.Helper()
	c := newClient(t, o)
	c.ignoreRobots = false
	return c
}

func loopback(t *testing.T, handler http.HandlerFunc) (*Client, string) {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	return newClient(t, Options{AllowPrivate: true}), srv.URL
}

func get(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// fetchBody does the whole way of a reader.
func fetchBody(t *testing.T, c *Client, url string) (string, error) {
	t.Helper()
	resp, err := Do(t.Context(), c.HTTP(), get(t, url))
	if err != nil {
		return "", err
	}
	b, err := ReadBody(resp, 0)
	return string(b), err
}

// wantErr fails unless err is of the kind and has the code, if one is given.
func wantErr(t *testing.T, err, kind error, code string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("error %v is not %v", err, kind)
	}
	if got := millrace.ErrorCode(err); code != "" && got != code {
		t.Errorf("error %v has the code %q, want %q", err, got, code)
	}
}
