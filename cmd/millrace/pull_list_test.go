package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// pull rejects a list longer than --max-list and applies none of it.
func TestPullMaxList(t *testing.T) {
	t.Parallel()
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/llm-sitemap.json":
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"version":1,"items":[{"cUrl":"%s/a/","mUrl":"%[1]s/a/llm/","contentHash":"sha256-%[2]s"}`, srv.URL, strings.Repeat("0", 64))
			_, _ = fmt.Fprintf(w, "%s]}", strings.Repeat(" ", 1<<20))
		case "/a/llm/":
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"canonical_url":"%s/a/","title":"A","content":"a","hash":"%s"}`, srv.URL, strings.Repeat("0", 64))
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	args := []string{"pull", srv.URL, "--store", filepath.Join(t.TempDir(), "mirror.db"), "--allow-private", "--via", "tct-00"}
	if exit, code, out := failure(t, nil, append(args, "--max-list", "1")...); exit != 1 || code != "body-size" {
		t.Errorf("--max-list 1: exit %d %s\n%s", exit, code, out)
	}
	if code, out, errs := command(t, nil, append(args, "--max-list", "2")...); code != 0 || !strings.Contains(out, " 1 added") {
		t.Errorf("--max-list 2: exit %d\n%s%s", code, out, errs)
	}
	for _, n := range []string{"-1", "9999999", "x"} {
		if exit, code, out := failure(t, nil, append(args, "--max-list="+n)...); exit != 2 || code != "usage/max-list" {
			t.Errorf("--max-list=%s: exit %d %s\n%s", n, exit, code, out)
		}
	}
}

// With --check-page-links, pull verifies that each page links to its document.
func TestPullCheckPageLinks(t *testing.T) {
	t.Parallel()
	s := serve(t, copySite(t, "handbook"))
	plain := pullBest(t, s.url, filepath.Join(t.TempDir(), "plain.db"), "--via", "tct-00")
	checked := pullBest(t, s.url, filepath.Join(t.TempDir(), "checked.db"), "--via", "tct-00", "--check-page-links")
	if checked.Added != plain.Added || checked.Requests != plain.Requests+int64(plain.Added) || len(checked.Ways) != 1 {
		t.Errorf("%d requests and %d pages, with --check-page-links %d and %d: %+v", plain.Requests, plain.Added, checked.Requests, checked.Added, checked.Ways)
	}
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := "http://" + r.Host
		switch r.URL.Path {
		case "/llm-sitemap.json":
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"version":1,"items":[{"cUrl":"%s/a/","mUrl":"%[1]s/a/llm/","contentHash":"sha256-%[2]s"}]}`, origin, strings.Repeat("0", 64))
		case "/a/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprintf(w, `<title>A</title><link rel="alternate" type="application/json" href="/b/llm/"><main><p>What the page says is said here.</p></main>`)
		case "/a/llm/":
			t.Error("the document of a page without a link to it was fetched")
		default:
			http.NotFound(w, r)
		}
	}))
	defer stranger.Close()
	r := pullBest(t, stranger.URL, filepath.Join(t.TempDir(), "stranger.db"), "--via", "tct-00", "--check-page-links")
	if len(r.Ways) != 2 || r.Ways[1].Protocol != webCrawl || r.Ways[1].Code != "tct-00/3.1" {
		t.Errorf("a page with a link to another document: %+v", r)
	}
}

// If a list has an unknown version, the pull uses the other ways.
func TestPullUnknownVersion(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/llm-sitemap.json":
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"version":2,"items":[]}`)
		case "/":
			_, _ = fmt.Fprint(w, "<!DOCTYPE html><title>Home</title><main><h1>Home</h1><p>What the page says is said here.</p></main>")
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	if r := crawlInto(t, srv.URL+"/", filepath.Join(t.TempDir(), "mirror.db")); r.Added != 1 {
		t.Errorf("%+v", r)
	}
	exit, code, out := failure(t, nil, "pull", srv.URL, "--store", filepath.Join(t.TempDir(), "mirror.db"), "--allow-private", "--via", "tct-00")
	if exit != 1 || code != "unknown-version" {
		t.Errorf("--via tct-00: exit %d %s\n%s", exit, code, out)
	}
}
