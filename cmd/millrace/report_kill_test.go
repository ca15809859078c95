package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// If a pull is killed, at most the last seconds are missing in its statistics, and nothing is
// counted twice.
func TestKillCosts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("testing.Short: a pull saves its costs every two seconds")
	}
	const pages = 200
	var asked atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		var n int
		switch _, err := fmt.Sscanf(r.URL.Path, "/p%d.html", &n); {
		case r.URL.Path == "/", err == nil && n <= pages:
			_, _ = fmt.Fprintf(w, "<!DOCTYPE html><title>Page %d</title><main><h1>Page %d</h1><p>What page %d of this site says is said here, at length.</p><a href=/p%d.html>next</a></main>",
				n, n, n, n+1)
		default:
			http.NotFound(w, r)
		}
	}))
	defer site.Close()
	file := filepath.Join(t.TempDir(), "mirror.db")
	booked := int64(0)
	for i := range int64(2) {
		before := asked.Load()
		c := asProcess(t.Context(), t, "pull", site.URL, "--store", file, "--via", "crawl", "--allow-private", "--quiet", "--delay", "100ms")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if n, err := accounts(t, file); err == nil && n > booked {
				break
			}
			if time.Now().After(deadline) {
				t.Error("nothing is saved while the pull runs")
				break
			}
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err == nil {
			t.Fatal("the pull has ended before it was killed")
		}
		var err error
		// One request of each pull may have been sent without arriving.
		if booked, err = accounts(t, file); err != nil || booked > asked.Load()+i+1 || before == asked.Load() {
			t.Fatalf("%d of %d requests are saved; %v", booked, asked.Load(), err)
		}
	}
	if r := savedReport(t, file).Sites[0]; r.Pulls != 0 || r.Failed != 0 {
		t.Errorf("killed pulls count as complete: %+v", r)
	}
	before := asked.Load()
	last := crawlInto(t, site.URL+"/", file, "--via", "crawl")
	if last.Requests != asked.Load()-before {
		t.Errorf("the last pull reports %d requests, the site received %d", last.Requests, asked.Load()-before)
	}
	r := savedReport(t, file)
	if s := r.Sites[0]; s.Pulls != 1 || s.Total.Requests.Spent != float64(booked+last.Requests) {
		t.Errorf("%d pulls, %v requests; %d were saved by killed pulls, and %d by the last one", s.Pulls, s.Total.Requests.Spent, booked, last.Requests)
	}
}

// accounts returns the number of requests saved in a store.
func accounts(t *testing.T, file string) (n int64, err error) {
	t.Helper()
	st := openStore(t, file, false)
	all, err := st.Costs().List(t.Context())
	for _, a := range all {
		n += a.Requests
	}
	return n, err
}
