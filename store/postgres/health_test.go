//go:build unix

package postgres

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

// relay passes bytes between its clients and the socket of a server. While its lock is held, it
// passes nothing.
type relay struct {
	sync.RWMutex
	address string
}

func newRelay(t *testing.T, socket string) *relay {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	r := &relay{address: ln.Addr().String()}
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", socket)
			if err != nil {
				t.Error(err)
				return
			}
			go r.pass(client, server)
			go r.pass(server, client)
		}
	}()
	return r
}

func (r *relay) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		r.RLock()
		r.RUnlock() //nolint:staticcheck // waits
		if _, writeErr := to.Write(b[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

// TestRealSilence drops all packets to and from the server. Statements and transactions in progress
// fail, and so do new ones, until the server responds again. A statement that merely takes long
// does not fail.
func TestRealSilence(t *testing.T) {
	c := cluster(t)
	_, dsn := create(t, c)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	r := newRelay(t, filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"))
	u.Host, u.RawQuery = r.address, "sslmode=disable"
	s := openStore(t, u.String(), nil)
	site := openSite(t, s)
	s.db.health.after, s.db.health.limit = 200*time.Millisecond, time.Second
	var slept string
	if err := s.db.Reader(t.Context()).Row("SELECT CAST(pg_sleep(1) AS TEXT)", nil, &slept); err != nil {
		t.Errorf("a long statement: %v", err)
	}
	if s.db.health.checked.IsZero() {
		t.Error("a long statement was not checked")
	}

	r.Lock()
	var all sync.WaitGroup
	for range 8 { // more than the number of connections
		all.Go(func() {
			if _, err := s.Now(t.Context()); millrace.ErrorCode(err) != "store-down" {
				t.Errorf("a statement: %v", err)
			}
			if _, err := site.Apply(t.Context(), "test", pages(1, "lost")); millrace.ErrorCode(err) != "store-down" {
				t.Errorf("a transaction: %v", err)
			}
		})
	}
	all.Wait()
	r.Unlock()
	for _, err := s.Now(t.Context()); err != nil; _, err = s.Now(t.Context()) { // each call fails at once
		runtime.Gosched()
	}
	if _, err := site.Apply(t.Context(), "test", pages(1, "new")); err != nil {
		t.Error(err)
	}
	if got := titles(t, site); len(got) != 1 || got["new"] != 1 {
		t.Errorf("pages: %v", got)
	}
}

// A server without TLS, and a server with an untrusted certificate, give an error of one line.
func TestTLS(t *testing.T) {
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	for _, encrypted := range []bool{false, true} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		go func() {
			for conn, err := ln.Accept(); err == nil; conn, err = ln.Accept() {
				_, _ = io.ReadFull(conn, make([]byte, 8)) // the request for TLS
				if encrypted {
					_, _ = io.WriteString(conn, "S")
					_ = tls.Server(conn, web.TLS).Handshake()
				} else {
					_, _ = io.WriteString(conn, "N")
				}
				conn.Close()
			}
		}()
		dsn := "postgres://miller:hush@" + ln.Addr().String() + "/mill"
		refused(t, dsn+"?sslmode=verify-full", nil, "store-tls", millrace.ErrUnavailable)
		refused(t, dsn, nil, "store-down", millrace.ErrUnavailable)
		if _, err = Open(t.Context(), dsn, nil); strings.Contains(fmt.Sprint(err), "\n") {
			t.Errorf("not one line: %q", err)
		}
	}
}
