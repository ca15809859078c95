package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"

	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
)

// laterDraft serves a site of two HTML pages in a future draft of TCT: a Link field of the root
// and a fixed path identify the list.
func laterDraft(t *testing.T) string {
	t.Helper()
	const profile = "https://www.ietf.org/archive/id/draft-jurkovikj-collab-tunnel-04.html#"
	var base string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		send := func(doc map[string]any, typ, link string) {
			body, err := json.Marshal(doc)
			if err == nil {
				body, err = jcs.Transform(body)
			}
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", typ)
			w.Header().Set("ETag", `"sha256-`+canon.SHA256Hex(body)+`"`)
			w.Header().Set("Vary", "Accept-Encoding")
			w.Header().Add("Link", link)
			_, _ = w.Write(body)
		}
		page, machine := strings.CutSuffix(r.URL.Path, "llm/")
		const typ = "application/json"
		switch {
		case r.URL.Path == "/llm-sitemap.json":
			var items []map[string]any
			for _, p := range []string{"/", "/wheels/"} {
				items = append(items, map[string]any{
					"cUrl": base + p, "mUrl": base + p + "llm/", "etag": "sha256-" + strings.Repeat("a", 64), "lastModified": "2026-08-01T10:00:00Z",
				})
			}
			send(map[string]any{"profile": profile + "tct-m-sitemap-profile", "version": 2, "items": items}, typ, "<"+profile+`tct-m-sitemap-profile>; rel="profile"`)
		case machine && (page == "/" || page == "/wheels/"):
			send(map[string]any{
				"profile": profile + "tct-m-url-profile", "canonical_url": base + page, "title": "Wheels",
				"content": "An overshot wheel takes water at the top.",
			}, typ, "<"+base+page+`>; rel="canonical"`)
		case r.URL.Path == "/" || r.URL.Path == "/wheels/":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			if r.URL.Path == "/" {
				w.Header().Add("Link", "<"+base+`/llm-sitemap.json>; rel="index"; type="application/json"`)
			}
			w.Header().Add("Link", "<"+base+r.URL.Path+`llm/>; rel="alternate"; type="application/json"`)
			_, _ = io.WriteString(w, `<!DOCTYPE html><html lang=en><title>Wheels</title><link rel="alternate" type="application/json" href="`+base+r.URL.Path+`llm/"><main><h1>Wheels `+r.URL.Path+
				`</h1><p>An overshot wheel takes water at the top, and turns slowly under its weight.</p><a href="/wheels/">Wheels</a></main>`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	base = srv.URL
	return base + "/"
}

// A site of a later TCT draft is recognized. discover and check name the draft, check applies
// no other rules, and pull uses another way and reports the reason.
func TestLaterDraft(t *testing.T) {
	t.Parallel()
	const draft = "draft-04"
	protocols := []string{"tct-00", "tct-01", "tct-03"}
	url := laterDraft(t)
	_, out, errs := command(t, nil, "discover", url, "--allow-private", "--json")
	var found agent.Discovery
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	for _, proto := range protocols {
		i := slices.IndexFunc(found.Ways, func(w agent.DiscoveredWay) bool { return w.Protocol == proto })
		if i < 0 || !strings.Contains(found.Ways[i].Reason, draft) || found.Ways[i].Carries != "" {
			t.Errorf("discover reports about %s: %+v", proto, found.Ways)
		}
	}
	if found.First != webCrawl {
		t.Errorf("the first way is %s", found.First)
	}

	_, out, errs = command(t, nil, "check", url, "--allow-private", "--json")
	var checked check.Report
	if err := json.Unmarshal([]byte(out), &checked); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	for _, proto := range protocols {
		if r := checked.Protocols[proto]; r.Version != draft || r.Found || r.Must != (check.Count{}) || r.Should != (check.Count{}) {
			t.Errorf("check reports about %s: %+v", proto, r)
		}
	}
	for _, f := range checked.Findings {
		if strings.HasPrefix(f.Protocol, "tct-") {
			t.Errorf("%+v", f)
		}
	}
	if code, out, _ := command(t, nil, "check", url, "--allow-private", "--protocol", "tct-01"); code != exitFailure || !strings.Contains(out, draft) {
		t.Errorf("exit %d:\n%s", code, out)
	}

	file := filepath.Join(t.TempDir(), "m.db")
	r, code := tryPull(t, url, file)
	if code != exitGood || r.Via != webCrawl || r.Added != 2 || !slices.ContainsFunc(r.Ways, func(w agent.Way) bool {
		return w.Protocol == "tct-01" && strings.Contains(w.Error, draft)
	}) {
		t.Errorf("pull: exit %d, %+v", code, r)
	}
	if r, code := tryPull(t, url, filepath.Join(t.TempDir(), "other.db"), "--via", "tct-01"); code == exitGood || r.Added != 0 || !strings.Contains(r.Error, draft) {
		t.Errorf("pull by tct-01: exit %d, %+v", code, r)
	}
}
