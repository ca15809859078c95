package edition

import (
	"hash/maphash"
	"net/url"
	"strings"
	"sync"
)

// key is a request target. It consists of the path, raw path and query of a [url.URL], so a lookup
// does not allocate.
type key struct{ path, raw, query string }

func keyOf(u *url.URL) key { return key{u.Path, u.RawPath, u.RawQuery} }

// keyAt returns the key of a percent-encoded path, which may have a query.
func keyAt(path string) key {
	u, err := url.Parse(path)
	if err != nil {
		return key{path: path}
	}
	return keyOf(u)
}

// clone copies the key, so that the copy does not keep the request in memory.
func (k key) clone() key {
	return key{strings.Clone(k.path), strings.Clone(k.raw), strings.Clone(k.query)}
}

// maxKey is the maximum length in bytes of a cached request target.
const maxKey = 2048

const shards = 8

// cache stores entries and their bodies, bounded in bytes. It evicts by the clock algorithm: an
// entry that was used since the hand passed it stays for another round. An entry first loses its
// unused bodies.
//
// Entries without a body have their own clock with a smaller limit. They are many small objects,
// whose cost for the garbage collector exceeds their size. A crawler that gets a 304 for every page
// once must not fill the cache with them.
//
// A hit takes only a read lock, and writes only flags that are not set yet. Small bodies share
// blocks of memory.
type cache struct {
	seed   maphash.Seed
	limit  int64 // maximum size of one shard in bytes
	shards [shards]shard
	shapes sync.Map   // from string to *shape
	count  sync.Mutex // guards known
	known  int        // number of entries in shapes
}

type shard struct {
	mu       sync.RWMutex
	m        map[key]*entry
	bodyless clock // entries without a body
	bodies   clock // entries with a body

	block   int    // size of a block in bytes
	current *block // block that receives bodies, or nil
}

// bodylessShare is the ratio of a shard's limit to its limit for entries without a body.
const bodylessShare = 3

// clock is a ring of entries with a hand.
type clock struct {
	ring  []*entry
	hand  int
	bytes int64
}

func (c *clock) add(e *entry) {
	e.clock, e.index = c, len(c.ring)
	c.ring = append(c.ring, e)
	c.bytes += e.cost
}

func (c *clock) remove(e *entry) {
	last := len(c.ring) - 1
	c.ring[e.index] = c.ring[last]
	c.ring[e.index].index = e.index
	c.ring[last] = nil
	c.ring = c.ring[:last]
	c.bytes -= e.cost
	e.clock = nil
}

// next moves the hand to an entry that was not used since the last pass, or that has an unused
// body. It returns the entry and the codings of its used bodies.
func (c *clock) next() (*entry, codingSet) {
	for {
		if c.hand >= len(c.ring) {
			c.hand = 0
		}
		e := c.ring[c.hand]
		if used := codingSet(e.used.Swap(0)); used == 0 || e.bodies()&^used != 0 {
			return e, used
		}
		c.hand++
	}
}

func newCache(limit int64) *cache {
	c := &cache{seed: maphash.MakeSeed(), limit: limit / shards}
	for i := range c.shards {
		c.shards[i].m = make(map[key]*entry)
		c.shards[i].block = int(min(maxBlock, c.limit/blockShare))
	}
	return c
}

// shard returns the shard of a key. The hash includes the query, because one path may have many
// queries.
func (c *cache) shard(k key) *shard {
	h := maphash.String(c.seed, k.path)
	if k.query != "" {
		h = 31*h + maphash.String(c.seed, k.query)
	}
	return &c.shards[h%shards]
}

// get returns the entry of a target, or nil.
func (c *cache) get(k key) *entry {
	s := c.shard(k)
	s.mu.RLock()
	e := s.m[k]
	s.mu.RUnlock()
	if e != nil {
		e.touch(touched)
	}
	return e
}

// touched is the bit of entry.used that is set when the entry is used. The other bits are the
// codings of the used bodies.
const touched codingSet = 1 << codings

func (e *entry) touch(what codingSet) {
	if uint32(what)&^e.used.Load() != 0 {
		e.used.Or(uint32(what))
	}
}

// bodies returns the codings in which the entry has a body.
func (e *entry) bodies() (has codingSet) {
	for at := range codings {
		if e.reps[at].Load() != nil {
			has |= 1 << at
		}
	}
	return has
}

// put replaces old, which may be nil, with e. If another goroutine has put an equal entry in the
// meantime, put returns that entry and drops e, so that only one goroutine renders. An entry whose
// key is longer than maxKey is not stored.
func (c *cache) put(e, old *entry) *entry {
	if len(e.key.path)+len(e.key.raw)+len(e.key.query) > maxKey {
		return e
	}
	s := c.shard(e.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if there := s.m[e.key]; there != nil {
		if there != old && there.same(e) {
			there.confirm(e.state.Load())
			return there
		}
		s.drop(there)
	}
	e.cost = e.memory()
	for at := range codings {
		if r := e.reps[at].Load(); r != nil {
			e.cost += r.memory()
			s.store(e, at, r)
		}
	}
	e.touch(touched | e.bodies())
	s.m[e.key] = e
	if e.cost > e.memory() {
		s.bodies.add(e)
	} else {
		s.bodyless.add(e)
	}
	s.shrink(c.limit)
	return e
}

// remove drops an entry.
func (c *cache) remove(e *entry) {
	s := c.shard(e.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m[e.key] == e {
		s.drop(e)
	}
}

// keep implements keeper. It stores a body if the entry is in the cache, and if the body is at most
// a quarter of the shard's limit.
func (c *cache) keep(e *entry, at coding, r *rep) {
	s := c.shard(e.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m[e.key] != e || r.memory() > c.limit/4 {
		return
	}
	e.clock.remove(e)
	e.cost += r.memory()
	s.bodies.add(e)
	e.touch(touched | 1<<at)
	s.store(e, at, r)
	s.shrink(c.limit)
}

// shrink evicts bodies and entries until the shard is within its limits. The caller holds the lock.
func (s *shard) shrink(limit int64) {
	for {
		over := s.bodyless.bytes+s.bodies.bytes > limit
		switch {
		case s.bodyless.bytes > limit/bodylessShare, over && len(s.bodies.ring) == 0 && len(s.bodyless.ring) > 0:
			e, _ := s.bodyless.next()
			s.drop(e)
		case over && len(s.bodies.ring) > 0:
			s.strip(s.bodies.next())
		default:
			return
		}
	}
}

// strip removes the bodies of the entry at the hand, except those whose coding is in but. If a body
// remains, the entry stays, and the hand moves to the next entry. Otherwise the entry moves to the
// clock of entries without a body.
func (s *shard) strip(e *entry, but codingSet) {
	for at := range codings {
		if r := e.reps[at].Load(); r != nil && !but.has(at) {
			e.cost -= r.memory()
			s.bodies.bytes -= r.memory()
			s.release(r)
			e.reps[at].Store(nil)
		}
	}
	if e.bodies() != 0 {
		s.bodies.hand++
		return
	}
	s.bodies.remove(e)
	s.bodyless.add(e)
}

func (s *shard) drop(e *entry) {
	delete(s.m, e.key)
	e.clock.remove(e)
	for at := range codings {
		s.release(e.reps[at].Load())
	}
	e.cost = 0
}

// clear drops all entries.
func (c *cache) clear() {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.m, s.bodyless, s.bodies, s.current = make(map[key]*entry), clock{}, clock{}, nil
		s.mu.Unlock()
	}
}

// bytes returns the size of the cache in bytes, as the cache counts it.
func (c *cache) bytes() int64 {
	n := int64(0)
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.RLock()
		n += s.bodyless.bytes + s.bodies.bytes
		s.mu.RUnlock()
	}
	return n
}

// Estimated memory in bytes: the structs, with the allocator's rounding, the protocol's closure,
// and the slots in the map and the ring.
const (
	entryMemory = 740
	repMemory   = 264
	fieldMemory = 64
)

func (e *entry) memory() int64 {
	n := entryMemory + len(e.key.path) + len(e.key.raw) + len(e.key.query) + len(e.tag) + len(e.tags[identity])
	if !e.sharedETag {
		n += int(codings) * len(e.tags[gzipCoding])
	}
	for _, f := range e.own {
		n += fieldMemory
		for _, v := range f.value {
			n += 16 + len(v)
		}
	}
	return int64(n)
}

func (r *rep) memory() int64 { return repMemory + int64(len(r.body)) }

// maxShapes is the maximum number of shared shapes. Each protocol needs only a few.
const maxShapes = 256

// intern makes entries with equal shapes share one shape.
func (c *cache) intern(e *entry) {
	var b strings.Builder
	for _, fields := range [][]field{e.shape.all, e.shape.full} {
		for _, f := range fields {
			b.WriteString(f.name)
			for _, v := range f.value {
				b.WriteByte(0)
				b.WriteString(v)
			}
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	name := b.String()
	if s, ok := c.shapes.Load(name); ok {
		e.shape = s.(*shape)
		return
	}
	c.count.Lock()
	defer c.count.Unlock()
	if c.known < maxShapes {
		c.known++
		c.shapes.Store(name, e.shape)
	}
}
