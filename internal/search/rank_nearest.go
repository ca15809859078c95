package search

import (
	"cmp"
	"slices"
)

// Nearest keeps the most similar passages.
type Nearest struct {
	limit int
	list  []candidate
}

// NewNearest returns a Nearest that keeps up to limit passages.
func NewNearest(limit int) *Nearest { return &Nearest{limit: limit} }

// Add adds a passage if its similarity is positive.
func (n *Nearest) Add(id int64, similarity float64) {
	if similarity <= 0 {
		return
	}
	if n.list = append(n.list, candidate{id, similarity}); len(n.list) >= 2*n.limit {
		n.cut()
	}
}

func (n *Nearest) cut() {
	slices.SortFunc(n.list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.id, b.id))
	})
	n.list = n.list[:min(len(n.list), n.limit)]
}

// IDs returns the ids of the passages, the most similar first.
func (n *Nearest) IDs() []int64 {
	n.cut()
	ids := make([]int64, len(n.list))
	for i, c := range n.list {
		ids[i] = c.id
	}
	return ids
}
