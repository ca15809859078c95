package kit

import (
	"hash/maphash"
	"slices"
)

// Names are the pages that a list has named, with 8 bytes of memory for each. A list
// is read twice: before anything of it counts, and for its pages.
type Names struct {
	seed  maphash.Seed
	seen  []uint64
	twice []uint64 // of those, ascending
}

// Add adds a page, when the list is read for the first time.
func (n *Names) Add(url string) {
	if n.seen == nil {
		n.seed = maphash.MakeSeed()
	}
	n.seen = append(n.seen, maphash.String(n.seed, url))
}

// End ends the first reading.
func (n *Names) End() {
	slices.Sort(n.seen)
	for i := 1; i < len(n.seen); i++ {
		if h := n.seen[i]; h == n.seen[i-1] && (len(n.twice) == 0 || n.twice[len(n.twice)-1] != h) {
			n.twice = append(n.twice, h)
		}
	}
	n.seen = nil
}

// Again returns a function for the second reading, which reports whether the list has
// named a page before.
func (n *Names) Again() func(url string) bool {
	named := map[string]bool{} // of those in twice
	return func(url string) bool {
		if len(n.twice) == 0 {
			return false
		}
		if _, twice := slices.BinarySearch(n.twice, maphash.String(n.seed, url)); !twice {
			return false
		}
		again := named[url]
		named[url] = true
		return again
	}
}
