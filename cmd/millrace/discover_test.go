package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/protocol/all"
)

func discovered(t *testing.T, url string, args ...string) (r agent.Discovery, code int) {
	t.Helper()
	code, out, errs := command(t, nil, append([]string{"discover", url, "--allow-private", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("exit %d, %v:\n%s%s", code, err, out, errs)
	}
	return r, code
}

// discover lists every way to read a published site, and a pull uses the recommended way at about
// the stated cost.
func TestDiscover(t *testing.T) {
	t.Parallel()
	s := serve(t, copySite(t, "sphinx"), "--also", "tct-03")
	r, code := discovered(t, s.url)
	if code != exitGood || r.Site != s.url+"/" && r.Site != s.url {
		t.Fatalf("exit %d: %+v", code, r)
	}
	if len(r.Ways) != len(all.Protocols())+1 || len(r.Absent) != 0 || r.Requests > 34 {
		t.Errorf("%d requests, ways %+v, absent %v", r.Requests, r.Ways, r.Absent)
	}
	for _, w := range r.Ways {
		if w.Pages < 1 || w.Entry == "" || w.Carries == "" || !w.Allowed || w.Reason != "" || w.FirstRequests < 1 || w.FirstBytes < 1 || w.RefreshRequests < 1 {
			t.Errorf("%+v", w)
		}
	}
	if r.First == "" || r.Refresh == "" || r.First != r.Plan.First.Primary || r.Plan.First.Why == "" {
		t.Errorf("%+v", r.Plan)
	}
	got := pullBest(t, s.url, filepath.Join(t.TempDir(), "m.db"))
	if got.Via != r.First {
		t.Errorf("pull uses %s, discover recommends %s", got.Via, r.First)
	}
	code, out, errs := command(t, nil, "discover", s.url, "--allow-private")
	if code != exitGood || strings.Contains(errs, "ERROR") {
		t.Errorf("exit %d: %s", code, errs)
	}
	_, table, _ := strings.Cut(out, "PROTOCOL")
	table, _, _ = strings.Cut("PROTOCOL"+table, "begins at")
	for line := range strings.Lines(table) {
		if len(line) > 80 {
			t.Errorf("longer than a terminal line: %s", line)
		}
	}
	for _, want := range []string{"PROTOCOL", "TCT 01", "SCP begins at " + address(s) + "sitemap.xml", "robots.txt: the root is allowed", "first: pull would read " + all.Label(r.First) + ":", "refresh: pull would read " + all.Label(r.Refresh) + ":"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

// If there is no way to read a site, discover prints the reason in one line.
func TestDiscoverNothing(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("/robots.txt", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("User-agent: *\nDisallow: /\nContent-Signal: ai-train=no\x1b[31m\n"))
	})
	closed := httptest.NewServer(mux)
	defer closed.Close()
	r, code := discovered(t, closed.URL)
	if code != exitFailure || r.First != "" || r.Robots.RootAllowed || !slices.ContainsFunc(r.Ways, func(w agent.DiscoveredWay) bool { return w.Code == "robots-disallow" }) {
		t.Errorf("exit %d: %+v", code, r)
	}
	if len(r.Robots.Statements) != 1 || r.Robots.Statements[0].Name != "content-signal" {
		t.Errorf("%+v", r.Robots)
	}
	code, out, _ := command(t, nil, "discover", closed.URL, "--allow-private")
	if code != exitFailure || strings.Contains(out, "\x1b") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	away := httptest.NewServer(http.RedirectHandler(closed.URL+"/", http.StatusFound))
	defer away.Close()
	if r, code := discovered(t, away.URL, "--ignore-policy"); code != exitFailure || r.Moved != closed.URL+"/" {
		t.Errorf("exit %d: %+v", code, r)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	for url, want := range map[string]int{gone.URL: exitFailure, "example.com": exitUsage, "https://user:hush@example.com/": exitUsage} {
		code, out, errs := command(t, nil, "discover", url, "--allow-private")
		if code != want || out != "" || strings.Count(errs, "\n") != 1 || strings.Contains(errs, "hush") {
			t.Errorf("%s: exit %d, want %d: %s%s", url, code, want, out, errs)
		}
	}
}
