package sitemap

import "strings"

// IsOther reports whether a URL that robots.txt names as a sitemap is, by the
// end of its path, one in JSON or YAML: a list for machines of another protocol,
// which Parse does not read.
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
