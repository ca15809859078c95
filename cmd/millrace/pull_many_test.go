package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/agent"
)

// siteAt serves a few HTML pages at a loopback address of its own.
func siteAt(t *testing.T, addr string, handle func(w http.ResponseWriter, r *http.Request) bool) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only one loopback address")
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr+":0")
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handle(w, r) {
			return
		}
		switch r.URL.Path {
		case "/", "/a.html":
			_, _ = fmt.Fprint(w, `<!DOCTYPE html><title>A mill</title><main><h1>A mill</h1><p>Words about a mill, at some length, for those who want to know.</p><a href=/a.html>more</a></main>`)
		default:
			http.NotFound(w, r)
		}
	}))
	_ = srv.Listener.Close()
	srv.Listener = ln
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL + "/"
}

// pull reads several sites at once: a slow site and a dead site do not block the
// others. Reports come in the order of the sites.
func TestPullSeveral(t *testing.T) {
	t.Parallel() // the test mostly waits
	quick := make(chan struct{})
	var once sync.Once
	slow := siteAt(t, "127.0.0.2", func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-quick:
		case <-r.Context().Done():
		case <-time.After(5 * time.Minute):
			t.Error("the slow site blocked the other one")
		}
		return false
	})
	good := siteAt(t, "127.0.0.3", func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/a.html" {
			time.AfterFunc(200*time.Millisecond, func() { once.Do(func() { close(quick) }) })
		}
		return false
	})
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	file := filepath.Join(t.TempDir(), "m.db")
	code, out, errs := command(t, nil, "pull", slow, gone.URL, good, slow+"a.html", "--store", file, "--allow-private", "--json", "--workers", "3")
	var reports []agent.Report
	if err := json.Unmarshal([]byte(out), &reports); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	var sites []string
	for _, r := range reports {
		sites = append(sites, r.Site)
	}
	if want := []string{slow, gone.URL + "/", good, slow}; !slices.Equal(sites, want) || code != exitFailure {
		t.Fatalf("exit %d: %v, want %v", code, sites, want)
	}
	if reports[0].Added == 0 || reports[0].Error != "" || reports[2].Added == 0 || reports[2].Error != "" || reports[1].Code != "connection-refused" {
		t.Errorf("%+v", reports)
	}
	if reports[3].Added+reports[3].Updated != 0 || reports[3].Error != "" {
		t.Errorf("the second pull of one site did not follow the first: %+v", reports[3])
	}
	for _, site := range []string{slow, good} {
		if n := len(storedPages(t, file, site, site)); n == 0 {
			t.Errorf("%s: %d pages", site, n)
		}
	}
}
