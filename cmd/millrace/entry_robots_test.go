package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/protocol/all"
)

// millrace lets robots fetch machine documents of a site whose robots.txt blocks them.
// A pull by each protocol works, and check accepts robots.txt. With the site's own
// robots.txt, each pull is refused, and check reports it.
func TestEntryRobots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"index.html", "a.html", "b.html"} {
		write(t, filepath.Join(dir, name), "<title>Page "+name+"</title><p>We sell wheels that turn, and nothing else, in "+name+".</p>")
	}
	const own = "User-agent: *\nDisallow: /\n"
	write(t, filepath.Join(dir, "robots.txt"), own)
	s := serve(t, dir, "--also", "tct-03")
	_, _, robots := get(t, s.url+"robots.txt")
	for _, want := range []string{"Disallow: /\n", "Allow: /.well-known/openfeeder.json\n", "Allow: /openfeeder\n"} {
		if !strings.Contains(robots, want) {
			t.Errorf("%q is missing in\n%s", want, robots)
		}
	}
	to, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	closed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			_, _ = w.Write([]byte(own))
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(closed.Close)
	for _, proto := range all.Protocols() {
		t.Run(proto.Name, func(t *testing.T) {
			for at, open := range map[string]bool{s.url: true, closed.URL + "/": false} {
				var r agent.Report
				code, out, errs := command(t, nil, "pull", at, "--via", proto.Name, "--allow-private", "--json", "--store", filepath.Join(t.TempDir(), "mirror.db"))
				if err := json.Unmarshal([]byte(out), &r); err != nil {
					t.Fatalf("%v: %s%s", err, out, errs)
				}
				if open != (code == 0 && r.Added == 3) || !open && r.Code != "robots-disallow" {
					t.Errorf("pull %s: exit %d, %+v %s", at, code, r, errs)
				}
				var report check.Report
				_, out, errs = command(t, nil, "check", at, "--protocol", proto.Name, "--allow-private", "--json")
				if err := json.Unmarshal([]byte(out), &report); err != nil {
					t.Fatalf("%v: %s%s", err, out, errs)
				}
				rules := []string{proto.Name + "/rfc9309-2.2.2/entry", proto.Name + "/11/robots-txt", proto.Name + "/E.7/robots-txt"}
				found := slices.ContainsFunc(report.Findings, func(f check.Finding) bool {
					return slices.Contains(rules, f.Rule) && strings.HasSuffix(f.URL, "/robots.txt")
				})
				if found == open || !report.Protocols[proto.Name].Found {
					t.Errorf("check %s: %+v", at, report)
				}
			}
		})
	}
}
