package search

import (
	"cmp"
	"math"
	"slices"
)

// sample contains a limited number of passages. The choice depends only on the terms of the
// passages, not on their order: a full sample drops the passages in half of the range of hashes.
type sample struct {
	entries int    // maximum number of entries
	level   uint   // minimum number of leading zero bits in a stored passage's hash
	ids     idMap  // hashes of the stored terms
	seen    idMap  // hashes of the stored passages
	parts   []part // stored passages
	count   int    // number of entries in parts

	scratch []occurrence
}

// part contains a few thousand passages. Separate parts avoid copying one long array.
type part struct {
	hash   []uint64 // hash of each passage
	end    []uint32 // end of each passage's entries
	terms  []uint32 // ids of the terms of the entries
	counts []uint8
}

type occurrence struct {
	term uint64
	n    uint8
}

const partSize = 1 << 18 // maximum number of entries in a part

func newSample(entries int) *sample {
	return &sample{entries: entries, ids: newIDMap(), seen: newIDMap()}
}

// termHash identifies a term. With 64 bits, terms of a site do not collide in practice. The
// hash is FNV-1a followed by spread, and is the same in every process.
func termHash(term string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := 0; i < len(term); i++ {
		h = (h ^ uint64(term[i])) * 0x100000001b3
	}
	return spread(h)
}

// spread is a bijection that makes every bit of the result depend on all bits (the last
// step of splitmix64).
func spread(h uint64) uint64 {
	h += 0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// countTerms returns the different terms, sorted by hash, with their counts.
func countTerms(terms []string, to []occurrence) []occurrence {
	to = to[:0]
	for _, t := range terms {
		to = append(to, occurrence{termHash(t), 1})
	}
	slices.SortFunc(to, func(a, b occurrence) int { return cmp.Compare(a.term, b.term) })
	n := 0
	for _, o := range to {
		if n > 0 && to[n-1].term == o.term {
			if to[n-1].n < math.MaxUint8 {
				to[n-1].n++
			}
			continue
		}
		to[n] = o
		n++
	}
	return to[:n]
}

func (s *sample) add(terms []string) {
	s.scratch = countTerms(terms, s.scratch)
	row := s.scratch[:min(len(s.scratch), maxDistinct)]
	if len(row) == 0 {
		return
	}
	h := uint64(len(row))
	for _, o := range row {
		h = spread(h ^ o.term + uint64(o.n))
	}
	if n := s.seen.len(); !s.holds(h) || s.seen.put(h) != uint32(n) {
		return
	}
	p := s.partFor(len(row))
	for _, o := range row {
		p.terms = append(p.terms, s.ids.put(o.term))
		p.counts = append(p.counts, o.n)
	}
	p.hash = append(p.hash, h)
	p.end = append(p.end, uint32(len(p.terms)))
	s.count += len(row)
	for s.level < 63 && (s.count > s.entries || s.ids.len() > max(maxDistinct, s.entries/8)) {
		s.halve()
	}
}

func (s *sample) holds(hash uint64) bool { return hash>>(64-s.level) == 0 }

// partFor returns a part with space for n more entries.
func (s *sample) partFor(n int) *part {
	if len(s.parts) == 0 || len(s.parts[len(s.parts)-1].terms)+n > partSize {
		s.parts = append(s.parts, part{terms: make([]uint32, 0, partSize), counts: make([]uint8, 0, partSize)})
	}
	return &s.parts[len(s.parts)-1]
}

// halve keeps the passages in the lower half of the range of hashes, and their terms.
func (s *sample) halve() {
	old, ids := s.parts, s.ids.keys()
	s.level++
	s.parts, s.count, s.ids, s.seen = nil, 0, newIDMap(), newIDMap()
	for i := range old {
		p, start := &old[i], uint32(0)
		for j, h := range p.hash {
			from, end := start, p.end[j]
			start = end
			if !s.holds(h) {
				continue
			}
			s.seen.put(h)
			q := s.partFor(int(end - from))
			for e := from; e < end; e++ {
				q.terms = append(q.terms, s.ids.put(ids[p.terms[e]]))
			}
			q.counts = append(q.counts, p.counts[from:end]...)
			q.hash = append(q.hash, h)
			q.end = append(q.end, uint32(len(q.terms)))
			s.count += int(end - from)
		}
		old[i] = part{} // frees memory
	}
}

// idMap numbers hashes in the order of their first use.
type idMap struct {
	slots []uint32 // id+1 of the hash in the slot, or 0 if the slot is free
	hash  []uint64 // hash of each id
}

func newIDMap() idMap { return idMap{slots: make([]uint32, 1<<12)} }

func (m *idMap) len() int       { return len(m.hash) }
func (m *idMap) keys() []uint64 { return m.hash }

func (m *idMap) put(h uint64) uint32 {
	if len(m.hash)*2 >= len(m.slots) {
		m.slots = make([]uint32, 2*len(m.slots))
		for id, h := range m.hash {
			m.slots[m.find(h)] = uint32(id) + 1
		}
	}
	i := m.find(h)
	if m.slots[i] == 0 {
		m.hash = append(m.hash, h)
		m.slots[i] = uint32(len(m.hash))
	}
	return m.slots[i] - 1
}

// find returns the slot that contains h, or the free slot where h belongs.
func (m *idMap) find(h uint64) int {
	mask := len(m.slots) - 1
	for i := int(h) & mask; ; i = (i + 1) & mask {
		if id := m.slots[i]; id == 0 || m.hash[id-1] == h {
			return i
		}
	}
}
