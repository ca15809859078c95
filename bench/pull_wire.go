package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// wire is a network that records all traffic of its connections.
type wire struct {
	mu    sync.Mutex
	conns []*tapped
}

// tapped is one connection with its sent and received bytes.
type tapped struct {
	net.Conn
	sent, received bytes.Buffer
}

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	t := &tapped{Conn: c}
	w.mu.Lock()
	w.conns = append(w.conns, t)
	w.mu.Unlock()
	return t, nil
}

func (t *tapped) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.received.Write(p[:n])
	return n, err
}

func (t *tapped) Write(p []byte) (int, error) {
	n, err := t.Conn.Write(p)
	t.sent.Write(p[:n])
	return n, err
}

// exchange is one request and its response, as on the wire.
type exchange struct {
	path   string
	status int
	coding string
	body   []byte // as received, with its content coding
}

// traffic is all traffic of a network.
type traffic struct {
	exchanges      []exchange
	sent, received int64
	bodies         int64 // bytes of response bodies, part of received
}

// read parses the exchanges; no connection may be active.
func (w *wire) read() (t traffic, err error) {
	for _, c := range w.conns {
		t.sent += int64(c.sent.Len())
		t.received += int64(c.received.Len())
		asked, answered := bufio.NewReader(&c.sent), bufio.NewReader(&c.received)
		for {
			req, err := http.ReadRequest(asked)
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return t, fmt.Errorf("parse request: %w", err)
			}
			resp, err := http.ReadResponse(answered, req)
			if err != nil {
				return t, fmt.Errorf("parse response of %s: %w", req.URL, err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil {
				return t, fmt.Errorf("read body of %s: %w", req.URL, err)
			}
			t.bodies += int64(len(body))
			t.exchanges = append(t.exchanges, exchange{req.URL.RequestURI(), resp.StatusCode, resp.Header.Get("Content-Encoding"), body})
		}
	}
	return t, nil
}

// alone returns the size of the exchange's document, compressed by itself in the same coding at the
// library's default level. If the body had no coding, alone uses brotli.
func (e *exchange) alone() (int64, error) {
	plain := e.body
	var err error
	switch {
	case e.coding == "br":
		plain, err = io.ReadAll(brotli.NewReader(bytes.NewReader(e.body)))
	case e.zstd():
		var d *zstd.Decoder
		if d, err = zstd.NewReader(bytes.NewReader(e.body)); err == nil {
			plain, err = io.ReadAll(d)
			d.Close()
		}
	case e.coding == "gzip":
		var d *gzip.Reader
		if d, err = gzip.NewReader(bytes.NewReader(e.body)); err == nil {
			plain, err = io.ReadAll(d)
		}
	case e.coding != "":
		err = errors.New("unknown coding")
	}
	if err != nil {
		return 0, fmt.Errorf("%s, %q: %w", e.path, e.coding, err)
	}
	var out bytes.Buffer
	var enc io.WriteCloser = brotli.NewWriter(&out)
	switch {
	case e.zstd():
		if enc, err = zstd.NewWriter(&out); err != nil {
			return 0, err
		}
	case e.coding == "gzip":
		enc = gzip.NewWriter(&out)
	}
	if _, err := enc.Write(plain); err != nil {
		return 0, err
	}
	err = enc.Close()
	return int64(out.Len()), err
}

// zstd reports whether the response is coded in zstd, or is a zstd file.
func (e *exchange) zstd() bool {
	return e.coding == "zstd" || bytes.HasPrefix(e.body, []byte("\x28\xb5\x2f\xfd"))
}
