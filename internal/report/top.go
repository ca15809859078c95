package report

import (
	"cmp"
	"slices"
)

// top counts the most frequent names in bounded memory. If it has too many names, it removes the
// rarer half. The counts of other names stay exact, but a name that was removed and returns starts
// at zero.
type top[T any] struct {
	most  int
	count func(*T) int64
	of    map[string]*T
	lost  int64 // maximum number by which a count is too low
}

// at returns the item of a name. It adds a new name.
func (t *top[T]) at(name string) *T {
	item := t.of[name]
	if item != nil {
		return item
	}
	if t.of == nil {
		t.of = make(map[string]*T)
	}
	if len(t.of) >= t.most {
		t.shrink()
	}
	item = new(T)
	t.of[name] = item
	return item
}

// shrink removes the names whose counts are at most the median.
func (t *top[T]) shrink() {
	counts := make([]int64, 0, len(t.of))
	for _, item := range t.of {
		counts = append(counts, t.count(item))
	}
	slices.Sort(counts)
	median := counts[len(counts)/2]
	for name, item := range t.of {
		if t.count(item) <= median {
			delete(t.of, name)
		}
	}
	t.lost += median
}

// names returns at most n names, the most frequent first.
func (t *top[T]) names(n int) []string {
	names := make([]string, 0, len(t.of))
	for name := range t.of {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(t.count(t.of[b]), t.count(t.of[a])), cmp.Compare(a, b))
	})
	return names[:min(n, len(names))]
}

// repeats finds repeated requests with the same response. It stores at least a million requests in
// 16 MB, and replaces the oldest ones.
type repeats struct {
	sets []([repeatWays]uint64) // requests with equal index, newest first, or 0
}

const (
	repeatWays = 4
	repeatSets = 1 << 19
)

// again reports whether the previous request with a hash had the same response, and stores this
// request.
func (r *repeats) again(request uint64, answer uint32) bool {
	if r.sets == nil {
		r.sets = make([][repeatWays]uint64, repeatSets)
	}
	set := &r.sets[request%repeatSets]
	tag := request>>32 | 1
	i := 0
	for i < repeatWays-1 && set[i]>>32 != tag {
		i++
	}
	same := set[i]>>32 == tag && uint32(set[i]) == answer
	copy(set[1:i+1], set[:i])
	set[0] = tag<<32 | uint64(answer)
	return same
}
