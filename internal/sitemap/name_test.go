package sitemap

import "testing"

func TestIsOther(t *testing.T) {
	for url, want := range map[string]bool{
		"https://example.com/arc-sitemap.json":       true,
		"https://example.com/arc-sitemap.YAML?v=2#x": true,
		"https://example.com/list.yml":               true,
		"https://example.com/sitemap.xml":            false,
		"https://example.com/sitemap.xml?f=a.json":   false,
		"https://example.com/urls.txt":               false,
		"https://example.com/sitemap":                false,
	} {
		if got := IsOther(url); got != want {
			t.Errorf("%s: %t", url, got)
		}
	}
}
