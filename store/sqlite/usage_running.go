package sqlite

import "sync"

// running is what the events of a site come to that this process has recorded and
// nobody has added to the sums: from one number on and before another, without
// a gap. Whatever comes between, such as another process, ends it, and the events
// are read again when they are added.
type running struct {
	first, next int64
	usageTotals
}

func newTotals() *usageTotals {
	return &usageTotals{hours: make(map[int64]map[sumKind]*sumRow), tops: make(map[topDay][]tops)}
}

// runnings are those of all sites. The zero value works.
type runnings struct {
	mu    sync.Mutex
	of    map[int64]*running
	spare []*packing
}

// take gives what is known of a site, nil if nothing is, and forgets it.
func (s *runnings) take(site int64) *running {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.of[site]
	delete(s.of, site)
	return a
}

// recorded adds what was recorded of a site, where that had the number next and
// those before summed were in the sums, and gives how many rows of sums are told
// apart.
func (s *runnings) recorded(site, next, summed int64, packings []*packing) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.of[site]
	switch {
	case a != nil && a.first == summed && a.next == next:
	case next == summed:
		a = &running{first: next, next: next, usageTotals: *newTotals()}
		if s.of == nil {
			s.of = make(map[int64]*running)
		}
		s.of[site] = a
	default:
		delete(s.of, site)
		return 0
	}
	for _, p := range packings {
		a.count(p.list, p.paths.texts, p.queries.texts, p.rows[p.joined:], 0)
		a.next += int64(len(p.rows) - p.joined)
	}
	return a.apart
}

// sparePackings is how many packings are kept for those who record next.
const sparePackings = 2

// packing gives one for so many events at most, of which some are expected.
func (s *runnings) packing(most, expected int) *packing {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.spare)
	if n == 0 {
		return newPacking(most, expected)
	}
	p := s.spare[n-1]
	s.spare = s.spare[:n-1]
	return p
}

// done takes packings back that nobody needs any more.
func (s *runnings) done(packings []*packing) {
	for _, p := range packings {
		p.reset(p.most)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, packings[:min(len(packings), sparePackings-len(s.spare))]...)
}
