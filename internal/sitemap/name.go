package sitemap

import "strings"

// IsOther reports whether the path of a sitemap URL from robots.txt ends like JSON or
// YAML: a list of another protocol, which Parse does not read.
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
