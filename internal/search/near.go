package search

import (
	"math/bits"
	"unicode"
	"unicode/utf8"
)

// A fingerprint is a simhash: every three consecutive words vote on each of its 64 bits. Texts
// with most of these triples in common have most of the bits in common. If one word in a hundred
// of a long text differs, five bits differ on average. For unrelated texts, half of the bits
// differ.
const (
	shingle   = 3 // number of words that vote together
	fewWords  = 8 // a text with fewer words is near only to an equal one
	nearBits  = 6 // maximum number of different bits
	laneLimit = 255
)

// Fingerprint returns a hash of the words of a text and their order, which [Near] compares. It
// ignores capitals, punctuation and white space. The fingerprint of a text without words is 0.
func Fingerprint(text string) uint64 {
	var (
		v     votes
		last  [shingle]uint64
		words int
		order = uint64(offset64) // hash of all words in order, for a short text
	)
	for i := 0; i < len(text); {
		h, end := wordHash(text, i)
		i = end
		if h == 0 {
			continue
		}
		copy(last[:], last[1:])
		last[shingle-1] = h
		if words++; words <= fewWords {
			order = (order ^ h) * prime64
		}
		if words >= shingle {
			all := uint64(offset64)
			for _, w := range last {
				all = (all ^ w) * prime64
			}
			v.add(spread(all))
		}
	}
	switch {
	case words == 0:
		return 0
	case words < fewWords:
		return max(spread(order), 1)
	}
	return max(v.sum(), 1)
}

// Near reports whether texts with these fingerprints are nearly the same.
func Near(a, b uint64) bool {
	return a != 0 && b != 0 && bits.OnesCount64(a^b) <= nearBits
}

// Constants of FNV-1a.
const (
	offset64 = 14695981039346656037
	prime64  = 1099511628211
)

// wordHash returns a hash of the word at i, ignoring case, and the end of the word. If there
// is no word, the hash is 0. A letter of a script without spaces is a word.
func wordHash(text string, i int) (hash uint64, end int) {
	start := i
	hash = offset64
	for i < len(text) {
		c := text[i]
		if c < utf8.RuneSelf {
			if !isAlnum(c) {
				break
			}
			if isUpper(c) {
				c += 'a' - 'A'
			}
			hash = (hash ^ uint64(c)) * prime64
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		dense := isDense(r)
		if !isTerm(r) || dense && i > start {
			break
		}
		hash = (hash ^ uint64(unicode.ToLower(r))) * prime64
		i += n
		if dense {
			break
		}
	}
	if i > start {
		return max(spread(hash), 1), i
	}
	_, n := utf8.DecodeRuneInString(text[i:])
	return 0, i + n
}

// votes counts how often each bit was set. It first adds in lanes of eight bits, which takes 8
// additions instead of 64.
type votes struct {
	lanes [8]uint64
	n     int // additions since the lanes were cleared
	total int
	count [64]int32
}

func (v *votes) add(h uint64) {
	for i := range v.lanes {
		v.lanes[i] += lanes[byte(h>>(8*i))]
	}
	v.total++
	if v.n++; v.n == laneLimit {
		v.empty()
	}
}

func (v *votes) empty() {
	for i, lane := range v.lanes {
		for j := range 8 {
			v.count[8*i+j] += int32(byte(lane >> (8 * j)))
		}
		v.lanes[i] = 0
	}
	v.n = 0
}

func (v *votes) sum() uint64 {
	v.empty()
	var sum uint64
	for i, c := range v.count {
		if 2*int(c) > v.total {
			sum |= 1 << i
		}
	}
	return sum
}

// lanes spreads the bits of a byte over the bytes of a number.
var lanes = func() (t [256]uint64) {
	for b := range t {
		for j := range 8 {
			t[b] |= uint64(b>>j&1) << (8 * j)
		}
	}
	return t
}()
