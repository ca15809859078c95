package tct

import (
	"strings"

	"github.com/millrace/millrace/internal/docname"
)

// likeness is the degree to which two C-URLs match.
type likeness int

// Degrees of likeness, best match first.
const (
	sameURL  likeness = iota
	nearURL           // equal except for http or https, or for a slash at the end of the path
	otherURL          // different pages
)

// compareURLs returns how closely two canonical URLs match.
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
