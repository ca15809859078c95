package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/export"
	"github.com/millrace/millrace/internal/library"
	"github.com/millrace/millrace/internal/outbox"
	"github.com/millrace/millrace/internal/report"
	"github.com/millrace/millrace/internal/sitelist"
)

// Workers that watch a store pull all of its sites, even sites that are added later.
func TestSites(t *testing.T) {
	t.Parallel()
	first, second := serve(t, copySite(t, "handbook")), serve(t, copySite(t, "jekyll"))
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	sites := func(args ...string) (int, sitelist.Report) {
		t.Helper()
		return sitesReport(t, mirror, args...)
	}
	list := filepath.Join(t.TempDir(), "list")
	write(t, list, first.url+"\nnot a URL\n")
	if code, r := sites("add", list); code != exitFailure || r.Added != 0 || len(r.Entries) != 1 || r.Entries[0].Line != 2 || r.Entries[0].Code != "bad-url" {
		t.Errorf("exit %d: %+v", code, r)
	}
	for _, args := range [][]string{{list, "--skip-invalid", "--webhook", "ftp://x"}, {first.url, "--label", "NO"}, {filepath.Dir(list)}, {os.DevNull}} {
		if exit, _, out := failure(t, nil, append(append([]string{"sites", "add"}, args...), "--store", mirror)...); exit != exitFailure {
			t.Errorf("%v: exit %d: %s", args, exit, out)
		}
	}
	if _, err := os.Stat(mirror); err == nil {
		t.Error("a refused command has created the store")
	}
	if code, r := sites("add", list, "--skip-invalid", "--label", "books"); code != exitGood || r.Added != 1 {
		t.Errorf("exit %d: %+v", code, r)
	}
	if code, r := sites("add", second.url, list+" absent"); code != exitFailure || r.Added != 0 || len(r.Entries) != 1 || r.Entries[0].Source != list+" absent" || r.Rules["file-not-found"] != 1 {
		t.Errorf("exit %d: %+v", code, r)
	}
	for _, args := range [][]string{{"add", second.url}, {"list"}, {"pause", second.url}} {
		if code, out, _ := command(t, nil, append(append([]string{"sites"}, args...), "--store", mirror, "--label", "", "--json")...); code != exitUsage || !strings.Contains(out, `"usage/label"`) {
			t.Errorf("%q: exit %d: %s", args, code, out)
		}
	}
	h, secret := newHook(t), filepath.Join(t.TempDir(), "secret")
	write(t, secret, hookSecret+"\n")
	var both [2]*served
	for i := range both {
		both[i] = watch(t, "--all", "--store", mirror, "--workers", "2", "--min-interval", "1s", "--max-interval", "1s", "--webhook-secret-file", secret, "--retention", "none=48h")
	}
	changes := func(site string) (n int) {
		for _, w := range both {
			text := w.stdout.String()
			for _, e := range lines(t, text[:strings.LastIndexByte(text, '\n')+1]) {
				if e.Site == site && e.Change == outbox.Added {
					n++
				}
			}
		}
		return n
	}
	eventually(t, "the first site is reported", func() bool { return changes(first.url) == 14 })
	posted := func(change string) (n int) {
		_, got := h.state()
		for _, e := range got {
			if e.Site == second.url && e.Change == change {
				n++
			}
		}
		return n
	}
	if code, r := sites("add", second.url, "--webhook", h.URL+"/?token=hunter2"); code != exitGood || r.Added != 1 {
		t.Errorf("exit %d: %+v", code, r)
	}
	eventually(t, "the webhook of the second site has its pages", func() bool { return posted(outbox.Added) == 5 })
	if code, r := sites("pause", "--label", "books"); code != exitGood || r.Changed != 1 {
		t.Errorf("exit %d: %+v", code, r)
	}
	var listing sitelist.Listing
	eventually(t, "both are listed", func() bool {
		_, out, _ := command(t, nil, "sites", "list", "--store", mirror, "--json")
		if err := json.Unmarshal([]byte(out), &listing); err != nil {
			t.Fatal(err)
		}
		return listing.Fleet.Leased == 0 && listing.Fleet.New == 0
	})
	states := map[string]string{}
	for _, s := range listing.Sites {
		states[s.URL] = s.State
		if s.Name != s.URL || s.Pulled == nil || strings.Contains(s.Webhook, "hunter2") || (s.Webhook == h.URL) != (s.URL == second.url) {
			t.Errorf("%+v", s)
		}
	}
	if listing.Fleet.Sites != 2 || states[first.url] != "paused" || states[second.url] != "ok" {
		t.Errorf("%+v", listing)
	}
	if code, r := sites("remove", second.url, "--delete-pages"); code != exitGood || r.Changed != 1 {
		t.Errorf("exit %d: %+v", code, r)
	}
	eventually(t, "the second site is removed", func() bool {
		_, out, _ := command(t, nil, "sites", "list", "--store", mirror, "--json")
		return json.Unmarshal([]byte(out), &listing) == nil && len(listing.Sites) == 1
	})
	if n := posted(outbox.Deleted); n != 5 || changes(second.url) != 0 {
		t.Errorf("%d pages deleted at the webhook, %d changes on standard output", n, changes(second.url))
	}
	for _, w := range both {
		if code := w.stop(); code != exitGood || changes(first.url) != 14 || !strings.Contains(w.out.String(), "none") {
			t.Errorf("exit %d:\n%s", code, w.out)
		}
	}
	pages, last := filepath.Join(t.TempDir(), "pages.jsonl"), filepath.Join(t.TempDir(), "last.json")
	for _, c := range []struct {
		since string
		want  int
	}{{"2020-01-01T00:00:00Z", 14}, {last, 0}} {
		args := []string{"export", "--store", mirror, "--label", "books", "--format", "jsonl", "--out", pages, "--json", "--since", c.since}
		var r export.Report
		_, out, errs := command(t, nil, args...)
		if err := json.Unmarshal([]byte(out), &r); err != nil || r.Pages != c.want || len(r.Sites) != 1 {
			t.Errorf("%q: %v: %s%s", args, err, out, errs)
		}
		write(t, last, out)
	}
	var hits library.Report
	if _, out, errs := command(t, nil, "search", "the", "--store", mirror, "--label", "books", "--limit", "100", "--json"); json.Unmarshal([]byte(out), &hits) != nil || len(hits.Hits) == 0 {
		t.Errorf("%s%s", out, errs)
	}
	for _, h := range hits.Hits {
		if !strings.HasPrefix(h.URL, first.url) {
			t.Errorf("%+v", h)
		}
	}
	var summary report.Report
	if _, out, errs := command(t, nil, "report", "--store", mirror, "--json"); json.Unmarshal([]byte(out), &summary) != nil || summary.Fleet == nil || summary.Fleet.Paused != 1 || summary.Fleet.Received == 0 {
		t.Errorf("%s%s", out, errs)
	}
	if _, out, errs := command(t, nil, "report", "--store", mirror, "--label", "books", "--json"); json.Unmarshal([]byte(out), &summary) != nil || summary.Fleet.Sites != 1 || len(summary.Sites) != 1 {
		t.Errorf("%s%s", out, errs)
	}
	for _, args := range [][]string{
		{"export", "--format", "jsonl", "--out", pages},
		{"search", "the"},
		{"mcp", "--listen", "127.0.0.1:0"},
		{"report"},
		{"sites", "list"},
		{"sites", "pause"},
	} {
		if exit, code, out := failure(t, nil, append(args, "--store", mirror, "--label", "none")...); exit != exitFailure || code != "not-found" {
			t.Errorf("%v: exit %d: %s", args, exit, out)
		}
	}
	for _, c := range []struct {
		args           []string
		code           int
		changed, wrong int
	}{
		{[]string{"pause", first.url, "https://absent.example/"}, exitFailure, 0, 1},
		{[]string{"remove", list}, exitFailure, 0, 1},
		{[]string{"resume", first.url}, exitGood, 1, 0},
		{[]string{"resume", first.url}, exitGood, 1, 0},
		{[]string{"remove", first.url}, exitGood, 1, 0},
		{[]string{"remove", first.url}, exitFailure, 0, 1},
		{[]string{"remove", first.url, "--delete-pages"}, exitGood, 1, 0},
	} {
		if code, r := sites(c.args...); code != c.code || r.Changed != c.changed || r.Invalid != c.wrong {
			t.Errorf("%v: exit %d: %+v", c.args, code, r)
		}
	}
	if _, out, _ := command(t, nil, "sites", "list", "--store", mirror, "--json"); json.Unmarshal([]byte(out), &listing) != nil || len(listing.Sites) != 1 || listing.Sites[0].State != "removing" {
		t.Errorf("%s", out)
	}
	hooked, absent := filepath.Join(t.TempDir(), "hooked.db"), filepath.Join(t.TempDir(), "absent.db")
	if code, r := sitesReport(t, hooked, "add", first.url, "--webhook", h.URL); code != exitGood || r.Added != 1 {
		t.Errorf("exit %d: %+v", code, r)
	}
	for _, args := range [][]string{{"watch", "--all"}, {"sites", "list"}, {"sites", "resume", first.url}} {
		if exit, code, out := failure(t, nil, append(args, "--store", absent)...); exit != exitFailure || code != "not-found" {
			t.Errorf("%v: exit %d: %s", args, exit, out)
		}
	}
	if _, err := os.Stat(absent); err == nil {
		t.Error("a command has created the store")
	}
	for _, wrong := range []string{"books=1m", "books=soon", "books=", "books", "=1h", ""} {
		if exit, code, out := failure(t, nil, "watch", "--all", "--store", mirror, "--retention", "news=1h,"+wrong); exit != exitUsage || code != "usage/retention" || !strings.Contains(out, wrong) || strings.Contains(out, "news=1h") {
			t.Errorf("%s: exit %d, %s: %s", wrong, exit, code, out)
		}
	}
	for _, args := range [][]string{
		{"search", "the", "--store", mirror, "--label", "books", "--site", first.url},
		{"export", "--store", mirror, "--format", "jsonl", "--out", pages, "--since", pages},
		{"export", "--store", mirror, "--format", "jsonl", "--out", pages, "--since", "a:b:c"},
		{"watch", "--all"},
		{"watch", "--all", first.url, "--store", mirror},
		{"watch"},
		{"pull"},
		{"sites", "remove", "--store", mirror},
		{"watch", "--all", "--store", mirror, "--request-rate", "-1"},
		{"watch", "--all", "--store", mirror, "--request-rate", "NaN"},
		{"watch", "--all", "--store", mirror, "--workers", "0"},
		{"watch", "--all", "--store", hooked}, // without a secret
	} {
		if exit, _, out := failure(t, nil, args...); exit != exitUsage {
			t.Errorf("%v: exit %d:\n%s", args, exit, out)
		}
	}
}

// sitesReport runs a command for the sites of a store, and returns its report.
func sitesReport(t *testing.T, mirror string, args ...string) (code int, r sitelist.Report) {
	t.Helper()
	code, out, errs := command(t, nil, append(append([]string{"sites"}, args...), "--store", mirror, "--json")...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	return code, r
}

// sites add changes the settings of sites, and says how many. A "-" resets a setting. Absurd
// settings change nothing.
func TestSitesSettings(t *testing.T) {
	t.Parallel()
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	site := func() (s sitelist.Site) {
		t.Helper()
		var l sitelist.Listing
		_, out, errs := command(t, nil, "sites", "list", "--store", mirror, "--json")
		if err := json.Unmarshal([]byte(out), &l); err != nil || len(l.Sites) == 0 {
			t.Fatalf("%v: %s%s", err, out, errs)
		}
		return l.Sites[0]
	}
	for _, c := range []struct {
		args           []string
		added, changed int
		min, max       float64
	}{
		{nil, 1, 0, 0, 0},
		{nil, 0, 0, 0, 0},
		{[]string{"--min-interval", "1h", "--max-interval=2h", "--label", "a"}, 0, 1, 3600, 7200},
		{[]string{"https://b.example/", "--priority", "high"}, 1, 1, 3600, 7200},
		{[]string{"--min-interval=-"}, 0, 1, 0, 7200},
		{[]string{"--max-interval=-"}, 0, 1, 0, 0},
		{[]string{"--min-interval=48h"}, 0, 1, 172800, 0},
	} {
		if code, r := sitesReport(t, mirror, append([]string{"add", "https://a.example/"}, c.args...)...); code != exitGood || r.Added != c.added || r.Changed != c.changed {
			t.Errorf("%v: exit %d: %+v", c.args, code, r)
		}
		if s := site(); s.Min != c.min || s.Max != c.max {
			t.Errorf("%v: %+v", c.args, s)
		}
	}
	for _, args := range [][]string{{"--max-interval", "1h"}, {"--min-interval", "2h", "--max-interval=1h"}, {"--min-interval", "1ms"}, {"--max-interval", "9000h"}} {
		exit, code, out := failure(t, nil, append([]string{"sites", "add", "https://a.example/", "https://c.example/", "--store", mirror}, args...)...)
		if exit != exitFailure || code != "fleet-site" || site().Min != 172800 || site().Max != 0 {
			t.Errorf("%v: exit %d, %s: %s", args, exit, code, out)
		}
	}
	for _, args := range [][]string{{"--min-interval", "0s"}, {"--max-interval=-1h"}, {"--max-interval", "soon"}} {
		if exit, _, out := failure(t, nil, append([]string{"sites", "add", "https://a.example/", "--store", mirror}, args...)...); exit != exitUsage {
			t.Errorf("%v: exit %d: %s", args, exit, out)
		}
	}
}
