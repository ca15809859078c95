package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

const letter = "Twice a month we write to you of what the water did, what the stones did, and what the bread was like."

// soup writes a site whose elements have no semantics. Each page contains the same
// letter.
func soup(t *testing.T, pages int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range pages {
		name := fmt.Sprintf("p%d.html", i)
		if i == 0 {
			name = "index.html"
		}
		var links, text [2]string
		for j := range 2 {
			links[j] = fmt.Sprintf(`<div><a href="p%d.html">The wheel of number %d</a></div>`, 1+(i+j)%(pages-1), 1+(i+j)%(pages-1))
			for k := range 3 {
				text[j] += fmt.Sprintf("<p>Wheel number %d has %d buckets in part %d, each of which holds as much water as the %d before it did, and turns the stone of mill %d.</p>", i, 3*i+k, j, k, 7*i+j)
			}
		}
		write(t, filepath.Join(dir, name), fmt.Sprintf(`<!DOCTYPE html><html lang="en"><title>Wheel %d</title><body><div class="e1">%s</div>
<div class="e2"><h1>Wheel %d</h1><div class="e3">%s</div><div class="e4"><p>Our letter to you</p><p>%s</p></div><div class="e3">%s</div></div></body></html>`,
			i, links[0]+links[1], i, text[0], letter, text[1]))
		// A server sends no date for a file that was written just now.
		past := time.Now().Add(-time.Hour)
		if err := os.Chtimes(filepath.Join(dir, name), past, past); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// with returns the number of pages in a mirror, and the number of those that contain a text.
func with(pages map[string]*millrace.Page, text string) (all, n int) {
	for _, p := range pages {
		if strings.Contains(p.Text(), text) {
			n++
		}
	}
	return len(pages), n
}

// New rules change the pages of a folder; the old rules restore them.
func TestRulesFolder(t *testing.T) {
	t.Parallel()
	dir := soup(t, 30)
	store := filepath.Join(t.TempDir(), "store.db")
	letters := func(args ...string) int {
		t.Helper()
		s := serve(t, append([]string{dir, "--store", store}, args...)...)
		defer s.stop()
		_, _, body := get(t, s.url+"llm-pages.json")
		n := 0
		for i := range 30 {
			name := fmt.Sprintf("p%d.html/llm.json", i)
			if i == 0 {
				name = "llm.json"
			}
			status, _, page := get(t, s.url+name)
			if status != 200 || !strings.Contains(page, "Wheel number "+fmt.Sprint(i)) {
				t.Fatalf("%s: %d %.300s\n%.300s", name, status, page, body)
			}
			if strings.Contains(page, letter[:40]) {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		args []string
		want int
	}{{nil, 30}, {[]string{"--drop", ".e4"}, 0}, {[]string{"--drop", ".e4", "--keep", ".e4"}, 30}, {nil, 30}} {
		if n := letters(c.args...); n != c.want {
			t.Errorf("%v: %d pages have the letter, want %d", c.args, n, c.want)
		}
	}
	page := filepath.Join(dir, "p3.html")
	if code, out, _ := command(t, nil, "extract", page, "--drop", ".e4", "--quiet", "--explain"); code != 0 || !strings.Contains(out, "drop .e4") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

// New rules on a live site cause no requests.
func TestRulesCrawl(t *testing.T) {
	t.Parallel()
	url, requests := liveSite(t, soup(t, 30), 0)
	file := filepath.Join(t.TempDir(), "mirror.db")
	r := crawlInto(t, url, file, "--via", "crawl")
	if all, n := with(storedPages(t, file, url, url), letter); all != 30 || n != 30 || r.Added != 30 {
		t.Errorf("%d pages, %d with the letter, report %+v", all, n, r)
	}
	first := requests.Load()
	if first > 50 {
		t.Errorf("%d requests for 30 pages", first)
	}
	bodies := r.BytesReceived
	for _, c := range []struct {
		args    []string
		want    int
		updated int
	}{{[]string{"--drop", ".e4"}, 0, 30}, {[]string{"--drop", ".e4", "--keep", ".e4"}, 30, 30}, {nil, 30, 0}} {
		r := crawlInto(t, url, file, append([]string{"--via", "crawl"}, c.args...)...)
		if _, n := with(storedPages(t, file, url, url), letter); n != c.want {
			t.Errorf("%v: %d pages have the letter, want %d", c.args, n, c.want)
		}
		if r.Updated != c.updated || r.BytesReceived > bodies/2 {
			t.Errorf("%v: %d pages updated, %d bytes received, %d the first time", c.args, r.Updated, r.BytesReceived, bodies)
		}
	}
}

// Wrong rules are rejected before anything is read or written.
func TestRulesWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "index.html"), "<title>One</title><p>One page.</p>")
	store := filepath.Join(t.TempDir(), "no.db")
	for _, c := range []struct {
		args []string
		exit int
		code string
	}{
		{[]string{"serve", dir, "--drop", "div["}, 2, "usage/drop"},
		{[]string{"pull", "http://127.0.0.1:1/", "--keep", ":nonsense(", "--store", store}, 2, "usage/keep"},
	} {
		exit, code, out := failure(t, nil, c.args...)
		if exit != c.exit || code != c.code {
			t.Errorf("%v: exit %d %s, want %d %s:\n%s", c.args, exit, code, c.exit, c.code, out)
		}
	}
	if _, err := os.Stat(store); err == nil {
		t.Error("a store was created")
	}
}

// serve and crawl warn about rules that are probably mistakes.
func TestRulesTried(t *testing.T) {
	t.Parallel()
	site := filepath.Join("..", "..", "testdata", "sites", "handbook")
	for _, c := range []struct {
		name string
		args []string
		want []string
		not  []string
	}{
		{"no text remains", []string{"--drop", "body", "--drop", ".nowhere"}, []string{" reason=", `rule="drop .nowhere"`}, nil},
		{"one rule", []string{"--keep", ".nowhere"}, []string{`rule="keep .nowhere"`}, []string{" reason="}},
		{"correct rules", []string{"--drop", "footer"}, nil, []string{" reason=", " rule="}},
	} {
		code, _, errs := command(t, nil, append([]string{"build", site, "--out", t.TempDir(), "--base-url", "https://handbook.example/"}, c.args...)...)
		if code != 0 {
			t.Errorf("%s: exit %d\n%s", c.name, code, errs)
		}
		for _, w := range c.want {
			if strings.Count(errs, w) != 1 {
				t.Errorf("%s: %d times %q in\n%s", c.name, strings.Count(errs, w), w, errs)
			}
		}
		for _, w := range c.not {
			if strings.Contains(errs, w) {
				t.Errorf("%s: %q in\n%s", c.name, w, errs)
			}
		}
	}
}
