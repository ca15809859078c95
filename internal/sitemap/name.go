package sitemap

import "strings"

// IsOther reports whether the path of a sitemap URL from robots.txt has an extension of JSON
// or YAML. Such a list belongs to another protocol, and Parse does not read it.
func IsOther(url string) bool {
	path, _, _ := strings.Cut(url, "?")
	path, _, _ = strings.Cut(strings.ToLower(path), "#")
	for _, ext := range []string{".json", ".yaml", ".yml"} {
		if strings.HasSuffix(path, ext) {
			return true
		}
	}
	return false
}
