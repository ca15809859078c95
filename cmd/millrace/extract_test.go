package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

func TestExtract(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "testdata", "sites", "handbook", "about", "index.html")
	for _, c := range []struct {
		name string
		args []string
		want []string
		not  string
	}{
		{"fields and Markdown", nil, []string{"title        About  (h1)", "## People", "**Ines Halloran**"}, "page.invalid"},
		{"text", []string{"--text"}, []string{"Alderford is a mill", "People"}, "## People"},
		{"explained", []string{"--explain"}, []string{"kept     main#content", "dropped  body.page footer.site-footer: tag footer, "}, "nothing"},
	} {
		code, out, errs := command(t, nil, append([]string{"extract", file}, c.args...)...)
		if code != 0 || errs != "" || strings.Contains(out, c.not) {
			t.Errorf("%s: exit %d\n%s%s", c.name, code, out, errs)
		}
		for _, w := range c.want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: %q is missing in\n%s", c.name, w, out)
			}
		}
	}
	_, out, _ := command(t, nil, "extract", file, "--json", "--explain", "--url", "https://handbook.example/about/")
	var r struct {
		URL, Title, Text string
		Sources          map[string]string
		Blocks           []any
		Explained        struct{ Root string }
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.URL != "https://handbook.example/about/" || r.Title != "About" ||
		r.Sources["title"] != "h1" || len(r.Blocks) < 3 || !strings.Contains(r.Text, "Alderford") || r.Explained.Root != "main#content" {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestExtractURL(t *testing.T) {
	t.Parallel()
	url, _ := liveSite(t, copySite(t, "handbook"), 0)
	code, out, errs := command(t, nil, "extract", url+"about/", "--allow-private")
	if code != 0 || !strings.Contains(out, "url          "+url+"about/\n") || !strings.Contains(out, "Ines Halloran") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if exit, code, out := failure(t, nil, "extract", url+"nowhere/", "--allow-private"); exit != 1 || code != "http-404" {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
}

// extract rejects wrong usage, and each error names its subject.
func TestExtractBad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := filepath.Join("..", "..", "testdata", "sites", "handbook", "about", "index.html")
	binary, yaml := filepath.Join(dir, "x.bin"), filepath.Join(dir, "millrace.yaml")
	write(t, binary, "\x7fELF\x00\x01\x02")
	write(t, yaml, "keep:\n  - \"#people\"\ndrop:\n  - h2\n  - a:hover\n")
	for _, c := range []struct {
		name string
		args []string
		exit int
		code string
		part string // expected in the message
	}{
		{"two forms", []string{page, "--text"}, 2, "usage/json", "--text"},
		{"a selector", []string{page, "--keep", "h2", "--drop", "p", "--drop", "..x"}, 2, "usage/drop", "..x"},
		{"a selector in the file", []string{page, "--config", yaml}, 2, "usage/drop", yaml + ":3:1"},
		{"no HTML", []string{binary}, 1, "binary", binary},
		{"no file", []string{"example/about"}, 1, "file-not-found", "http://"},
		{"a folder", []string{dir}, 1, "is-folder", dir},
	} {
		exit, code, out := failure(t, nil, append([]string{"extract"}, c.args...)...)
		if exit != c.exit || code != c.code || !strings.Contains(out, c.part) || strings.Contains(out, "page.invalid") {
			t.Errorf("%s: exit %d %s, want %s with %q\n%s", c.name, exit, code, c.code, c.part, out)
		}
	}
	if code, out, errs := command(t, nil, "extract", "--site", dir, "--text"); code != exitUsage || out != "" {
		t.Errorf("invalid form: exit %d\n%s%s", code, out, errs)
	}
}

func TestExtractIdle(t *testing.T) {
	t.Parallel()
	page := filepath.Join("..", "..", "testdata", "sites", "handbook", "about", "index.html")
	_, out, _ := command(t, nil, "extract", page, "--explain", "--drop", ".nowhere", "--drop", "footer", "--keep", "header")
	if !strings.Contains(out, "\nidle     drop .nowhere: ") || strings.Contains(out, "idle     drop footer") || strings.Contains(out, "idle     keep") {
		t.Error(out)
	}
}
