package sitemap

import (
	"strconv"
	"strings"
)

// MaxURLs is the maximum number of URLs in one sitemap (sitemaps.org).
const MaxURLs = 50_000

// The names of a site's sitemaps, relative to the base of its endpoints.
const (
	Path      = "/sitemap.xml"
	IndexPath = "/sitemap-index.xml"
)

// Shards returns the number of sitemaps for a number of pages. The result is a power of two. most is
// the maximum number of pages in each sitemap. If several sitemaps are necessary, Shards leaves a
// tenth of the space free, because a hash does not fill all sitemaps equally.
func Shards(pages, most int) int {
	n := 1
	for pages > most && float64(n)*float64(most)*0.9 < float64(pages) {
		n *= 2
	}
	return n
}

// ShardName returns the name of sitemap i, counted from 0.
func ShardName(i, shards int) string {
	if i == 0 {
		return Path
	}
	return "/sitemap-" + strconv.Itoa(i+1) + "-of-" + strconv.Itoa(shards) + ".xml"
}

// ShardOf returns the number of the sitemap that lists a page. It depends on a hash of the
// page's path (FNV-1a, folded), so a new page changes only one sitemap. The URL is absolute or
// an identity.
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

// pathOf returns the part of a URL that determines its shard. The result is the same for an
// absolute URL and an identity.
func pathOf(u string) string {
	if _, rest, ok := strings.Cut(u, "://"); ok {
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			return rest[i:]
		}
		return "/"
	}
	return u
}
