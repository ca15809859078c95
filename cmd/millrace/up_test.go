package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/setup/apply"
	"github.com/millrace/millrace/internal/testkit"
)

// upped is a `millrace up` that was started.
type upped struct {
	apply.Report
	errs *buffer
	stop func() int
}

// startUp runs `millrace up --json` until it reports or ends. code is its exit status, or -1
// while it runs.
func startUp(t *testing.T, args ...string) (u *upped, code int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out := &buffer{}
	u = &upped{errs: &buffer{}}
	p := newProcess(environment(map[string]string{"HOME": t.TempDir()}), strings.NewReader(""), out, u.errs)
	done := make(chan int, 1)
	go func() { done <- p.run(ctx, append([]string{"up", "--json"}, args...)) }()
	u.stop = sync.OnceValue(func() int { cancel(); return <-done })
	t.Cleanup(func() { u.stop() })
	deadline := time.After(5 * time.Minute)
	for {
		if json.Unmarshal([]byte(out.String()), &u.Report) == nil && u.Config != "" {
			checkReport(t, []string{"up", "--json"}, out.String())
			return u, -1
		}
		select {
		case code := <-done:
			done <- code // for stop
			return u, code
		case <-deadline:
			t.Fatalf("no report:\n%s", u.errs)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, listen := filepath.Join(dir, "millrace.yaml"), "127.0.0.1:"+testkit.FreePort(t)
	u, code := startUp(t, copySite(t, "handbook"), "--config", file, "--listen", listen, "--policy-refuse", "ai-train", "--policy-allow", "search", "--dashboard", "/board")
	if code != -1 || u.URL != "http://"+listen+"/" || u.Dashboard != u.URL+"board/" || len(u.Password) < 24 {
		t.Fatalf("exit %d: %+v\n%s", code, u.Report, u.errs)
	}
	if want := "millrace check " + u.URL + " --allow-private"; !slices.Contains(u.Next, want) {
		t.Errorf("next %q, want %s", u.Next, want)
	}
	if status, _, body := get(t, u.URL+"robots.txt"); status != http.StatusOK || !strings.Contains(body, "ai-train=no") {
		t.Errorf("%d %s", status, body)
	}
	if status, _, body := get(t, u.Dashboard+"login"); status != http.StatusOK || !strings.Contains(body, "current-password") {
		t.Errorf("dashboard: %d %.300s", status, body)
	}
	u.stop()
	got := map[string]any{}
	for _, v := range append(configOf(t, file).Values, configOf(t, file).Policy...) {
		got[v.Key] = v.Value
	}
	if got["place"] != "standalone" || got["listen"] != listen || got["policy.purposes.ai-train"] != false || got["policy.purposes.search"] != true || got["policy.purposes.ai-input"] != nil {
		t.Errorf("%v", got)
	}

	// An existing configuration file applies.
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	again, code := startUp(t, "--config", file)
	after, err := os.ReadFile(file)
	if code != -1 || err != nil || again.Password != "" || again.Dashboard != u.Dashboard || string(before) != string(after) {
		t.Errorf("exit %d, %v: %+v\n%s", code, err, again.Report, again.errs)
	}
	again.stop()
	if exit, code, out := failure(t, nil, "up", "--config", file, "--place", "alongside", "--apply", "nginx", "--root", t.TempDir()); exit != exitUsage || code != "usage/base-url" {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
	if exit, code, out := failure(t, nil, "up", "--config", file, "--dashboard", "/other"); exit != exitUsage || code != "usage/policy-allow" {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
}

// up writes nothing for a site that it cannot read.
func TestUpNothing(t *testing.T) {
	t.Parallel()
	closed := initSite(t, "User-agent: *\nDisallow: /\n")
	maintained := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "600")
		http.Error(w, "Briefly unavailable for scheduled maintenance. Check back in a minute.", http.StatusServiceUnavailable)
	}))
	defer maintained.Close()
	empty := t.TempDir()
	write(t, filepath.Join(empty, "style.css"), "p {}")
	busy := initSite(t, "")
	for _, tt := range []struct {
		code string
		args []string
	}{
		{"robots-disallow", []string{closed.URL}},
		{"robots-unavailable", []string{maintained.URL}},
		{"no-page", []string{empty}},
		{"file-not-found", []string{"./nowhere"}},
		{"bad-url", []string{"nowhere"}},
		{"usage", nil},
		{"usage", []string{filepath.Join(empty, "style.css")}},
		{"address-in-use", []string{busy.URL, "--listen", strings.TrimPrefix(busy.URL, "http://")}},
		{"usage/origin", []string{busy.URL, "--place", "front"}},
		{"usage/base-url", []string{copySite(t, "handbook"), "--place", "alongside"}},
		{"usage/apply", []string{busy.URL, "--place", "standalone", "--apply", "nginx"}},
		{"usage/policy-allow", []string{busy.URL, "--policy-allow", "fun"}},
	} {
		file := filepath.Join(t.TempDir(), "millrace.yaml")
		args := append([]string{"up", "--config", file, "--allow-private", "--delay", "0s", "--yes", "--listen", "127.0.0.1:0", "--root", t.TempDir()}, tt.args...)
		exit, code, out := failure(t, nil, args...)
		if _, err := os.Stat(file); exit == 0 || code != tt.code || err == nil {
			t.Errorf("%q: exit %d %s, want %s; %v:\n%s", tt.args, exit, code, tt.code, err, out)
		}
	}
}

// up reads a WordPress whose REST API returns 403 by a crawl, and one with 10,000 categories by
// the API.
func TestUpWordPress(t *testing.T) {
	t.Parallel()
	for name, forbidden := range map[string]bool{"403": true, "categories": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := fakeWordPress(t, forbidden)
			file, listen := filepath.Join(t.TempDir(), "millrace.yaml"), "127.0.0.1:"+testkit.FreePort(t)
			u, code := startUp(t, site.URL, "--config", file, "--allow-private", "--delay", "0s", "--listen", listen)
			if code != -1 {
				t.Fatalf("exit %d: %s", code, u.errs)
			}
			if status, _, body := get(t, "http://"+listen+"/llm-pages.json"); status != http.StatusOK || !strings.Contains(body, "/hello/") {
				t.Errorf("%d %.300s\n%s", status, body, u.errs)
			}
			if crawled := strings.Contains(u.errs.String(), "code=rest-forbidden"); crawled != forbidden {
				t.Errorf("crawled: %t\n%s", crawled, u.errs)
			}
		})
	}
}

// fakeWordPress is a WordPress with one post and 10,000 categories. With forbidden, its API
// returns 403.
func fakeWordPress(t *testing.T, forbidden bool) *httptest.Server {
	t.Helper()
	var categories strings.Builder
	if !forbidden {
		for i := range 10_000 {
			fmt.Fprintf(&categories, `<a href="/category/%d/">%d</a> `, i, i)
		}
	}
	var site *httptest.Server
	site = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", `<`+site.URL+`/wp-json/>; rel="https://api.w.org/"`)
		post := fmt.Sprintf(`{"id":1,"status":"publish","link":"%s/hello/","date_gmt":"2026-01-02T03:04:05","modified_gmt":"2026-01-02T03:04:05","title":{"rendered":"Hello"},
			"content":{"protected":false,"rendered":"<p>The first post of this site.</p>"},"excerpt":{"protected":false,"rendered":""}}`, site.URL)
		route, api := strings.CutPrefix(r.URL.Path, "/wp-json/")
		if api {
			w.Header().Set("Content-Type", "application/json")
		}
		switch {
		case api && forbidden:
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"code":"rest_forbidden","message":"no","data":{"status":403}}`)
		case api && route == "":
			fmt.Fprintf(w, `{"home":"%s","name":"Mill","namespaces":["wp/v2"]}`, site.URL)
		case api && route == "wp/v2/types":
			fmt.Fprint(w, `{"post":{"slug":"post","name":"Posts","rest_base":"posts","rest_namespace":"wp/v2"}}`)
		case api && route == "wp/v2/posts":
			w.Header().Set("X-WP-Total", "1")
			fmt.Fprint(w, "["+post+"]")
		case api && route == "wp/v2/posts/1":
			fmt.Fprint(w, post)
		case r.URL.Path == "/" || r.URL.Path == "/hello/":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, `<html><head><title>Hello</title><meta name="generator" content="WordPress 6.5"></head><body><h1>Hello</h1><p>The first post of this site.</p><a href="/hello/">Hello</a> %s`, categories.String())
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(site.Close)
	return site
}

// Without a journal, there is nothing to undo.
func TestUpUndoNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	code, out, errs := command(t, nil, "up", "--undo", "--root", root, "--json")
	if code != 0 || !strings.Contains(out, `"undone": []`) {
		t.Errorf("exit %d: %s %s", code, out, errs)
	}
}
