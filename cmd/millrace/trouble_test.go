package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/agent"
)

// A server of a mirror publishes the pages that are pulled into the mirror, according to the
// options of the server.
func TestServeMirrorFollows(t *testing.T) {
	t.Parallel() // the test mostly waits
	dir, mirror := copySite(t, "handbook"), filepath.Join(t.TempDir(), "mirror.db")
	s := serve(t, dir)
	pull(t, s.url, mirror)
	s2 := serve(t, mirror, "--exclude", "/docs")
	write(t, filepath.Join(dir, "new.html"), "<title>New</title><main><p>A page that is new, with words of its own.</main>")
	eventually(t, "the site has the page", func() bool {
		code, _, _ := get(t, s.url+"new.html/llm.json")
		return code == 200
	})
	if r := pull(t, s.url, mirror); r.Added != 1 {
		t.Fatalf("%+v", r)
	}
	eventually(t, "the server of the mirror has the page", func() bool {
		code, _, _ := get(t, s2.url+"new.html/llm.json")
		return code == 200
	})
	if code, _, _ := get(t, s2.url+"docs/leat/install/llm.json"); code != 404 {
		t.Errorf("a page that the server hides: %d", code)
	}
}

// An error names the command and the URL once.
func TestErrorNamesOnce(t *testing.T) {
	t.Parallel()
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	at := down.URL + "/"
	for _, args := range [][]string{
		{"check", at, "--allow-private"},
		{"discover", at, "--allow-private"},
		{"extract", at, "--allow-private"},
		{"serve", at, "--allow-private", "--listen", "127.0.0.1:0", "--store", filepath.Join(t.TempDir(), "s.db")},
		{"export", "--format", "markdown", "--store", mirrorOf(t, "jekyll"), "--out", os.Args[0]},
		{"build", "testdata", "--base-url", "http://mill.example/", "--out", os.Args[0]},
	} {
		code, out, errs := command(t, nil, args...)
		if code == 0 {
			t.Fatalf("%v: exit %d", args, code)
		}
		words := strings.Fields(out + errs)
		for _, name := range []string{args[0], at} {
			n := 0
			for _, w := range words {
				if strings.Trim(w, `":`) == name {
					n++
				}
			}
			if n > 1 {
				t.Errorf("%v: %s %d times: %s%s", args, name, n, out, errs)
			}
		}
	}
}

// A deployment that empties a folder step by step causes many file events. They do not
// count as a second scan.
func TestDeployment(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	s := serve(t, dir)
	for _, part := range []string{"docs", "articles", "blog"} {
		if err := os.RemoveAll(filepath.Join(dir, part)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
	}
	eventually(t, "the loss is logged", func() bool { return strings.Contains(s.out.String(), " lost=") })
	if code, _, _ := get(t, s.url+"docs/leat/install/llm.json"); code != 200 {
		t.Errorf("a page was deleted too early: %d\n%s", code, s.out)
	}
}

// If a site goes down during a pull, the pull fails, even if only a few pages were left to fetch.
// The mirror keeps what was fetched, and the next pull fetches the rest.
func TestPullCutOff(t *testing.T) {
	t.Parallel() // the test mostly waits
	var down atomic.Bool
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch site := "http://" + r.Host; {
		case r.URL.Path == "/":
			w.Header().Set("Link", `</list>; rel="index"; type="application/json"`)
		case r.URL.Path == "/list":
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			fmt.Fprintf(w, `{"version":1,"items":[{"cUrl":"%[1]s/a/","mUrl":"%[1]s/a/llm.json","etag":"sha256-1"},`+
				`{"cUrl":"%[1]s/b/","mUrl":"%[1]s/b/llm.json","etag":"sha256-2"}]}`, site)
		case down.Load() && strings.HasPrefix(r.URL.Path, "/b/"):
			panic(http.ErrAbortHandler)
		case r.URL.Path == "/a/" || r.URL.Path == "/b/": // pull reads these pages as HTML
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<!DOCTYPE html><title>A page</title><main><h1>A page</h1><p>The words of a page without a document.</p></main>")
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	down.Store(true)
	file := filepath.Join(t.TempDir(), "m.db")
	if r, code := tryPull(t, srv.URL, file, "--via", "tct-01"); code != 1 || r.Added != 1 || r.Unavailable != 1 || r.Code != "unavailable" {
		t.Errorf("exit %d: %+v", code, r)
	}
	down.Store(false)
	if r, code := tryPull(t, srv.URL, file, "--via", "tct-01"); code != 0 || r.Added != 1 {
		t.Errorf("exit %d: %+v", code, r)
	}
}

// A site is fetched at another address than its published one. OpenFeeder's paths belong to
// the address of the feed; every other way reports that no page belongs to the site. The
// mirror loses nothing.
func TestPullWrongHost(t *testing.T) {
	t.Parallel() // the test mostly waits
	s := serve(t, copySite(t, "handbook"))
	other := strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	mirror := filepath.Join(t.TempDir(), "mirror.db")
	first := pullBest(t, other, mirror)
	if first.Via != "openfeeder" || first.Added == 0 || len(first.Skipped) != 0 {
		t.Errorf("%+v", first)
	}
	for _, via := range []string{"tct-01", "tct-00", "scp", "arc"} {
		for range 3 {
			code, out, errs := command(t, nil, "pull", other, "--store", mirror, "--allow-private", "--json", "--via", via)
			var r agent.Report
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatalf("exit %d, %v:\n%s%s", code, err, out, errs)
			}
			if code != 1 || r.Deleted != 0 || r.UnconfirmedDeletions != 0 || len(r.Skipped) == 0 || r.Code != "invalid" {
				t.Errorf("%s: exit %d, %d deleted, %d unconfirmed: %s: %q", via, code, r.Deleted, r.UnconfirmedDeletions, r.Code, r.Error)
			}
		}
	}
	if again := pullBest(t, other, mirror); again.Deleted != 0 || again.UnconfirmedDeletions != 0 || again.Unchanged != first.Added {
		t.Errorf("%+v", again)
	}
}
