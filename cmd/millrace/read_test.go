package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "testdata", "sites", "handbook", "about", "index.html")
	code, out, errs := command(t, nil, "read", file)
	if code != 0 || errs != "" || !strings.HasPrefix(out, "# About\n\nAlderford is a mill") || !strings.Contains(out, "\n## People\n") || strings.Contains(out, "page.invalid") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	url, _ := liveSite(t, copySite(t, "handbook"), 0)
	code, out, errs = command(t, nil, "read", url+"about/", "--allow-private", "--json", "--drop", "h2")
	var r readReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || r.URL != url+"about/" || r.Title != "About" || !strings.HasPrefix(r.Markdown, "# About\n") || strings.Contains(r.Markdown, "## ") {
		t.Errorf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	if exit, code, out := failure(t, nil, "read", url+"nowhere/", "--allow-private"); exit != 1 || code != "http-404" {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
	empty := filepath.Join(t.TempDir(), "empty.html")
	write(t, empty, "<!doctype html><title>Loading</title><div id=app></div><script src=app.js></script>")
	if exit, code, out := failure(t, nil, "read", empty); exit != 1 || code == "" {
		t.Errorf("exit %d %s: %s", exit, code, out)
	}
}

// The name of a host is its URL, as for serve.
func TestReadHost(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"read", "extract"} {
		if exit, _, out := failure(t, nil, name, "example.com", "--url", "https://example.org/"); exit != exitUsage || !strings.Contains(out, "https://example.com/") {
			t.Errorf("%s: exit %d, %s", name, exit, out)
		}
	}
	none := filepath.Join(t.TempDir(), "none", "a.db")
	if exit, _, out := command(t, nil, "mcp", "example.com", "--store", none); exit != exitFailure {
		t.Errorf("mcp: exit %d, %s", exit, out)
	}
}
