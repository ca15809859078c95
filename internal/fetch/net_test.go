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

// memory returns an in-memory dial function whose connections all reach handler. It works with
// fake time.
func memory(t *testing.T, handler http.HandlerFunc) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	srv := &http.Server{Handler: handler}
	t.Cleanup(func() { _ = srv.Close() })
	return pipenet.Serve(srv).Dial
}

// raw returns a dial function whose servers write a response to each request with answer. The
// connection closes when answer returns.
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

// newClient returns a client without delays and without robots.txt; see obedient. It is closed
// at the end of the test.
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

// obedient returns a client that obeys robots.txt.
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

// fetchBody sends a request, checks the status and reads the body, as a protocol does.
func fetchBody(t *testing.T, c *Client, url string) (string, error) {
	t.Helper()
	resp, err := Do(t.Context(), c.HTTP(), get(t, url))
	if err != nil {
		return "", err
	}
	b, err := ReadBody(resp, 0)
	return string(b), err
}

// wantErr fails unless err is of the kind and, if code is not empty, has the code.
func wantErr(t *testing.T, err, kind error, code string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("error %v is not %v", err, kind)
	}
	if got := millrace.ErrorCode(err); code != "" && got != code {
		t.Errorf("error %v has the code %q, want %q", err, got, code)
	}
}
