package sitemap

import (
	"strconv"
	"strings"
)

// MaxURLs is the most URLs that one sitemap may have (sitemaps.org).
const MaxURLs = 50_000

// The names of a site's sitemaps, under its documents' base.
const (
	Path      = "/sitemap.xml"
	IndexPath = "/sitemap-index.xml"
)

// Shards gives the number of sitemaps that so many pages take, with at most so
// many in each: a power of two, with room for a tenth more than there are, since
// a hash does not fill all of them alike.
func Shards(pages, most int) int {
	n := 1
	for pages > most && float64(n)*float64(most)*0.9 < float64(pages) {
		n *= 2
	}
	return n
}

// ShardName gives the name of one of them, from 0.
func ShardName(i, shards int) string {
	if i == 0 {
		return Path
	}
	return "/sitemap-" + strconv.Itoa(i+1) + "-of-" + strconv.Itoa(shards) + ".xml"
}

// ShardOf gives the one that a page is in, by a hash of its path (FNV-1a,
// folded), so that a new page moves one of them. The URL is absolute or an
// identity.
func ShardOf(u string, shards int) int {
	h := uint64(14695981039346656037)
	path := pathOf(u)
	for i := range len(path) {
		h = (h ^ uint64(path[i])) * 1099511628211
	}
	h ^= h >> 32
	h ^= h >> 16
	return int(h & uint64(shards-1))
}

// pathOf gives what a page is sharded by, whichever form its URL has.
func pathOf(u string) string {
	if _, rest, ok := strings.Cut(u, "://"); ok {
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			return rest[i:]
		}
		return "/"
	}
	return u
}
