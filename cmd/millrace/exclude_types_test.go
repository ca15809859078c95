package main

import (
	"path/filepath"
	"testing"
)

// A folder and a crawled site have no CMS types, so --exclude-types is refused: it
// would hide nothing.
func TestExcludeTypesOfCrawl(t *testing.T) {
	t.Parallel()
	site := initSite(t, "")
	for _, src := range []string{site.URL, copySite(t, "handbook")} {
		code, _, errs := command(t, nil, "build", src, "--out", filepath.Join(t.TempDir(), "out"), "--base-url", "https://example.com/", "--store", filepath.Join(t.TempDir(), "s.db"), "--allow-private", "--exclude-types", "page")
		if code != 2 {
			t.Errorf("%s: exit %d: %s", src, code, errs)
		}
	}
}
