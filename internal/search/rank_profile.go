package search

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// Weights of a word in the page's title, in a heading above the passage, and in its text.
// Profiles are stored, so a change needs a new [Format].
const (
	titleWeight   = 3
	headingWeight = 2
	textWeight    = 1
)

// Profile is the encoded list of a passage's terms with their weights, for ranking. A term is a
// hash of 19 bits and a weight of at most 31. In an average passage, a term takes two bytes, and
// one in 4,000 other terms has the same hash as one of its terms. A weight above 31 would add at
// most 2 % to the score.
//
// A profile starts with the number of terms as a varint. The rest is a sequence of bits, the
// lowest of a byte first. The Elias-Fano encoding finds a term without decoding the others:
//
//   - the low bits of each hash, [lowBits] of them;
//   - for each value of the high bits, a one for every hash with this value, then a zero;
//   - for each term, a one if its weight is above 1, else a zero; for each term with a one,
//     whether its weight is above 2; and so on.
type Profile []byte

const (
	hashBits  = 19
	maxWeight = 31
)

// lowBits returns the number of low bits of a hash in a profile of n terms.
func lowBits(n int) int { return max(0, bits.Len(uint(1<<hashBits/max(n, 1)))-1) }

// profiler encodes the profiles of passages, one at a time.
type profiler struct {
	list []uint64 // hash << 32 | weight
}

func (p *profiler) reset() { p.list = p.list[:0] }

func (p *profiler) add(term string, weight uint32) {
	p.list = append(p.list, uint64(profileHash(term))<<32|uint64(weight))
}

// profile returns the profile of the added terms.
func (p *profiler) profile() Profile {
	slices.Sort(p.list)
	n := 0
	for _, e := range p.list {
		if n > 0 && p.list[n-1]>>32 == e>>32 {
			p.list[n-1] += e & math.MaxUint32 // does not overflow, because a text has fewer than 2^32 words
		} else {
			p.list[n] = e
			n++
		}
	}
	list := p.list[:n]
	w := bitWriter{bytes: binary.AppendUvarint(make([]byte, 0, 3*n+4), uint64(n))}
	low := lowBits(n)
	for _, e := range list {
		w.write(e>>32&(1<<low-1), low)
	}
	next := 0
	for high := range uint64(1 << (hashBits - low)) {
		for ; next < n && list[next]>>32>>low == high; next++ {
			w.write(1, 1)
		}
		w.write(0, 1)
	}
	for level := uint64(1); level < maxWeight && len(list) > 0; level++ {
		above := list[:0]
		for _, e := range list {
			if e&math.MaxUint32 <= level {
				w.write(0, 1)
				continue
			}
			w.write(1, 1)
			above = append(above, e)
		}
		list = above
	}
	return w.close()
}

// bitWriter appends bits to bytes.
type bitWriter struct {
	bytes []byte
	bits  uint64 // the n bits that are not written yet
	n     int
}

// write appends the lowest n bits of v, at most 32. The other bits must be zero.
func (w *bitWriter) write(v uint64, n int) {
	w.bits, w.n = w.bits|v<<w.n, w.n+n
	for ; w.n >= 8; w.n -= 8 {
		w.bytes = append(w.bytes, byte(w.bits))
		w.bits >>= 8
	}
}

func (w *bitWriter) close() []byte {
	if w.n > 0 {
		w.bytes = append(w.bytes, byte(w.bits))
	}
	return w.bytes
}

// weight returns the weight of a term in the passage, or 0 if the passage does not contain it.
func (p Profile) weight(hash uint32) int {
	count, size := binary.Uvarint(p)
	if size <= 0 || count > 8*uint64(len(p)) { // the profile is damaged
		return 0
	}
	n, b := int(count), p[size:]
	low := lowBits(n)
	end := n*low + n + 1<<(hashBits-low) // end of the high bits
	high, at := int(hash>>low), n*low
	for zeros := high; zeros > 0; {
		// Each zero ends the terms with one value of the high bits.
		word, size := b.bits(at), min(wordBits, end-at)
		if size <= 0 {
			return 0
		}
		word |= ^uint64(0) << size
		if all := bits.OnesCount64(^word); all < zeros {
			zeros, at = zeros-all, at+size
			continue
		}
		for half := 32; half > 0; half /= 2 {
			if part := half - bits.OnesCount64(word&(1<<half-1)); part < zeros {
				zeros, at, word = zeros-part, at+half, word>>half
			}
		}
		zeros, at = 0, at+1
	}
	for i := at - n*low - high; i < n && b.bits(at)&1 != 0; i, at = i+1, at+1 {
		if b.bits(i*low)&(1<<low-1) == uint64(hash&(1<<low-1)) {
			return b.level(end, i, n)
		}
	}
	return 0
}

// level returns the weight of term i of n, where at is the start of the weights.
func (p Profile) level(at, i, n int) int {
	for weight := 1; weight < maxWeight; weight++ {
		if p.bits(at+i)&1 == 0 {
			return weight
		}
		i, at, n = p.ones(at, i), at+n, p.ones(at, n)
	}
	return maxWeight
}

// wordBits is the minimum number of bits that bits returns.
const wordBits = 57

// bits returns at least wordBits bits, starting at bit at. Bits after the end of the profile are
// zero.
func (p Profile) bits(at int) uint64 {
	i := at / 8
	if i+8 <= len(p) {
		return binary.LittleEndian.Uint64(p[i:]) >> (at % 8)
	}
	var last [8]byte
	if i < len(p) {
		copy(last[:], p[i:])
	}
	return binary.LittleEndian.Uint64(last[:]) >> (at % 8)
}

// ones counts the ones among n bits, starting at bit at.
func (p Profile) ones(at, n int) (sum int) {
	for ; n > 0; at, n = at+wordBits, n-wordBits {
		sum += bits.OnesCount64(p.bits(at) & (1<<min(n, wordBits) - 1))
	}
	return sum
}

// profileHash returns FNV-1a, folded to 19 bits.
func profileHash(term string) uint32 {
	h := uint32(2166136261)
	for i := range len(term) {
		h = (h ^ uint32(term[i])) * 16777619
	}
	return (h ^ h>>hashBits) & (1<<hashBits - 1)
}
