package extract

import (
	"cmp"
	"hash/fnv"
	"slices"

	"github.com/millrace/millrace"
)

// Sample chooses among the pages of a site those that a [Learner] looks at. A
// site that has changed a little has nearly the same sample: it is made of the
// URLs with the lowest hashes. Size is the number of pages, and has to be set.
type Sample struct {
	Size int
	refs []sampled // a heap would do; there are few, and most pages never enter
	max  uint64    // the highest hash, once there are enough
}

type sampled struct {
	hash uint64
	ref  millrace.Ref
}

// Add considers one page. Each is added once.
func (s *Sample) Add(ref millrace.Ref) {
	h := fnv.New64a()
	h.Write([]byte(ref.URL))
	// FNV leaves the high bits of similar short names alike.
	sum := h.Sum64() * 0x9E3779B97F4A7C15
	sum ^= sum >> 32
	if full := len(s.refs) >= s.Size; full && (s.Size <= 0 || sum >= s.max) {
		return
	} else if full {
		s.refs = slices.DeleteFunc(s.refs, func(e sampled) bool { return e.hash == s.max })
	}
	s.refs = append(s.refs, sampled{sum, ref})
	s.max = slices.MaxFunc(s.refs, func(a, b sampled) int { return cmp.Compare(a.hash, b.hash) }).hash
}

// Refs gives the chosen pages in the order of their URLs.
func (s *Sample) Refs() []millrace.Ref {
	refs := make([]millrace.Ref, 0, len(s.refs))
	for _, e := range s.refs {
		refs = append(refs, e.ref)
	}
	slices.SortFunc(refs, func(a, b millrace.Ref) int { return cmp.Compare(a.URL, b.URL) })
	return refs
}
