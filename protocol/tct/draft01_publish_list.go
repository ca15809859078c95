package tct

import (
	"strconv"

	"github.com/millrace/millrace"
)

// maxShards keeps the root's Link fields, one for each list, under what
// servers and clients take as a header: 5 KB.
const maxShards = 64

// shards gives the number of lists: a power of two, with room for a tenth
// more pages than there are, since a hash does not fill all of them alike.
func (p *publisher01) shards(site millrace.Site) int {
	n := 1
	for site.Pages > p.listItems && n < maxShards && float64(n)*float64(p.listItems)*0.9 < float64(site.Pages) {
		n *= 2
	}
	return n
}

// listName01 gives the path of one list. It changes with the number of lists:
// whoever remembers the lists of another number then finds none, rather than
// one that seems to have lost half its pages.
func listName01(i, shards int) string {
	if shards == 1 {
		return "/llm-pages.json"
	}
	return "/llm-pages-" + strconv.Itoa(i+1) + "-of-" + strconv.Itoa(shards) + ".json"
}

// shardOf gives the list of a page: FNV-1a (64 bits) of its identity, folded,
// because its low bits alone depend on few bits of each byte.
func shardOf(identity string, shards int) int {
	h := uint64(14695981039346656037)
	for i := range len(identity) {
		h = (h ^ uint64(identity[i])) * 1099511628211
	}
	h ^= h >> 32
	h ^= h >> 16
	return int(h & uint64(shards-1))
}

// lists returns the M-Sitemaps (1.7). Items are in the order of identities; an
// overview comes first in the first list.
func (p *publisher01) lists(v millrace.View, over *overview) []*millrace.Document {
	site := v.Site()
	out := make([]*millrace.Document, p.shards(site))
	for i := range out {
		overview := over
		if i > 0 {
			overview = nil
		}
		parts := draft01.List(v, overview, nil, func(identity string) bool { return shardOf(identity, len(out)) == i })
		out[i] = &millrace.Document{
			Path: listName01(i, len(out)), Header: draft01.Header(site.Time), OneTag: true, Large: true, PageCount: int64(site.Pages / len(out)),
			Parts: parts, Write: parts.Write,
		}
	}
	return out
}
