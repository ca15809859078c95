package tree

import (
	"os"
	"path/filepath"
	"testing"
)

func TestExposes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	site, link := filepath.Join(dir, "site"), filepath.Join(dir, "link")
	if err := os.Mkdir(site, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(site, link); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{
		"site/a": true, "site/a/b": true, "link/new/a": true, "site/.git/a": false, "site/a/.b/c": false, "site": false, "a": false, "site-files/a": false,
	} {
		if got := Exposes(site, filepath.Join(dir, file)); got != want {
			t.Errorf("%s: %t", file, got)
		}
	}
	if got := Real(filepath.Join(link, "new", "a")); got != filepath.Join(Real(site), "new", "a") {
		t.Error(got)
	}
}
