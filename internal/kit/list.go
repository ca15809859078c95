package kit

import (
	"hash/maphash"
	"slices"
)

// Names stores the pages that a list has named, in 8 bytes each. A list is read twice: first
// to validate it, then for its pages.
type Names struct {
	seed  maphash.Seed
	seen  []uint64
	twice []uint64 // hashes that occur twice, ascending
}

// Add adds a page during the first reading.
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

// Again returns a function for the second reading, which reports whether the list has already
// named a page.
func (n *Names) Again() func(url string) bool {
	named := map[string]bool{} // URLs whose hash is in twice
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
