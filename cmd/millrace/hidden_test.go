package main

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A page that becomes hidden disappears at once from every document of every protocol,
// including unlinked old ones. When it is shown again, it returns to all of them.
func TestHiddenEverywhere(t *testing.T) {
	t.Parallel()
	const phrase = "overshot wheel of four metres and two pairs" // only on /about/
	dir, file := copySite(t, "handbook"), filepath.Join(t.TempDir(), "millrace.yaml")
	public := "markdown-public: true\nllms-full: true\n"
	write(t, file, public)
	s := serve(t, dir, "--config", file)
	defer s.ended(t)

	// Every URL of a document or a search that exists or may exist.
	ways := []string{
		"about/llm.json", "about/llm/", "about/index.md", "about.md", "about/llm.json?x", "abou%74/llm.json", "about/llms.txt",
		"openfeeder?url=/about/", "openfeeder?q=overshot+wheel", "openfeeder?q=society+of+nineteen+people", "openfeeder?page=1", "openfeeder?since=2000-01-01T00:00:00Z",
	}
	folder := filepath.Join(t.TempDir(), "out")
	built(t, dir, folder, s.url, "--config", file, "--complete")
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(folder, name)
		if err == nil && !d.IsDir() && !strings.HasPrefix(rel, ".millrace") && !slices.Contains([]string{".html", ".css", ".svg", ".png"}, filepath.Ext(rel)) {
			ways = append(ways, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	says := func() (found []string) {
		list := func() { // SCP files have new names when their contents change
			_, _, sitemap := get(t, s.url+"sitemap.xml")
			for part := range strings.SplitSeq(sitemap, s.url) {
				if end := strings.IndexAny(part, "<\" "); end > 0 && strings.HasPrefix(part, "scp/") && !slices.Contains(ways, part[:end]) {
					ways = append(ways, part[:end])
				}
			}
		}
		list()
		for _, way := range append(ways[:len(ways):len(ways)], "about/ as Markdown") {
			fields := []string{"Accept-Encoding", "identity"}
			if path, ok := strings.CutSuffix(way, " as Markdown"); ok {
				way, fields = path, append(fields, "Accept", "text/markdown")
			}
			code, h, body := get(t, s.url+way, fields...)
			body = plainText(t, h.Get("Content-Encoding"), body)
			if code == http.StatusOK && strings.Contains(body, phrase) && !strings.Contains(h.Get("Content-Type"), "html") {
				found = append(found, way)
			}
		}
		return found
	}
	before := says()
	if len(before) < 8 || !slices.Contains(before, "about/llm.json") || !slices.Contains(before, "llms-full.txt") ||
		!slices.ContainsFunc(before, func(way string) bool { return strings.HasPrefix(way, "scp/") }) {
		t.Fatalf("%q of %q contain it", before, ways)
	}
	t.Logf("%d of %d documents contain it: %q", len(before), len(ways), before)

	_, _, list := get(t, s.url+"llm-pages.json")
	s.reload(t, file, public+"exclude: [/about]\n")
	eventually(t, "the list differs", func() bool { _, _, now := get(t, s.url+"llm-pages.json"); return now != list })
	for round := range 3 { // no cache may bring the page back
		if found := says(); len(found) > 0 {
			t.Fatalf("round %d: %q contain the hidden text", round, found)
		}
	}
	s.reload(t, file, public)
	eventually(t, "the list is unchanged", func() bool { _, _, now := get(t, s.url+"llm-pages.json"); return strings.Contains(now, "/about/") })
	// Search follows shortly after the documents.
	eventually(t, "the same documents contain it again", func() bool { return len(says()) >= len(before) })
}

// plainText decodes a content coding. It skips zstd, which always has an uncoded twin.
func plainText(t *testing.T, coding, body string) string {
	t.Helper()
	switch coding {
	case "gzip":
		z, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	case "zstd":
		return ""
	}
	return body
}

// --exclude adds to the default paths. --exclude-defaults=false drops them, by flag and
// by configuration file.
func TestExclude(t *testing.T) {
	t.Parallel()
	src := t.TempDir()
	for _, path := range []string{"", "login", "drafts", "post"} {
		if err := os.MkdirAll(filepath.Join(src, path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(src, path, "index.html"), "<title>Page "+path+"</title><main><h1>Page "+path+"</h1><p>A text about "+path+".</main>")
	}
	conf := filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, conf, "exclude: [/drafts]\nexclude-defaults: false\n")
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"defaults", nil, []string{"/", "/drafts/", "/post/"}},
		{"exclude", []string{"--exclude", "/drafts"}, []string{"/", "/post/"}},
		{"no defaults", []string{"--exclude-defaults=false"}, []string{"/", "/drafts/", "/login/", "/post/"}},
		{"file", []string{"--config", conf}, []string{"/", "/login/", "/post/"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			built(t, src, out, "https://example.com/", append(c.args, "--complete", "--store", filepath.Join(t.TempDir(), "s.db"))...)
			b, err := os.ReadFile(filepath.Join(out, "llm-pages.json"))
			var list struct {
				Items []struct {
					CURL string `json:"cUrl"`
				}
			}
			if err == nil {
				err = json.Unmarshal(b, &list)
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, item := range list.Items {
				got = append(got, strings.TrimPrefix(item.CURL, "https://example.com"))
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("published %q, want %q", got, c.want)
			}
		})
	}
}
