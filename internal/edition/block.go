package edition

// block is memory that bodies share. A body with an allocation of its own leaves a
// hole when it is dropped, which only bodies of about its size can fill: a cache of
// 52 MB took 80 MB of the heap, and the collector ran all the time to stay within
// its limit. Blocks are guarded by the lock of their shard.
type block struct {
	free []byte // the part that is not used yet
	live int    // bytes of bodies that are in the cache
	reps []*rep // that lie in it; nil = it is not in the cache any more
}

const (
	maxBlock   = 64 << 10
	blockShare = 16 // of the limit of a shard is a block at most
	bodyShare  = 4  // of a block is a body in it at most
)

// place stores a representation of an entry, in the current block if it is small.
func (s *shard) place(e *entry, at coding, r *rep) {
	if r.content != nil || len(r.body) > s.block/bodyShare {
		e.reps[at].Store(r)
		return
	}
	if s.current == nil || len(r.body) > len(s.current.free) {
		last := s.current
		s.current = &block{free: make([]byte, s.block)}
		s.compact(last)
	}
	b := s.current
	n := copy(b.free, r.body)
	in := &rep{
		coding: r.coding, body: b.free[:n:n], size: r.size, plain: r.plain, digest: r.digest, length: r.length, made: r.made,
		block: b, of: e, at: at, place: int32(len(b.reps)),
	}
	in.age.Store(r.age.Load())
	in.signed.Store(r.signed.Load())
	b.free, b.live, b.reps = b.free[n:], b.live+n, append(b.reps, in)
	e.reps[at].Store(in)
}

// release gives the memory of a representation back, which may be nil.
func (s *shard) release(r *rep) {
	if r == nil || r.of == nil {
		return
	}
	r.of, r.block.reps[r.place] = nil, nil
	r.block.live -= len(r.body)
	s.compact(r.block)
}

// compact moves what is in a block to another one, if a quarter of the block or
// more is not needed. Responses may still be made of the old one.
func (s *shard) compact(b *block) {
	if b == nil || b == s.current || b.reps == nil || b.live > s.block*3/4 {
		return
	}
	reps := b.reps
	b.reps = nil
	for _, r := range reps {
		if r != nil {
			s.place(r.of, r.at, r)
			r.of = nil
		}
	}
}
