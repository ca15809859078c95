package sqlite

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// ordered is a text's place among others, and of what it is after that all of
// them begin with the first bytes, as a number.
type ordered struct {
	next uint64
	at   int32
}

// inOrder gives the places of texts in their order. Paths begin alike, and what
// follows mostly tells them apart in a few bytes: to put these in order byte by byte,
// the last first, is three times as fast as to compare.
func inOrder(texts []string) []ordered {
	alike := commonStart(texts)
	order, other := make([]ordered, len(texts)), make([]ordered, len(texts))
	var counts [8][256]int32 // of each byte of next, the last first
	for i, s := range texts {
		var next [8]byte
		copy(next[:], s[min(alike, len(s)):])
		o := ordered{binary.BigEndian.Uint64(next[:]), int32(i)}
		for d := range counts {
			counts[d][byte(o.next>>(8*d))]++
		}
		order[i] = o
	}
	for d := range counts {
		count := &counts[d]
		if len(order) > 0 && count[byte(order[0].next>>(8*d))] == int32(len(order)) {
			continue // it is the same in all
		}
		before := int32(0)
		for i, n := range count {
			count[i], before = before, before+n
		}
		for _, o := range order {
			c := &count[byte(o.next>>(8*d))]
			other[*c] = o
			*c++
		}
		order, other = other, order
	}
	for i := 0; i < len(order); { // those that these bytes do not tell apart
		end := i + 1
		for end < len(order) && order[end].next == order[i].next {
			end++
		}
		slices.SortFunc(order[i:end], func(a, b ordered) int {
			return cmp.Or(strings.Compare(texts[a.at], texts[b.at]), cmp.Compare(a.at, b.at))
		})
		i = end
	}
	return order
}

// commonStart is how many bytes all texts begin with, but for empty ones.
func commonStart(texts []string) int {
	start := ""
	for _, s := range texts {
		if s == "" {
			continue
		}
		if start == "" {
			start = s
		}
		for !strings.HasPrefix(s, start) {
			start = start[:len(start)-1]
		}
		if start == "" {
			break
		}
	}
	return len(start)
}
