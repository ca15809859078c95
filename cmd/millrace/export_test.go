package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/export"
)

// Documents of an earlier export in a folder do not override what serve publishes now.
func TestOldExport(t *testing.T) {
	t.Parallel()
	dir := copySite(t, "handbook")
	for _, name := range []string{"llm-pages.json", "about/llm.json"} {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), `{"version":1,"items":[]}`)
	}
	s := serve(t, dir)
	if code, out, errs := command(t, nil, "check", s.url, "--allow-private"); code != 0 || !strings.Contains(out, "TCT 01 ") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if r := pull(t, s.url, filepath.Join(t.TempDir(), "m.db")); r.Added < 10 || len(r.Notes) > 0 || len(r.Skipped) > 0 {
		t.Errorf("%+v", r)
	}
}

// export reports that no pull of the site has completed.
func TestExportPartial(t *testing.T) {
	t.Parallel()
	b := serveBehind(t, manyPages(t, 12))
	for _, via := range []string{"tct-01", "crawl"} {
		mirror, file := filepath.Join(t.TempDir(), "mirror.db"), filepath.Join(t.TempDir(), "pages.jsonl")
		for _, quota := range [][]string{{"--max-pages", "9"}, nil, {"--max-pages", "1"}} {
			r := pullBest(t, b.url, mirror, append([]string{"--via", via}, quota...)...)
			code, out, errs := command(t, nil, "export", "--store", mirror, "--format", "jsonl", "--out", file, "--json")
			var e export.Report
			if err := json.Unmarshal([]byte(out), &e); code != 0 || err != nil || len(e.Sites) != 1 {
				t.Fatalf("exit %d, %v: %s%s", code, err, out, errs)
			}
			want := r.Quota != "" && r.Added == e.Sites[0].Pages
			if e.Sites[0].Partial != want || strings.Contains(errs, "code=partial-mirror") != want {
				t.Errorf("%s %v: %+v\n%s", via, quota, e.Sites[0], errs)
			}
		}
	}
}

// A served mirror follows the pulls into it.
func TestServedMirrorFollows(t *testing.T) {
	t.Parallel()
	dir, mirror := copySite(t, "handbook"), filepath.Join(t.TempDir(), "mirror.db")
	site := serve(t, dir)
	pull(t, site.url, mirror)
	again := serve(t, mirror)
	_, header, _ := get(t, site.url+"llm-pages.json")
	etag := header.Get("Etag")
	name := filepath.Join(dir, "about", "index.html")
	html, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, strings.Replace(string(html), "Alderford is a mill", "Alderford was a mill", 1))
	eventually(t, "the edit is published", func() bool { return published(t, site, &etag) })
	_, _, list := get(t, again.url+"llm-pages.json")
	pull(t, site.url, mirror)
	eventually(t, "the pull is published", func() bool {
		_, _, now := get(t, again.url+"llm-pages.json")
		return now != list
	})
}
