package tct

import (
	"strings"

	"github.com/millrace/millrace/internal/docname"
)

// Likeness is how much two C-URLs name one page.
type Likeness int

// From the most to the least alike.
const (
	Exact     Likeness = iota
	Near               // but for http and https, or a slash at the end of the path
	Different          // pages
)

// Compare says how much two canonical URLs name one page.
func Compare(a, b string) Likeness {
	switch {
	case a == b:
		return Exact
	case bare(a) == bare(b):
		return Near
	}
	return Different
}

func bare(u string) string {
	_, u, _ = strings.Cut(u, "://")
	path, query := docname.CutQuery(u)
	return strings.TrimSuffix(path, "/") + query
}
