package edition

// block is memory that several bodies share. If each body had its own allocation, an evicted body
// would leave a hole that only bodies of about the same size can fill. A cache of 52 MB would then
// take 80 MB of the heap, and the garbage collector would run constantly. The shard's lock guards
// its blocks.
type block struct {
	free []byte // the unused part
	live int    // total size in bytes of the block's bodies that are in the cache
	reps []*rep // representations with bodies in the block. If nil, the block is no longer in the cache.
}

const (
	maxBlock   = 64 << 10
	blockShare = 16 // ratio of a shard's limit to the maximum size of a block
	bodyShare  = 4  // ratio of a block's size to the maximum size of a body in it
)

// store stores a representation of an entry. A small body goes into the current block.
func (s *shard) store(e *entry, at coding, r *rep) {
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
		block: b, of: e, at: at, index: int32(len(b.reps)),
	}
	in.age.Store(r.age.Load())
	in.signed.Store(r.signed.Load())
	b.free, b.live, b.reps = b.free[n:], b.live+n, append(b.reps, in)
	e.reps[at].Store(in)
}

// release frees the space of a representation in its block. r may be nil or have no block.
func (s *shard) release(r *rep) {
	if r == nil || r.of == nil {
		return
	}
	r.of, r.block.reps[r.index] = nil, nil
	r.block.live -= len(r.body)
	s.compact(r.block)
}

// compact moves the bodies of a block to the current one, if a quarter of the block or
// more is unused. Responses in progress may still read the old block.
func (s *shard) compact(b *block) {
	if b == nil || b == s.current || b.reps == nil || b.live > s.block*3/4 {
		return
	}
	reps := b.reps
	b.reps = nil
	for _, r := range reps {
		if r != nil {
			s.store(r.of, r.at, r)
			r.of = nil
		}
	}
}
