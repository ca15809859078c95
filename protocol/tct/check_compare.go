package tct

import (
	"strings"

	"github.com/millrace/millrace/internal/docname"
)

// likeness is how much two C-URLs name one page.
type likeness int

// From the most to the least alike.
const (
	sameURL  likeness = iota
	nearURL           // but for http and https, or a slash at the end of the path
	otherURL          // pages
)

// compareURLs says how much two canonical URLs name one page.
func compareURLs(a, b string) likeness {
	switch {
	case a == b:
		return sameURL
	case withoutScheme(a) == withoutScheme(b):
		return nearURL
	}
	return otherURL
}

func withoutScheme(u string) string {
	_, u, _ = strings.Cut(u, "://")
	path, query := docname.CutQuery(u)
	return strings.TrimSuffix(path, "/") + query
}
