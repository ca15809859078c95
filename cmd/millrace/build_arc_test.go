package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A built folder links to its ARC sitemap from the home page's head and from
// robots.txt. A folder at the root of its host has a robots.txt, even if the site has
// none. The folder excludes personalised parts, because static hosts check no keys.
func TestBuildARC(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"https://example.com/", "https://example.com/shop/"} {
		src, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
		write(t, filepath.Join(src, "index.html"), "<title>Shop</title><p>We sell wheels that turn, and nothing else.</p>")
		write(t, filepath.Join(src, "join.html"), signup)
		built(t, src, out, base, "--store", filepath.Join(t.TempDir(), "s.db"), "--complete")
		file := func(name string) string {
			b, err := os.ReadFile(filepath.Join(out, name))
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			return string(b)
		}
		if home := file("index.html"); !strings.Contains(home, `"contentUrl":"`+base+`arc-sitemap.json"`) {
			t.Errorf("%s: the home page is %s", base, home)
		}
		if robots, root := file("robots.txt"), base == "https://example.com/"; strings.Contains(robots, "Sitemap: "+base+"arc-sitemap.json\n") != root {
			t.Errorf("%s: robots.txt is %q", base, robots)
		}
		for _, name := range []string{"arc-sitemap.json", "arc-sitemap.yaml", ".well-known/arc-sitemap.json"} {
			if list := file(name); !strings.Contains(list, "/join.html") || strings.Contains(list, "mail-of-yours") {
				t.Errorf("%s: %s is %s", base, name, list)
			}
		}
	}
}
