package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/discover"
	"github.com/millrace/millrace/internal/state"
)

// wayNames returns the ways of a report with their parts.
func wayNames(r agent.Report) (names []string) {
	for _, w := range r.Ways {
		names = append(names, w.Protocol+": "+w.Part)
	}
	return names
}

// waysRecord is the record of a site's ways in a mirror.
type waysRecord struct {
	Site         *discover.SiteReport `json:"site"`
	Purpose      millrace.Purpose     `json:"purpose"`
	IgnorePolicy bool                 `json:"ignore_policy,omitempty"`
	Failed       map[string]struct {
		Why   string    `json:"why"`
		Time  time.Time `json:"time"`
		Times int       `json:"times"`
	} `json:"failed,omitempty"`
}

// changeWays changes the record of a site's ways in a mirror.
func changeWays(t *testing.T, file, root string, change func(r *waysRecord)) (before waysRecord) {
	t.Helper()
	st := openStore(t, file, false)
	err := state.JSON[waysRecord]{State: st.State(), Namespace: root, Key: "ways"}.Update(t.Context(), func(r *waysRecord) error {
		if before = *r; r.Site == nil {
			return millrace.ErrNotFound
		}
		change(r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return before
}

// pull stores the ways of a site for a week, for each purpose.
func TestPullStoresWays(t *testing.T) {
	t.Parallel()
	b := serveBehind(t, densePages(t, 40))
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	first := pullBest(t, b.url, mirror)
	if first.Via != "scp" || first.Added != 40 || first.Why == "" || !slices.Equal(wayNames(first), []string{"scp: all"}) {
		t.Fatalf("%+v", first)
	}
	b.paths()
	if r := pullBest(t, b.url, mirror); r.Requests != 1 || r.Unchanged != 40 || len(b.paths()) != 1 {
		t.Errorf("nothing has changed: %+v", r)
	}
	if r := pullBest(t, b.url, mirror, "--purpose", "search"); r.Requests < 2 || r.Unchanged != 40 {
		t.Errorf("for another purpose: %+v", r)
	}
	changeWays(t, mirror, b.url, func(r *waysRecord) { r.Site.Time = r.Site.Time.Add(-6 * 24 * time.Hour) })
	if r := pullBest(t, b.url, mirror, "--purpose", "search"); r.Requests != 1 {
		t.Errorf("after six days: %+v", r)
	}
	changeWays(t, mirror, b.url, func(r *waysRecord) { r.Site.Time = r.Site.Time.Add(-2 * 24 * time.Hour) })
	if r := pullBest(t, b.url, mirror, "--purpose", "search"); r.Requests != 2 || r.Unchanged != 40 {
		t.Errorf("after eight days: %+v", r)
	}
}

// corrupt damages the contents of SCP files.
func corrupt(w http.ResponseWriter, r *http.Request, site http.Handler) bool {
	if !strings.HasPrefix(r.URL.Path, "/scp/") {
		return false
	}
	r.Header.Del("Range")
	site.ServeHTTP(&corrupting{ResponseWriter: w}, r)
	return true
}

type corrupting struct {
	http.ResponseWriter
	n int
}

func (c *corrupting) Write(p []byte) (int, error) {
	q := slices.Clone(p)
	for i := range q {
		if c.n++; c.n%100 == 0 {
			q[i] ^= 0x55
		}
	}
	return c.ResponseWriter.Write(q)
}

// If the files of a way are broken, the same pull uses the next way and reports it. The
// next pull probes again. After two failures, the way is skipped for a while.
func TestPullTakesNextWay(t *testing.T) {
	t.Parallel()
	b := serveBehind(t, densePages(t, 40))
	mirror, sound := filepath.Join(t.TempDir(), "mirror.db"), filepath.Join(t.TempDir(), "sound.db")
	pullBest(t, b.url, sound, "--via", "crawl")
	b.set(corrupt)
	r := pullBest(t, b.url, mirror)
	if r.Via == "scp" || r.Added < 40 || len(r.Ways) < 2 || r.Ways[0].Protocol != "scp" || !strings.Contains(r.Ways[0].Error, "/scp/") ||
		r.Ways[len(r.Ways)-1].Pages != r.Added || r.Ways[len(r.Ways)-1].Error != "" {
		t.Fatalf("%+v", r)
	}
	second := r.Via
	wantTitles(t, mirror, sound, b.url)
	if f := changeWays(t, mirror, b.url, func(*waysRecord) {}).Failed["scp"]; f.Times != 1 || f.Why == "" {
		t.Errorf("remembered: %+v", f)
	}
	b.paths()
	for range 3 {
		if r = pullBest(t, b.url, mirror); r.Via == "" || r.Deleted+r.Added > 0 {
			t.Errorf("the next pull: %+v", r)
		}
	}
	collections := 0
	for _, p := range b.paths() {
		if strings.HasPrefix(p, "/scp/") {
			collections++
		}
	}
	if collections > 6 {
		t.Errorf("broken files were fetched %d times in 3 pulls", collections)
	}
	wantTitles(t, mirror, sound, b.url)
	b.set(nil)
	changeWays(t, mirror, b.url, func(r *waysRecord) {
		for name, f := range r.Failed {
			f.Time = f.Time.Add(-48 * time.Hour)
			r.Failed[name] = f
		}
	})
	r = pullBest(t, b.url, mirror)
	if r.Deleted != 0 {
		t.Errorf("after the repair: %+v", r)
	}
	if f := changeWays(t, mirror, b.url, func(*waysRecord) {}).Failed; len(f) != 0 {
		t.Errorf("%s, then %s: stored: %+v", second, r.Via, f)
	}
	wantTitles(t, mirror, sound, b.url)
}

// wantTitles fails unless two mirrors have the same titles.
func wantTitles(t *testing.T, got, want, site string) {
	t.Helper()
	a, b := storedPages(t, got, site, site), storedPages(t, want, site, site)
	for u, p := range b {
		if strings.HasPrefix(u, site+"p") && (a[u] == nil || a[u].Title != p.Title) {
			t.Errorf("%s is missing", u)
		}
	}
}

// If the document of a page belongs to another page, pull reads the HTML and reports the error.
func TestPullLyingDocument(t *testing.T) {
	t.Parallel()
	b := serveBehind(t, manyPages(t, 8))
	b.set(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.URL.Path != "/p003.html/llm.json" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"canonical_url":"` + b.url + `p004.html","title":"Lies","content":"lies","hash":"sha256-` + strings.Repeat("0", 64) + `"}`))
		return true
	})
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	r := pullBest(t, b.url, mirror, "--via", "tct-01")
	if len(r.Ways) != 2 || r.Ways[1].Protocol != "crawl" || r.Ways[1].Pages != 1 || r.Ways[1].Error == "" {
		t.Errorf("%+v", r)
	}
	if p := storedPages(t, mirror, b.url, b.url)[b.url+"p003.html"]; p == nil || p.Title != "Page 3" {
		t.Errorf("held: %+v", p)
	}
}

// pull ignores a list that is suddenly empty, and keeps the mirror.
func TestPullEmptyPrimary(t *testing.T) {
	t.Parallel()
	b := serveBehind(t, manyPages(t, 8))
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	pullBest(t, b.url, mirror, "--via", "tct-01")
	b.set(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.URL.Path != "/llm-pages.json" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"version":1,"items":[]}`))
		return true
	})
	if r := pullBest(t, b.url, mirror, "--via", "tct-01"); r.Deleted != 0 || r.UnconfirmedDeletions < 8 {
		t.Errorf("%+v", r)
	}
	if n := len(storedPages(t, mirror, b.url, b.url)); n < 8 {
		t.Errorf("%d pages remain", n)
	}
	b.set(nil)
	if r := pullBest(t, b.url, mirror, "--via", "tct-01"); r.Deleted+r.Added+r.UnconfirmedDeletions != 0 {
		t.Errorf("after the list has returned: %+v", r)
	}
}

// If SCP fails in any way, the same pull uses the next way.
func TestPullFallsBackFromSCP(t *testing.T) {
	t.Parallel()
	b := serveBehind(t, manyPages(t, 20))
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	if r := pullBest(t, b.url, mirror); r.Via != "scp" {
		t.Fatalf("%+v", r)
	}
	b.set(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.URL.Path != "/sitemap.xml" {
			return false
		}
		http.Error(w, "oh", http.StatusInternalServerError)
		return true
	})
	for range 2 {
		_, out, errs := command(t, nil, "pull", b.url, "--allow-private", "--json", "--store", mirror)
		var r agent.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v: %s%s", err, out, errs)
		}
		if r.Deleted > 0 || r.Via == "" || r.Via == "scp" || r.Added+r.Updated+r.Unchanged < 20 {
			t.Errorf("%+v", r)
		}
	}
}
