package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A crawl of the PostgreSQL manual behind nginx equals the manual in its folder.
func TestRealNginx(t *testing.T) {
	t.Parallel()
	manual := pgdoc(t)
	url, _ := realSite(t, "nginx", "--html", manual)
	code, header, _ := get(t, url+"index.html")
	if code != 200 || header.Get("Etag") == "" {
		t.Fatalf("%d %v", code, header)
	}
	file := filepath.Join(t.TempDir(), "mirror.db")
	first := crawlInto(t, url, file, "--via", "crawl")
	want := storedPages(t, ingested(t, manual, url), "folder "+manual, url)
	got := storedPages(t, file, url, url)
	for u, p := range want {
		if got[u] == nil || got[u].Text() != p.Text() || got[u].Title != p.Title {
			t.Errorf("%s differs between mirror and folder", u)
		}
	}
	if len(got) != len(want) || first.Added != len(want) {
		t.Errorf("%d pages in the mirror, %d in the folder; %+v", len(got), len(want), first)
	}
	crawlInto(t, url, file, "--via", "crawl") // retries broken links
	second := crawlInto(t, url, file, "--via", "crawl")
	if second.Added+second.Updated+second.Deleted != 0 || second.Requests > int64(len(got)) || second.BytesReceived > 400*second.Requests {
		t.Errorf("nothing changed: %+v", second)
	}
}

// A WordPress site is read by its REST API, or by a crawl if the API is closed. No private content
// appears.
func TestRealWordPress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, sign string // expected in the log
		args       []string
	}{
		{"API", " site=", nil},
		{"no API", " code=", []string{"--no-rest"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, _ := realSite(t, "wordpress", append(c.args, "--pages", "40")...)
			s := serve(t, url, "--allow-private")
			if !strings.Contains(s.out.String(), c.sign) {
				t.Errorf("%q is missing in the log:\n%s", c.sign, s.out.String())
			}
			_, _, list := get(t, s.url+"llm-pages.json")
			if n := strings.Count(list, `"mUrl"`); n < 60 {
				t.Errorf("%d pages in the list", n)
			}
			for _, line := range strings.Split(list, "\n") {
				_, rest, ok := strings.Cut(line, `"mUrl":"`)
				if !ok || strings.Contains(line, "/errand/") { // errands are public, but not in the API
					continue
				}
				m, _, _ := strings.Cut(rest, `"`)
				if strings.Contains(m, "hush") { // every private post has such a word, also in its address
					t.Errorf("the list names a private page: %s", m)
				}
				if code, _, body := get(t, m); code != 200 || strings.Contains(body, "hush in short") {
					t.Errorf("%d %s:\n%s", code, m, body)
				}
			}
		})
	}
}

// A crawl of a MediaWiki skips histories and editors, even if robots.txt allows them.
func TestRealMediaWiki(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--no-robots"}} {
		url, folder := realSite(t, "mediawiki", args...)
		file := filepath.Join(t.TempDir(), "mirror.db")
		first := crawlInto(t, url, file, "--via", "crawl")
		pages := storedPages(t, file, url, url)
		articles := 0
		for u := range pages {
			if strings.HasPrefix(u, url+"wiki/") && !strings.Contains(u, "Special:") {
				articles++
			}
		}
		if articles < 60 || articles > 120 {
			t.Errorf("%v: %d articles; %+v", args, articles, first)
		}
		script, err := filepath.Abs("../../testdata/real/mediawiki.sh")
		if err != nil {
			t.Fatal(err)
		}
		edit := exec.CommandContext(t.Context(), "bash", script, "edit", folder, "Main Page")
		edit.Stdin = strings.NewReader("A flood took the bridge away, and the mill stands still.")
		if out, err := edit.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		second := crawlInto(t, url, file, "--via", "crawl")
		if second.Updated == 0 || second.Added > 5 {
			t.Errorf("%v: after an edit: %+v", args, second)
		}
		if p := storedPages(t, file, url, url)[url+"wiki/Main_Page"]; p == nil || !strings.Contains(p.Text(), "A flood took the bridge away") {
			t.Errorf("%v: the edit is not in the mirror", args)
		}
	}
}

// A site built by Hugo has the same pages whether it is crawled or read as Markdown.
func TestRealHugo(t *testing.T) {
	t.Parallel()
	url, folder := realSite(t, "hugo")
	file := filepath.Join(t.TempDir(), "mirror.db")
	crawlInto(t, url, file, "--via", "crawl")
	got := storedPages(t, file, url, url)
	dir := filepath.Join(folder, "source")
	source := filepath.Join(t.TempDir(), "source.db")
	serve(t, dir, "--store", source, "--base-url", url, "--as", "markdown").stop()
	want := storedPages(t, source, "folder "+dir+" markdown", url)
	if len(want) < 60 {
		t.Fatalf("%d pages in the source", len(want))
	}
	for u, p := range want {
		switch g := got[u]; {
		case g == nil:
			t.Errorf("%s is not in the mirror", u)
		case g.Title != p.Title:
			t.Errorf("%s: title %q, in the source %q", u, g.Title, p.Title)
		}
	}
}
