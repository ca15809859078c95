package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// If a limit ends a check or a probe, the exit code is 3, not that of a site without protocols.
func TestInconclusive(t *testing.T) {
	t.Parallel()
	big := bytes.Repeat([]byte("<p>text</p> "), 34<<20/12)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(big)
	}))
	t.Cleanup(srv.Close)
	for _, args := range [][]string{{"check", srv.URL}, {"discover", srv.URL}, {"check", "--protocol", "scp", srv.URL}} {
		code, out, errs := command(t, nil, append(args, "--allow-private")...)
		if code != exitUnclear || !strings.Contains(out, "inconclusive: ") {
			t.Errorf("millrace %s: exit %d\n%s%s", args, code, out, errs)
		}
	}
}

// A probe that ends before the site responds is inconclusive. A robots.txt with a server error is a
// failure that disallows all pages.
func TestNoResponse(t *testing.T) {
	for _, c := range []struct {
		robots, exit int
		code         string
	}{{404, exitUnclear, "probe-timeout"}, {500, exitFailure, "robots-unavailable"}} {
		bubble(t, 0, func(t *testing.T, n *internet) {
			n.put("slow.test:80", &place{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/robots.txt" {
					w.WriteHeader(c.robots)
					return
				}
				<-r.Context().Done()
			})})
			var out, errs buffer
			p := newProcess(environment(map[string]string{"HOME": t.TempDir()}), strings.NewReader(""), &out, &errs)
			p.dial = n.dial
			exit := p.run(t.Context(), []string{"discover", "http://slow.test/", "--json"})
			if exit != c.exit || !strings.Contains(out.String(), `"`+c.code+`"`) {
				t.Errorf("robots.txt with %d: exit %d: %s%s", c.robots, exit, out.String(), errs.String())
			}
		})
	}
}

// --max-time limits a pull by any way. The next pull continues.
func TestPullMaxTime(t *testing.T) {
	t.Parallel()
	var slow atomic.Bool
	b := serveBehind(t, manyPages(t, 12))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slow.Load() && strings.Contains(r.URL.Path, "page") {
			select {
			case <-r.Context().Done():
			case <-time.After(5 * time.Minute):
			}
			return
		}
		onward(b.url).ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	for _, via := range []string{"", "crawl", "tct-01"} {
		slow.Store(true)
		began := time.Now()
		args := append([]string{"pull", srv.URL, "--allow-private", "--json", "--max-time", "1s", "--store", filepath.Join(t.TempDir(), "m.db")}, by(via)...)
		code, out, _ := command(t, nil, args...)
		if took := time.Since(began); took > 2*time.Minute || !strings.Contains(out, "--max-time 1s") {
			t.Errorf("by %q: exit %d after %s: %s", via, code, took, out)
		}
	}
}

// A lack of file descriptors is reported with a remedy.
func TestTooManyFiles(t *testing.T) {
	t.Parallel()
	var out buffer
	p := newProcess(environment(nil), nil, &out, &out)
	p.fail("pull", fmt.Errorf("open mirror: %w", &os.PathError{Op: "open", Path: "x", Err: syscall.EMFILE}))
	if !strings.Contains(out.String(), "ulimit -n") {
		t.Error(out.String())
	}
}
