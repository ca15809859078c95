package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

func TestExtract(t *testing.T) {
	file := filepath.Join("..", "..", "testdata", "sites", "handbook", "about", "index.html")
	for _, c := range []struct {
		name string
		args []string
		want []string
		not  string
	}{
		{"fields and Markdown", nil, []string{"title        About  (h1)", "## People", "**Ines Halloran**"}, "page.invalid"},
		{"text", []string{"--text"}, []string{"Alderford is a mill", "People"}, "## People"},
		{"blocks", []string{"--blocks"}, []string{"heading    People", "text       Alderford is a mill"}, "title"},
		{"explained", []string{"--explain"}, []string{"kept     main#content", "dropped  body.page footer.site-footer: tag footer, "}, "nothing"},
	} {
		code, out, errs := command(t, nil, append([]string{"extract", file}, c.args...)...)
		if code != 0 || errs != "" || strings.Contains(out, c.not) {
			t.Errorf("%s: exit %d\n%s%s", c.name, code, out, errs)
		}
		for _, w := range c.want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: no %q in\n%s", c.name, w, out)
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
	url, _ := liveSite(t, copySite(t, "handbook"), 0)
	code, out, errs := command(t, nil, "extract", url+"about/", "--allow-private")
	if code != 0 || !strings.Contains(out, "url          "+url+"about/\n") || !strings.Contains(out, "Ines Halloran") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if code, _, errs := command(t, nil, "extract", url+"nowhere/", "--allow-private"); code != 1 || !strings.Contains(errs, "404") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
