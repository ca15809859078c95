package crawl

import "github.com/millrace/millrace"

// sketch stands for what a page says, so that two pages can be compared when
// neither is at hand any more: pairs of neighbouring words are hashed into
// buckets, and the least hash of each bucket is kept (one permutation
// MinHash). The share of buckets that agree estimates the share of the pairs
// that two texts have in common.
type sketch struct {
	fine   [64]uint32 // 0 = no pair has come here
	coarse uint64     // eight buckets of eight bits, made of the fine ones
}

// How many of the eight coarse buckets agree in pages that are...
const (
	notWhollyOther = 4 // about half of the text alike
	nearlySame     = 6
)

// sketchOf gives the sketch of a page's text.
func sketchOf(p *millrace.Page) sketch {
	var s sketch
	text := p.Text()
	var word, last uint64
	word = fnvStart
	for i := range len(text) {
		c := text[i]
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
			fallthrough
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c >= 0x80:
			word = (word ^ uint64(c)) * fnvPrime
			continue
		}
		if word != fnvStart {
			s.add(last, word)
			last, word = word, fnvStart
		}
	}
	if word != fnvStart {
		s.add(last, word)
	}
	for i, least := range s.fine {
		if shift := i / 8 * 8; least != 0 {
			// The smallest of eight buckets, cut to a byte that is never 0.
			if b := uint64(least%255 + 1); s.coarse>>shift&0xFF == 0 || s.less(i) {
				s.coarse = s.coarse&^(0xFF<<shift) | b<<shift
			}
		}
	}
	return s
}

func (s *sketch) add(last, word uint64) {
	h := mix(last*31 ^ word)
	bucket, value := h>>58, uint32(h)|1
	if s.fine[bucket] == 0 || value < s.fine[bucket] {
		s.fine[bucket] = value
	}
}

// less reports whether a fine bucket is the least of those that share its
// coarse one, up to itself.
func (s *sketch) less(i int) bool {
	for j := i / 8 * 8; j < i; j++ {
		if s.fine[j] != 0 && s.fine[j] <= s.fine[i] {
			return false
		}
	}
	return true
}

// alike tells how many eighths of their buckets two sketches share: 8 for equal
// ones. Buckets that are empty in both do not count.
func alike(a, b uint64) int {
	same, all := 0, 0
	for shift := 0; shift < 64; shift += 8 {
		x, y := a>>shift&0xFF, b>>shift&0xFF
		if x|y != 0 {
			all++
		}
		if x == y && x != 0 {
			same++
		}
	}
	if all == 0 {
		return 8
	}
	return same * 8 / all
}
