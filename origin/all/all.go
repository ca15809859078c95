// Package all lists the origins of millrace.
package all

import (
	"slices"

	"github.com/millrace/millrace/origin"
	"github.com/millrace/millrace/origin/crawl"
	"github.com/millrace/millrace/origin/folder"
	"github.com/millrace/millrace/origin/markdown"
	"github.com/millrace/millrace/origin/wordpress"
)

// origins lists the origins in the order in which they are tried.
var origins = []origin.Origin{
	markdown.Origin(),
	folder.Origin(),
	wordpress.Origin(),
	crawl.Origin(),
}

// Origins returns the origins for folders, or those for URLs, in the order in which they are tried.
// The last one accepts every site.
func Origins(folder bool) []origin.Origin {
	return slices.DeleteFunc(slices.Clone(origins), func(o origin.Origin) bool { return o.Folder != folder })
}

// ByName returns the origin with a name, or nil if the name is unknown.
func ByName(name string) *origin.Origin {
	for _, o := range origins {
		if o.Name == name {
			return &o
		}
	}
	return nil
}
