package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

// frozen repeats the site's sitemap with another validator: to an SCP client the site has
// changed, but no file contains the changes. After the given number of responses, it passes
// requests to the site.
func frozen(sitemap, etag string, times int) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/sitemap.xml" || times == 0 {
			return false
		}
		times--
		w.Header().Set("Content-Type", "application/xml")
		w.Header().Set("Etag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return true
		}
		_, _ = io.WriteString(w, sitemap)
		return true
	}
}

// A mirror that SCP filled is refreshed by it, and OpenFeeder reports deletions: a
// removed page disappears with the next pull, for two small requests.
func TestPullDeletions(t *testing.T) {
	t.Parallel()
	b := serveBehind(t, densePages(t, 40))
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	first := pullBest(t, b.url, mirror)
	if first.Via != "scp" || first.Added != 40 || !slices.Equal(wayNames(first), []string{"scp: all", "openfeeder: deletions"}) {
		t.Fatalf("%+v", first)
	}
	_, header, _ := get(t, address(b.served)+"llm-pages.json")
	list := header.Get("Etag")
	_, _, sitemap := get(t, address(b.served)+"sitemap.xml")

	other := filepath.Join(t.TempDir(), "other.db")
	pullBest(t, b.url, other)

	remove(t, b, 12)
	b.published(t, &list)
	b.paths()
	old := frozen(sitemap, `"old"`, 2)
	b.set(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool { return old(w, r) })
	r := pullBest(t, b.url, mirror)
	if r.Deleted != 1 || r.Updated+r.Added != 0 || r.Unchanged != 39 || r.Requests != 2 ||
		!slices.Equal(wayNames(r), []string{"scp: all", "openfeeder: deletions"}) || r.Ways[1].Pages != 1 {
		t.Errorf("one page removed: %+v", r)
	}
	if asked := b.paths(); !slices.Equal(asked, []string{"/sitemap.xml", "/openfeeder"}) {
		t.Errorf("asked for %v", asked)
	}
	wantMirror(t, "scp", mirror, b.file, b.dir, b.url)
	if r := pullBest(t, b.url, mirror); r.Requests != 1 || r.Unchanged != 39 {
		t.Errorf("nothing has changed: %+v", r)
	}

	// If no way can report deletions, the pull reads the primary source whole.
	old = frozen(sitemap, `"older"`, 1)
	b.set(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if strings.HasPrefix(r.URL.Path, "/openfeeder") {
			http.Error(w, "oh", http.StatusForbidden)
			return true
		}
		return old(w, r)
	})
	r = pullBest(t, b.url, other)
	if last := r.Ways[len(r.Ways)-1]; r.Deleted != 1 || r.Unchanged != 39 || last.Protocol != "openfeeder" || last.Part != "deletions" || last.Code != "http-403" {
		t.Errorf("no way reports deletions: %+v", r)
	}
	wantMirror(t, "scp", other, b.file, b.dir, b.url)
	b.set(nil)
	if r := pullBest(t, b.url, other); r.Requests < 5 || r.Deleted+r.Added+r.Updated != 0 {
		t.Errorf("the failed way was not retried: %+v", r)
	}
}

// The primary source may be older than the reported deletions. It does not restore deleted
// pages permanently.
func TestPullDeletionsOldPrimary(t *testing.T) {
	t.Parallel()
	b := serveBehind(t, densePages(t, 40))
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	old := map[string]*httptest.ResponseRecorder{}
	b.set(func(w http.ResponseWriter, r *http.Request, site http.Handler) bool {
		if r.URL.Path != "/sitemap.xml" && !strings.HasPrefix(r.URL.Path, "/scp/") {
			return false
		}
		answer := httptest.NewRecorder()
		site.ServeHTTP(answer, r)
		old[r.URL.Path] = answer
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
		return true
	})
	pullBest(t, b.url, mirror)
	_, header, _ := get(t, address(b.served)+"llm-pages.json")
	list := header.Get("Etag")
	b.set(nil)
	remove(t, b, 12)
	b.published(t, &list)
	if r := pullBest(t, b.url, mirror); r.Deleted != 1 {
		t.Fatalf("one page removed: %+v", r)
	}
	st := openStore(t, mirror, false)
	site, err := st.Site(t.Context(), b.url, b.url)
	if err == nil {
		_, err = site.Apply(t.Context(), b.url+" scp", []millrace.Change{{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{}}})
	}
	if err := errors.Join(err, st.Close()); err != nil {
		t.Fatal(err)
	}
	b.set(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		answer := old[r.URL.Path]
		if answer == nil {
			return false
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
		return true
	})
	r := pullBest(t, b.url, mirror)
	if last := r.Ways[len(r.Ways)-1]; last.Part != "deletions" || last.Pages != 1 || last.Error != "" {
		t.Errorf("with an old primary source: %+v", r)
	}
	wantMirror(t, "scp", mirror, b.file, b.dir, b.url)
}

func remove(t *testing.T, b *behind, page int) {
	t.Helper()
	if err := os.Remove(filepath.Join(b.dir, fmt.Sprintf("p%03d.html", page))); err != nil {
		t.Fatal(err)
	}
}

// A report that most of a site is deleted needs confirmation by the primary source.
func TestPullManyDeletions(t *testing.T) {
	t.Parallel()
	b := serveBehind(t, densePages(t, 40))
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	pullBest(t, b.url, mirror)
	_, _, sitemap := get(t, address(b.served)+"sitemap.xml")
	old := frozen(sitemap, `"old"`, 1)
	b.set(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.URL.Path != "/openfeeder" {
			return old(w, r)
		}
		var gone []string
		for i := range 20 {
			gone = append(gone, fmt.Sprintf(`{"url":"/p%03d.html","deleted_at":%q}`, i, time.Now().UTC().Format(time.RFC3339)))
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"openfeeder_version":"1.0","sync":{"as_of":%q,"sync_token":"x","counts":{"added":0,"updated":0,"deleted":20}},"added":[],"updated":[],"deleted":[%s]}`,
			time.Now().UTC().Format(time.RFC3339), strings.Join(gone, ","))
		return true
	})
	r := pullBest(t, b.url, mirror)
	if r.Deleted+r.UnconfirmedDeletions != 0 || r.Unchanged != 40 || r.Ways[len(r.Ways)-1].Code != "invalid" {
		t.Errorf("%+v", r)
	}
	wantMirror(t, "scp", mirror, b.file, b.dir, b.url)
}

// A pull without --via that is killed at any moment loses no page and no deletion.
func TestKillPullDeletions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("testing.Short: kills child processes")
	}
	b := serveBehind(t, densePages(t, 40))
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	_, header, _ := get(t, address(b.served)+"llm-pages.json")
	list := header.Get("Etag")
	killed := 0
	for i := range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(30+(i*37)%120)*time.Millisecond)
		c := asProcess(ctx, t, "pull", b.url, "--store", mirror, "--allow-private", "--quiet", "--delay", "2ms")
		if out, err := c.CombinedOutput(); err != nil && ctx.Err() == nil {
			t.Fatalf("pull %d: %v\n%s", i, err, out)
		}
		if ctx.Err() != nil {
			killed++
		}
		cancel()
		if i == 6 {
			remove(t, b, i)
			write(t, filepath.Join(b.dir, fmt.Sprintf("p%03d.html", i+20)), pageText(i, "again"))
			b.published(t, &list)
		}
		if i == 4 {
			pullBest(t, b.url, mirror) // from here on a kill could lose something
		}
	}
	if killed == 0 {
		t.Error("no process was killed")
	}
	pullBest(t, b.url, mirror)
	wantMirror(t, "scp", mirror, b.file, b.dir, b.url)
}
