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
var topics = [...]store.Topic{"", store.TopPages, store.TopQueries, store.TopMissing}

// topRow is what was asked for, and how often.
type topRow struct {
	name                 string
	events, empty, bytes int64
	last                 int64 // Unix ms
}

func (r *topRow) add(more *topRow) {
	add(&r.events, more.events)
	add(&r.empty, more.empty)
	add(&r.bytes, more.bytes)
	r.last = max(r.last, more.last)
}

// tops are what was asked for, in the order of names, each once. To bring two of
// them together reads both from the front to the end, which is far quicker than
// to look up every name.
type tops []topRow

// together makes one of several, which it uses up.
func together(lists []tops) tops {
	switch len(lists) {
	case 0:
		return nil
	case 1:
		return lists[0]
	}
	n := 0
	for _, t := range lists {
		n += len(t)
	}
	for from, to := make(tops, 0, n), make(tops, 0, n); len(lists) > 1; from, to = to, from {
		to = to[:0] // each with its neighbour, so that a row moves few times
		for i := 0; i < len(lists); i += 2 {
			at := len(to)
			if i+1 < len(lists) {
				to = merged(to, lists[i], lists[i+1])
			} else {
				to = append(to, lists[i]...)
			}
			lists[i/2] = to[at:]
		}
		lists = lists[:(len(lists)+1)/2]
	}
	return lists[0]
}

// merged adds both to a list.
func merged(to, t, u tops) tops {
	for len(t) > 0 && len(u) > 0 {
		switch c := strings.Compare(t[0].name, u[0].name); {
		case c < 0:
			to, t = append(to, t[0]), t[1:]
		case c > 0:
			to, u = append(to, u[0]), u[1:]
		default:
			to = append(to, t[0])
			to[len(to)-1].add(&u[0])
			t, u = t[1:], u[1:]
		}
	}
	return append(append(to, t...), u...)
}

// most gives those that were asked for most, at most n of them, most first.
func (t tops) most(n int) []topRow {
	rows := slices.Clone(t)
	slices.SortFunc(rows, func(a, b topRow) int {
		if c := b.rank().compare(a.rank()); c != 0 {
			return c // names are compared only where it is they that decide
		}
		return strings.Compare(a.name, b.name)
	})
	return rows[:min(n, len(rows))]
}

// topRank says which of two was asked for more.
type topRank struct{ events, last int64 }

func (r *topRow) rank() topRank { return topRank{r.events, r.last} }

func (a topRank) compare(b topRank) int {
	if a.events != b.events {
		return cmp.Compare(a.events, b.events)
	}
	return cmp.Compare(a.last, b.last)
}

// cut gives those that [tops.most] gives, in the order of names.
func (t tops) cut(n int) tops {
	if len(t) <= n {
		return t
	}
	ranks := make([]topRank, len(t))
	for i := range t {
		ranks[i] = t[i].rank()
	}
	slices.SortFunc(ranks, func(a, b topRank) int { return b.compare(a) })
	least, ties := ranks[n-1], 0 // how many that are the least stay: the first by name
	for ; ties < n && ranks[n-1-ties] == least; ties++ {
	}
	out := make(tops, 0, n)
	for i := range t {
		c := t[i].rank().compare(least)
		if c == 0 && ties > 0 {
			c, ties = 1, ties-1
		}
		if c > 0 {
			out = append(out, t[i])
		}
	}
	return out
}

// topCounter adds up tops of many days, most of which have the same names.
type topCounter struct {
	rows tops // in no order
	at   map[string]int
}

func (c *topCounter) add(t tops) {
	if c.at == nil {
		c.at = make(map[string]int)
	}
	for i := range t {
		at, ok := c.at[t[i].name]
		if !ok {
			c.at[t[i].name] = len(c.rows)
			c.rows = append(c.rows, t[i])
			continue
		}
		c.rows[at].add(&t[i])
	}
	if len(c.rows) > maxTops {
		c.rows = c.rows.most(maxTops / 2)
		clear(c.at)
		for i := range c.rows {
			c.at[c.rows[i].name] = i
		}
	}
}

// encode gives what is kept of the tops of a day that begins at a time, in Unix
// ms. Of one that is over, times are not kept.
func (t tops) encode(c *coder, day int64, over bool) []byte {
	names := make([]string, len(t))
	for i := range t {
		names[i] = t[i].name
	}
	var w columnWriter
	w.sorted(names)
	for i := range t {
		w.uint(uint64(t[i].events))
	}
	for i := range t {
		w.uint(uint64(t[i].empty))
	}
	for i := range t {
		w.uint(uint64(t[i].bytes))
	}
	for i := range t {
		last := uint64(0)
		if !over {
			last = uint64(min(max(t[i].last-day, 0), dayMillis-1))
		}
		w.uint(last)
	}
	return w.compress(c)
}

// decodeTops is the inverse of encode.
func decodeTops(c *coder, data []byte, day int64) (tops, error) {
	if len(data) == 0 {
		return nil, nil
	}
	r, err := c.expand(data, nil)
	if err != nil {
		return nil, err
	}
	names := r.sorted()
	rows := make(tops, len(names))
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
	if err := r.done(); err != nil {
		return nil, err
	}
	return rows, nil
}
