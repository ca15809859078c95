package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

const signup = `<!DOCTYPE html><html lang="en"><head><title>Sign up</title></head><body><main data-ai-page="signup">
<h1 data-ai-heading="title">Create your account</h1><p data-ai-summary="summary">What an account of the shop is good for.</p>
<section data-ai-section="form" data-ai-context="personal"><label for="e">Mail</label><input id="e" type="email" data-ai-field="mail-of-yours"></section>
<p>An account keeps your orders together, and no one else sees them.</p></main></body></html>`

// Personalised parts of a page are sent only to partners, at the same URL. The list
// shows the values of the ARC flags.
func TestARCForms(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "store.db")
	write(t, filepath.Join(dir, "index.html"), "<title>Shop</title><p>We sell wheels that turn, and nothing else.</p>")
	write(t, filepath.Join(dir, "join.html"), signup)
	s := serve(t, dir, "--store", file, "--crawl-priority", "/join.html=0.9", "--arc-listed", "/members")
	key := keys(t, "add", "partner", "--store", file)
	for _, name := range []string{"arc-sitemap.json", ".well-known/arc-sitemap.json", "arc-sitemap.yaml"} {
		code, h, public := get(t, s.url+name)
		if code != http.StatusOK || strings.Contains(public, "mail-of-yours") || !strings.Contains(public, "/join.html") || !strings.Contains(h.Get("Vary"), "Authorization") {
			t.Errorf("%s without a key: %d %s\n%s", name, code, h, public)
		}
		if !strings.Contains(public, "0.9") || !strings.Contains(public, "/members") {
			t.Errorf("%s lacks the values of the flags:\n%s", name, public)
		}
		code, h, full := get(t, s.url+name, "Authorization", "Bearer "+key)
		if code != http.StatusOK || !strings.Contains(full, "mail-of-yours") || !strings.Contains(h.Get("Cache-Control"), "private") {
			t.Errorf("%s for partners: %d %s\n%s", name, code, h, full)
		}
		if code, _, _ := get(t, s.url+name, "Authorization", "Bearer mill_wrong"); code != http.StatusUnauthorized {
			t.Errorf("%s with an invalid key: %d", name, code)
		}
	}
	if _, _, home := get(t, s.url); !strings.Contains(home, `"contentUrl":"`+s.url+`arc-sitemap.json"`) {
		t.Errorf("the home page is %s", home)
	}
	if _, _, robots := get(t, s.url+"robots.txt"); !strings.Contains(robots, "Sitemap: "+s.url+"arc-sitemap.json\n") {
		t.Errorf("robots.txt is %s", robots)
	}
}

func TestARCFlags(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	for _, flags := range [][]string{
		{"--arc-listed", "members"},
		{"--arc-listed", "https://other.example/members"},
		{"--crawl-priority", "docs=1"},
		{"--crawl-priority", "/docs"},
		{"--crawl-priority", "/docs=2"},
		{"--crawl-priority", "/docs=high"},
		{"--crawl-priority", "/docs=0.5,/docs/=1"},
		{"--crawl-priority", "/docs=NaN"},
	} {
		if exit, code, out := failure(t, nil, append([]string{"serve", dir, "--listen", "127.0.0.1:0"}, flags...)...); exit != exitUsage || code != "usage/"+flags[0][2:] {
			t.Errorf("%q: exit %d %s: %s", flags, exit, code, out)
		}
	}
}
