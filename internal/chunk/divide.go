package chunk

import "unicode/utf8"

// How long parts become, in code points. Two cuts are never closer than reach,
// so parts come out at about twice that; see cuts.
const (
	reach  = MaxChunk * 3 / 10
	least  = reach / 2 // of a part, where something must be cut
	gap    = reach / 2 // between two places where a text may be cut
	nearby = 24        // how much of the text before a place stands for it, in bytes
)

// place is one where a text may be cut.
type place struct {
	at   int    // offset in bytes, of the first byte after the cut
	size int    // code points before it
	key  uint64 // the least is the best place: its class, then a hash of what stands near it
}

// divide gives the ends of the parts of a text, the last of which is its
// length. A text that fits is one part. Others are cut at the ends of lines
// where these bear the structure, else at the ends of sentences; where there
// are none, between clauses, words, or characters.
func divide(text string, byLine bool) []int {
	if len(text) <= MaxChunk {
		return []int{len(text)}
	}
	size := utf8.RuneCountInString(text)
	if size <= MaxChunk {
		return []int{len(text)}
	}
	return append(cuts(places(text, byLine), size, MaxChunk), len(text))
}

// The classes of places, the best first.
const (
	afterLine = iota
	afterSentence
	afterClause
	afterWord
	afterRune
	classes
)

// places gives where a text may be cut, at most gap apart: the worse classes
// are looked at only where the better ones leave more than that.
func places(text string, byLine bool) []place {
	best := afterSentence
	if byLine {
		best = afterLine
	}
	var out []place
	// last holds, of each class, the last place seen since the last place that
	// was taken.
	var last [classes]place
	taken := 0
	take := func(p place, class int) {
		p.key = uint64(class)<<60 | near(text[:p.at])>>4
		out = append(out, p)
		taken = p.size
		for c := range last {
			if last[c].at <= p.at {
				last[c] = place{}
			}
		}
	}
	size := 0
	s := scanner{text: text}
	for s.next() {
		size++
		class := s.class()
		if !byLine && class == afterLine {
			class = afterSentence
		}
		if size-taken > gap {
			c := best
			for c < classes && last[c].at == 0 {
				c++
			}
			switch {
			case c < classes:
				take(last[c], c)
			case size-taken > 2*gap && s.at < len(text): // a character with no end of marks
				take(place{at: s.at, size: size}, afterRune)
				continue
			}
		}
		switch {
		case s.at == len(text):
		case class <= best:
			take(place{at: s.at, size: size}, class)
		case class < classes:
			last[class] = place{at: s.at, size: size}
		}
	}
	return out
}

// near hashes the last bytes of what stands before a place.
func near(before string) uint64 {
	before = before[max(0, len(before)-nearby):]
	return mix(fnv(offset64, before))
}

// offset64 is where FNV-1a begins.
const offset64 = 14695981039346656037

// fnv adds a text to a hash by FNV-1a.
func fnv(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return h
}

// mix spreads a hash over all its bits, since hashes of like texts are alike
// in the upper ones.
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// cuts chooses among places, in their order, so that no part is longer than
// most: first each place that has the least key as far as reach to both sides,
// then, where that leaves a part too long, the place with the least key in it,
// and so on. The ends of the text count as places that nothing beats. What is
// chosen first depends on the text as far as reach only, and what is chosen
// next on that part; so an edit moves the cuts near it, and seldom others.
func cuts(ps []place, size, most int) []int {
	c := cutter{most: most}
	from := 0
	for _, p := range append(minima(ps, size), place{at: -1, size: size}) {
		for len(ps) > 0 && ps[0].size <= from {
			ps = ps[1:]
		}
		n := 0
		for n < len(ps) && ps[n].size < p.size {
			n++
		}
		c.cut(ps[:n], from, p.size, 0)
		if p.at >= 0 {
			c.out = append(c.out, p.at)
		}
		from, ps = p.size, ps[n:]
	}
	return c.out
}

type cutter struct {
	most int
	out  []int
}

// maxHalving bounds the work for a text that is made to be cut unevenly.
const maxHalving = 40

// cut divides the part from from to to, which has these places inside.
func (c *cutter) cut(ps []place, from, to, depth int) {
	for len(ps) > 0 && to-from > c.most {
		if depth < maxHalving {
			if i, ok := middle(ps, from, to); ok {
				c.cut(ps[:i], from, ps[i].size, depth+1)
				c.out = append(c.out, ps[i].at)
				from, ps = ps[i].size, ps[i+1:]
				depth++
				continue
			}
		}
		// No place leaves enough on both sides: as much as fits.
		i := 0
		for i+1 < len(ps) && ps[i+1].size <= from+c.most {
			i++
		}
		c.out = append(c.out, ps[i].at)
		from, ps = ps[i].size, ps[i+1:]
	}
}

// middle gives the place with the least key that leaves enough on both sides,
// of equal ones the one that is nearest to the middle.
func middle(ps []place, from, to int) (best int, ok bool) {
	off := func(i int) int { return max(2*ps[i].size-from-to, from+to-2*ps[i].size) }
	for i, p := range ps {
		if p.size < from+least || p.size > to-least {
			continue
		}
		if !ok || p.key < ps[best].key || p.key == ps[best].key && off(i) < off(best) {
			best, ok = i, true
		}
	}
	return best, ok
}

// minima gives the places with the least key within reach to both sides, the
// first of equal ones.
func minima(ps []place, size int) []place {
	var out []place
	var queue []int // indices of places within reach, with rising keys
	next := 0
	for i, p := range ps {
		for ; next < len(ps) && ps[next].size < p.size+reach; next++ {
			for len(queue) > 0 && ps[queue[len(queue)-1]].key > ps[next].key {
				queue = queue[:len(queue)-1]
			}
			queue = append(queue, next)
		}
		for ps[queue[0]].size <= p.size-reach {
			queue = queue[1:]
		}
		if queue[0] == i && p.size >= reach && p.size <= size-reach {
			out = append(out, p)
		}
	}
	return out
}

// runeOffset gives the offset of the code point with a number, or the length
// of a text that is shorter.
func runeOffset(text string, n int) int {
	if len(text) <= n {
		return len(text)
	}
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}
