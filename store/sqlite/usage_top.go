package sqlite

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/millrace/millrace/store"
)

const (
	// liveTops is how many different things of a topic are counted on a day, and
	// keptTops how many of them are left when it is over.
	liveTops = 8192
	keptTops = 2048
	// maxTops is how many are told apart while those of many days are added up.
	maxTops = 1 << 16
)

// topics are the numbers of the topics in the store, from 1.
var topics = []store.Topic{"", store.TopPages, store.TopQueries, store.TopMissing}

// topRow is what was asked for, and how often.
type topRow struct {
	name                 string
	events, empty, bytes int64
	last                 int64 // Unix ms
}

// tops are what was asked for, by name.
type tops map[string]*topRow

func (t tops) add(r *topRow) {
	old := t[r.name]
	if old == nil {
		old = &topRow{name: r.name, last: math.MinInt64}
		t[r.name] = old
	}
	add(&old.events, r.events)
	add(&old.empty, r.empty)
	add(&old.bytes, r.bytes)
	old.last = max(old.last, r.last)
}

// most gives those that were asked for most, at most n of them, most first.
func (t tops) most(n int) []*topRow {
	rows := make([]*topRow, 0, len(t))
	for _, r := range t {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *topRow) int {
		switch { // names are compared only where it is they that decide
		case a.events != b.events:
			return cmp.Compare(b.events, a.events)
		case a.last != b.last:
			return cmp.Compare(b.last, a.last)
		}
		return strings.Compare(a.name, b.name)
	})
	return rows[:min(n, len(rows))]
}

// cut leaves those that were asked for most.
func (t tops) cut(n int) {
	if len(t) <= n {
		return
	}
	rows := t.most(n)
	clear(t)
	for _, r := range rows {
		t[r.name] = r
	}
}

// encode gives what is kept of the tops of a day that begins at a time, in Unix
// ms. Of one that is over, times are not kept.
func (t tops) encode(c *coder, day int64, over bool) []byte {
	rows := make([]*topRow, 0, len(t))
	for _, r := range t {
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b *topRow) int { return strings.Compare(a.name, b.name) })
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.name
	}
	var w columnWriter
	w.sorted(names)
	for _, r := range rows {
		w.uint(uint64(r.events))
	}
	for _, r := range rows {
		w.uint(uint64(r.empty))
	}
	for _, r := range rows {
		w.uint(uint64(r.bytes))
	}
	for _, r := range rows {
		last := uint64(0)
		if !over {
			last = uint64(min(max(r.last-day, 0), dayMillis-1))
		}
		w.uint(last)
	}
	return w.compress(c)
}

// decodeTops is the inverse of encode.
func decodeTops(c *coder, data []byte, day int64) ([]topRow, error) {
	if len(data) == 0 {
		return nil, nil
	}
	r, err := c.expand(data, nil)
	if err != nil {
		return nil, err
	}
	names := r.sorted()
	rows := make([]topRow, len(names))
	for i := range rows {
		rows[i].name = names[i]
	}
	for i := range rows {
		rows[i].events = int64(r.uint() & math.MaxInt64)
	}
	for i := range rows {
		rows[i].empty = int64(r.uint() & math.MaxInt64)
	}
	for i := range rows {
		rows[i].bytes = int64(r.uint() & math.MaxInt64)
	}
	for i := range rows {
		rows[i].last = day + int64(r.uint()%uint64(dayMillis))
	}
	return rows, r.done()
}
