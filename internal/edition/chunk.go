package edition

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
)

// A chunked document is a tree of artifacts. Its leaves are chunks: consecutive parts as raw
// deflate, without references to earlier bytes, and with a full flush at the end. Its nodes list
// their children. The keys of the parts determine the boundaries of chunks and nodes. A change of a
// part therefore usually changes only its chunk, at most one neighbor, and the nodes above.
const (
	minChunk  = 32 << 10  // minimum size of a chunk in identity bytes; the last chunk may be smaller
	maxChunk  = 256 << 10 // size of a chunk in identity bytes from which no more parts are added
	maxNode   = 256       // maximum number of children of a node
	chunkBits = 4         // number of zero bits in the hash of a key that begins a chunk
	nodeBits  = 6         // number of additional zero bits for each level of nodes

	chunkSuffix = ".chunk1" // must change when the output of the encoder changes
	nodeSuffix  = ".node2"  // must change with the format of nodes
)

// branch describes a chunk or a node in its parent. The sizes and the checksum of a node cover all
// chunks below it, with the bytes between them.
type branch struct {
	First, Last string // keys of its first and last part
	Parts       int64
	Size        int64  // identity size in bytes
	Coded       int64  // size in bytes after compression with deflate
	CRC         uint32 // CRC-32 (IEEE) of the identity bytes
	CodedCRC    uint32 // CRC-32 (IEEE) of a chunk's compressed bytes
	Sum         sum
}

// sum is a SHA-256 hash.
type sum [sha256.Size]byte

// MarshalText implements [encoding.TextMarshaler].
func (s sum) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *sum) UnmarshalText(b []byte) error {
	if hex.DecodedLen(len(b)) != len(s) {
		return fmt.Errorf("hash: %w: %d digits, want 64", millrace.ErrInvalid, len(b))
	}
	_, err := hex.Decode(s[:], b)
	return err
}

// tree contains the parts of a document. The zero value has no parts.
type tree struct {
	Height int    // If zero, Root is a chunk.
	Root   branch // Root.Parts is 0 if the tree is empty
}

func (b *branch) chunk() string { return hex.EncodeToString(b.Sum[:]) + chunkSuffix }
func (b *branch) node() string  { return hex.EncodeToString(b.Sum[:]) + nodeSuffix }

// hashOf returns the hash of a key. Its low zero bits determine where chunks and nodes
// begin.
func hashOf(key string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, key)
	x := h.Sum64()
	x ^= x >> 32
	return x ^ x>>16
}

// begins reports whether the hash of a key begins a chunk (height 0) or a node of the given height.
func begins(key string, height int) bool {
	bits := chunkBits + height*nodeBits
	return hashOf(key)&(1<<min(bits, 63)-1) == 0
}

// grower writes the chunks and nodes of one document, for both its Parts and its PartsKeyed.
type grower struct {
	ctx     context.Context
	store   artifact.Store
	between []byte
	gap     int64  // size in bytes of between as stored blocks of deflate
	gapCRC  uint32 // CRC-32 of between

	body  bytes.Buffer // identity bytes of the current chunk
	next  branch
	enc   *encoders
	coded bytes.Buffer // current chunk, compressed with deflate
	out   []branch

	have map[sum]branch // branches that are already stored: of the earlier tree, and of the document's other form
}

func newGrower(ctx context.Context, store artifact.Store, enc *encoders) *grower {
	return &grower{ctx: ctx, store: store, enc: enc, have: make(map[sum]branch)}
}

// grow returns the tree of a document. Only the parts with changed keys differ from old.
// If old is nil, grow writes all parts.
func (g *grower) grow(p *millrace.Parts, old *tree, changed []string) (*tree, error) {
	g.between, g.gap, g.gapCRC, g.out = p.Separator, int64(len(segment(p.Separator))), crc32.ChecksumIEEE(p.Separator), nil
	var have []branch
	if old != nil {
		err := old.walk(g.ctx, g.store, func(b *branch, height int) error {
			g.have[b.Sum] = *b
			if height == 0 {
				have = append(have, *b)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		slices.Sort(changed)
		changed = slices.Compact(changed)
	}
	if len(have) == 0 {
		if err := g.write(p, "", nil, nil); err != nil {
			return nil, err
		}
		return g.storeNodes()
	}
	at := 0
	for len(changed) > 0 {
		// If the key begins a chunk, start with the previous chunk: if the key was deleted, the
		// rest of its chunk joins that one.
		i, _ := slices.BinarySearchFunc(have[at:], changed[0], func(b branch, key string) int { return strings.Compare(b.First, key) })
		i = max(at+i-1, at)
		g.out = append(g.out, have[at:i]...)
		after := ""
		if n := len(g.out); n > 0 {
			after = g.out[n-1].Last
		}
		rest := have[i+1:]
		if err := g.write(p, after, &rest, &changed); err != nil {
			return nil, err
		}
		at = len(have) - len(rest)
	}
	g.out = append(g.out, have[at:]...)
	return g.storeNodes()
}

// write writes the parts after a key into chunks. It stops where a new chunk begins at the same key
// as a chunk of rest, if that key has not changed. It leaves the remaining chunks in rest and the
// remaining keys in changed. If rest is nil, write writes all parts after the key.
func (g *grower) write(p *millrace.Parts, after string, rest *[]branch, changed *[]string) error {
	for part, err := range p.After(g.ctx, after) {
		if err != nil {
			return err
		}
		if part.Key <= after {
			return fmt.Errorf("part %q comes after %q: %w", part.Key, after, millrace.ErrInvalid)
		}
		after = part.Key
		if n := int64(g.body.Len()); n >= maxChunk || n >= minChunk && begins(part.Key, 0) {
			if err := g.end(); err != nil {
				return err
			}
		}
		if rest != nil {
			for len(*rest) > 0 && (*rest)[0].First < part.Key {
				*rest = (*rest)[1:]
			}
			for len(*changed) > 0 && (*changed)[0] < part.Key {
				*changed = (*changed)[1:]
			}
			clean := len(*changed) == 0 || (*changed)[0] > part.Key
			if g.next.Parts == 0 && len(g.out) > 0 && clean && len(*rest) > 0 && (*rest)[0].First == part.Key {
				return nil
			}
		}
		g.add(part)
	}
	if rest != nil {
		*rest, *changed = nil, nil
	}
	return g.end()
}

// add adds a part to the current chunk.
func (g *grower) add(part millrace.Part) {
	if g.next.Parts == 0 {
		g.next.First = part.Key
	} else {
		g.body.Write(g.between)
	}
	g.body.Write(part.Body)
	g.next.Last = part.Key
	g.next.Parts++
}

// end stores the current chunk.
func (g *grower) end() error {
	if g.next.Parts == 0 {
		return nil
	}
	b := g.next
	b.Size, b.CRC, b.Sum = int64(g.body.Len()), crc32.ChecksumIEEE(g.body.Bytes()), sha256.Sum256(g.body.Bytes())
	if had, ok := g.have[b.Sum]; ok {
		b.Coded, b.CodedCRC = had.Coded, had.CodedCRC
	} else {
		g.coded.Reset()
		if err := g.enc.deflate(&g.coded, g.body.Bytes()); err != nil {
			return err
		}
		coded := g.coded.Bytes()
		b.Coded, b.CodedCRC = int64(len(coded)), crc32.ChecksumIEEE(coded)
		if err := g.store.Put(g.ctx, b.chunk(), bytes.NewReader(coded)); err != nil {
			return err
		}
		g.have[b.Sum] = b
	}
	g.out, g.next = append(g.out, b), branch{}
	g.body.Reset()
	return nil
}

// storeNodes stores the nodes above the chunks, except those that are already stored, and returns
// the tree.
func (g *grower) storeNodes() (*tree, error) {
	t, level := new(tree), g.out
	for ; len(level) > 1; t.Height++ {
		var above []branch
		from := 0
		for i := 1; i <= len(level); i++ {
			if i < len(level) && i-from < maxNode && !begins(level[i].First, t.Height+1) {
				continue
			}
			raw := encodeNode(level[from:i])
			b := g.join(level[from:i])
			b.Sum = sha256.Sum256(raw)
			if _, ok := g.have[b.Sum]; !ok {
				if err := g.store.Put(g.ctx, b.node(), bytes.NewReader(raw)); err != nil {
					return nil, err
				}
				g.have[b.Sum] = b
			}
			above, from = append(above, b), i
		}
		level = above
	}
	if len(level) == 1 {
		t.Root = level[0]
	}
	return t, nil
}

// join returns the branch of a node with the given children, without its hash.
func (g *grower) join(children []branch) branch {
	b := branch{First: children[0].First, Last: children[len(children)-1].Last}
	for i, c := range children {
		if i > 0 {
			b.CRC = combineCRC(b.CRC, g.gapCRC, int64(len(g.between)))
			b.Size, b.Coded = b.Size+int64(len(g.between)), b.Coded+g.gap
		}
		b.CRC = combineCRC(b.CRC, c.CRC, c.Size)
		b.Size, b.Coded, b.Parts = b.Size+c.Size, b.Coded+c.Coded, b.Parts+c.Parts
	}
	return b
}

// segment returns bytes as stored (uncompressed) blocks of deflate, which end on a byte boundary.
func segment(b []byte) []byte {
	var out []byte
	for block := range slices.Chunk(b, 1<<16-1) {
		n := uint16(len(block))
		out = append(out, 0)
		out = binary.LittleEndian.AppendUint16(out, n)
		out = binary.LittleEndian.AppendUint16(out, ^n)
		out = append(out, block...)
	}
	return out
}

// encodeNode returns the bytes of a node.
func encodeNode(children []branch) []byte {
	var out []byte
	text := func(s string) { out = append(binary.AppendUvarint(out, uint64(len(s))), s...) }
	for _, c := range children {
		text(c.First)
		text(c.Last)
		for _, n := range []int64{c.Parts, c.Size, c.Coded} {
			out = binary.AppendUvarint(out, uint64(n))
		}
		out = binary.LittleEndian.AppendUint32(out, c.CRC)
		out = append(binary.LittleEndian.AppendUint32(out, c.CodedCRC), c.Sum[:]...)
	}
	return out
}

// decodeNode returns the children that a node's bytes describe.
func decodeNode(raw []byte) ([]branch, error) {
	var out []branch
	ok := true
	number := func() int64 {
		n, size := binary.Uvarint(raw)
		if size <= 0 || n > 1<<62 {
			ok = false
			return 0
		}
		raw = raw[size:]
		return int64(n)
	}
	text := func() string {
		n := number()
		if n > int64(len(raw)) {
			ok = false
			return ""
		}
		s := string(raw[:n])
		raw = raw[n:]
		return s
	}
	for len(raw) > 0 && ok {
		var c branch
		c.First, c.Last = text(), text()
		c.Parts, c.Size, c.Coded = number(), number(), number()
		if len(raw) < 8+sha256.Size {
			ok = false
			break
		}
		c.CRC, c.CodedCRC = binary.LittleEndian.Uint32(raw), binary.LittleEndian.Uint32(raw[4:])
		copy(c.Sum[:], raw[8:])
		raw = raw[8+sha256.Size:]
		out = append(out, c)
	}
	if !ok || len(out) == 0 {
		return nil, fmt.Errorf("node of a document: %w: damaged", millrace.ErrInvalid)
	}
	return out, nil
}

// children reads a node from the store and returns its children. It deletes a damaged node.
func children(ctx context.Context, store artifact.Store, b *branch) ([]branch, error) {
	r, err := store.Open(ctx, b.node(), 0, -1)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	raw, err := io.ReadAll(io.LimitReader(r, 16<<20))
	if err != nil {
		return nil, err
	}
	if sha256.Sum256(raw) != b.Sum {
		err := fmt.Errorf("%s: %w: damaged", b.node(), millrace.ErrInvalid)
		return nil, errors.Join(err, store.Delete(ctx, b.node())) // otherwise Put would keep the damaged artifact
	}
	return decodeNode(raw)
}

// walk calls f for every branch, parents first.
func (t *tree) walk(ctx context.Context, store artifact.Store, f func(b *branch, height int) error) error {
	if t.Root.Parts == 0 {
		return nil
	}
	return walk(ctx, store, &t.Root, t.Height, f)
}

func walk(ctx context.Context, store artifact.Store, b *branch, height int, f func(b *branch, height int) error) error {
	if err := f(b, height); err != nil || height == 0 {
		return err
	}
	below, err := children(ctx, store, b)
	if err != nil {
		return err
	}
	for i := range below {
		if err := walk(ctx, store, &below[i], height-1, f); err != nil {
			return err
		}
	}
	return nil
}

// forEachNotIn calls f for every branch that is not in another tree. It reads only the
// nodes that the trees do not share.
func (t *tree) forEachNotIn(ctx context.Context, store artifact.Store, other *tree, f func(b *branch, height int) error) error {
	level := func(t *tree, height int) []branch {
		if t.Root.Parts == 0 || t.Height != height {
			return nil
		}
		return []branch{t.Root}
	}
	below := func(nodes []branch) (out []branch, err error) {
		for i := range nodes {
			c, err := children(ctx, store, &nodes[i])
			if err != nil {
				return nil, err
			}
			out = append(out, c...)
		}
		return out, nil
	}
	less := func(a, b []branch) []branch {
		have := make(map[sum]bool, len(b))
		for i := range b {
			have[b[i].Sum] = true
		}
		return slices.DeleteFunc(slices.Clone(a), func(x branch) bool { return have[x.Sum] })
	}
	var mine, others []branch
	for height := max(t.Height, other.Height); ; height-- {
		mine, others = append(mine, level(t, height)...), append(others, level(other, height)...)
		mine, others = less(mine, others), less(others, mine)
		for i := range mine {
			if err := f(&mine[i], height); err != nil {
				return err
			}
		}
		if height == 0 {
			return nil
		}
		var err error
		if mine, err = below(mine); err != nil {
			return err
		}
		if others, err = below(others); err != nil {
			return err
		}
	}
}

// combineCRC returns the checksum of two concatenated sequences of bytes, from their
// checksums a and b and the length n of the second. It multiplies a by x to the power 8n,
// modulo the polynomial.
func combineCRC(a, b uint32, n int64) uint32 {
	power := uint32(1 << 23) // x to the power 8, bits reversed
	product := uint32(1 << 31)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			product = multiplyCRC(product, power)
		}
		power = multiplyCRC(power, power)
	}
	return multiplyCRC(a, product) ^ b
}

// multiplyCRC multiplies two polynomials, bits reversed.
func multiplyCRC(a, b uint32) uint32 {
	var p uint32
	for m := uint32(1 << 31); m != 0; m >>= 1 {
		if a&m != 0 {
			p ^= b
		}
		if b&1 == 1 {
			b = b>>1 ^ crc32.IEEE
		} else {
			b >>= 1
		}
	}
	return p
}
