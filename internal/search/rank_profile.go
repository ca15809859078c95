package search

import (
	"math"
	"slices"
)

// How often a word counts that stands in the title of the page or in a heading
// above the passage, where it counts once in the text. Profiles are kept, so
// another weight is another [Format].
const (
	titleWeight   = 3
	headingWeight = 2
	textWeight    = 1
)

// Profile is what ranking has to know of a passage, as it is kept: which terms
// it has, and how often, by the weight of where they stand: three bytes for each
// term, a hash of 19 bits and a weight of at most 31, in ascending order. One term in
// 4,000 has the hash of another one of an average passage. A word that
// stands there more often than 31 times would count 2 % more.
type Profile []byte

const (
	profileSize = 3 // bytes of a term
	weightBits  = 5
	maxWeight   = 1<<weightBits - 1
)

// profiler counts the terms of one passage after another.
type profiler struct {
	list []uint64 // hash << 32 | weight
}

func (p *profiler) reset() { p.list = p.list[:0] }

func (p *profiler) add(term string, weight uint32) {
	p.list = append(p.list, uint64(profileHash(term))<<32|uint64(weight))
}

// profile returns the profile of what was added.
func (p *profiler) profile() Profile {
	slices.Sort(p.list)
	n := 0
	for _, e := range p.list {
		if n > 0 && p.list[n-1]>>32 == e>>32 {
			p.list[n-1] += e & math.MaxUint32 // a text has less than 2^32 words
		} else {
			p.list[n] = e
			n++
		}
	}
	b := make(Profile, 0, profileSize*n)
	for _, e := range p.list[:n] {
		v := uint32(e>>32)<<weightBits | uint32(min(e&math.MaxUint32, maxWeight))
		b = append(b, byte(v>>16), byte(v>>8), byte(v))
	}
	return b
}

// at returns term i.
func (p Profile) at(i int) uint32 {
	return uint32(p[profileSize*i])<<16 | uint32(p[profileSize*i+1])<<8 | uint32(p[profileSize*i+2])
}

// weight returns how often a term counts in the passage.
func (p Profile) weight(hash uint32) int {
	lo, hi := 0, len(p)/profileSize
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if p.at(mid)>>weightBits < hash {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(p)/profileSize && p.at(lo)>>weightBits == hash {
		return int(p.at(lo) & maxWeight)
	}
	return 0
}

// profileHash returns FNV-1a, folded to 19 bits.
func profileHash(term string) uint32 {
	h := uint32(2166136261)
	for i := range len(term) {
		h = (h ^ uint32(term[i])) * 16777619
	}
	return (h ^ h>>19) & (1<<(8*profileSize-weightBits) - 1)
}
