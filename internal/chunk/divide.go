package chunk

import "unicode/utf8"

const (
	gap    = 300 // maximum number of code points between two possible cuts
	nearby = 24  // bytes of text that the hash of a cut covers
)

// cut is a position where a text, or a list of parts, may be cut.
type cut struct {
	at   int    // offset of the first byte, or part, after the cut
	size int    // number of code points before it
	key  uint64 // class of the cut, then a hash of the text near it; the lowest key is best
}

// divide returns the ends of the parts of a text. The last end is the length of the text. A
// text of up to maxPart is one part. divide cuts a longer text at the ends of lines if byLine
// is set, else at the ends of sentences. If such ends are missing, it cuts between clauses, words,
// or characters.
func divide(text string, byLine bool) []int {
	if len(text) <= maxPart {
		return []int{len(text)}
	}
	size := utf8.RuneCountInString(text)
	if size <= maxPart {
		return []int{len(text)}
	}
	return append(pack(cuts(text, byLine), size, maxPart), len(text))
}

// Classes of cuts, best first.
const (
	afterLine = iota
	afterSentence
	afterClause
	afterWord
	afterRune
	classes
)

// cuts returns the possible cuts of a text, at most gap apart. It uses worse
// classes only where better ones leave a larger gap.
func cuts(text string, byLine bool) []cut {
	best := afterSentence
	if byLine {
		best = afterLine
	}
	var out []cut
	// last holds, for each class, the last possible cut after the one selected last.
	var last [classes]cut
	taken := 0
	take := func(p cut, class int) {
		p.key = uint64(class)<<60 | near(text[:p.at])>>4
		out = append(out, p)
		taken = p.size
		for c := range last {
			if last[c].at <= p.at {
				last[c] = cut{}
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
			case size-taken > 2*gap && s.at < len(text): // a character with very many marks
				take(cut{at: s.at, size: size}, afterRune)
				continue
			}
		}
		switch {
		case s.at == len(text):
		case class <= best:
			take(cut{at: s.at, size: size}, class)
		case class < classes:
			last[class] = cut{at: s.at, size: size}
		}
	}
	return out
}

// near returns a hash of the last bytes before a cut.
func near(before string) uint64 {
	before = before[max(0, len(before)-nearby):]
	return mix(fnv(offset64, before))
}

// offset64 is the initial value of FNV-1a.
const offset64 = 14695981039346656037

// fnv returns the FNV-1a hash h continued with a text.
func fnv(h uint64, text string) uint64 {
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return h
}

// mix spreads a hash over all its bits, because hashes of similar texts share upper bits.
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// Cuts of the class never or a higher class are used only as a last resort.
const never = 12

// pack selects cuts for as few parts as possible, none longer than most. Each part ends at the
// best cut in its last quarter, else at the last cut that fits. The last two parts divide the
// remaining text between them. In a long text, a part may end anywhere in its second half, so that
// an edit changes few later cuts.
func pack(ps []cut, size, most int) []int {
	early := most * 3 / 4
	if size > long*most {
		early = most / 2
	}
	var out []int
	for from := 0; size-from > most; {
		low, high := from+early, from+most
		if size-from <= 2*most {
			low, high = min(low, max(size-most, from+2*gap)), min(high, size-2*gap)
		}
		best, last, n := -1, 0, 0
		for ; n < len(ps) && ps[n].size <= from+most; n++ {
			switch p := ps[n]; {
			case p.key>>60 >= never:
			case p.size < low || p.size > high:
				last = n
			case best < 0 || p.key < ps[best].key:
				best = n
			}
		}
		switch {
		case best >= 0:
			last = best
		case n > 0 && ps[last].key>>60 >= never:
			last = n - 1
		}
		out = append(out, ps[last].at)
		from, ps = ps[last].size, ps[last+1:]
	}
	return out
}

// long is the length of a text, in parts, above which pack may cut more parts than necessary.
const long = 10

// runeOffset returns the offset of code point n, or the length of a shorter text.
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
