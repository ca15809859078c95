package ingest

import (
	"path/filepath"
	"testing"
)

func TestSource(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "example.com") // does not exist
	for raw, want := range map[string]string{
		"example.com": "https://example.com/", "www.example.co.uk:8443/docs/": "https://www.example.co.uk:8443/docs/",
		"http://example.com": "http://example.com", "site/": "site/", "index.html": "index.html", "example.com.": "example.com.",
		"127.0.0.1:80": "127.0.0.1:80", "localhost": "localhost", "": "", "../example.com": "../example.com", dir: dir, "url.go": "url.go", "sites.csv": "sites.csv", "list.TXT": "list.TXT",
		"example.com/sitemap.xml": "https://example.com/sitemap.xml",
	} {
		if got := Source(raw); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
}
