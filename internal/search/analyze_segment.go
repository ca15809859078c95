package search

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// segmenter splits a text into words.
type segmenter struct {
	text   string
	lex    *lexicon
	yield  func(Token) bool
	done   bool
	joined []byte // buffer for the term of a whole compound
}

func (s *segmenter) run() {
	for i := 0; i < len(s.text) && !s.done; {
		r, n := s.runeAt(i)
		switch {
		case !isStart(r):
			i += n
		case isDense(r):
			i = s.dense(i)
		default:
			i = s.compound(i)
		}
	}
}

func (s *segmenter) runeAt(i int) (rune, int) {
	if i >= len(s.text) {
		return utf8.RuneError, 0
	}
	if c := s.text[i]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(s.text[i:])
}

// emit yields the term of a part of the text.
func (s *segmenter) emit(raw string, start, end int, extra bool) {
	s.put(s.lex.word(raw), start, end, extra)
}

func (s *segmenter) put(w analyzed, start, end int, extra bool) {
	if !s.done && w.term != "" {
		s.done = !s.yield(Token{Term: w.term, Stop: w.stop, Extra: extra, Start: start, End: end})
	}
}

// dense yields the overlapping pairs of letters in a run of a script without spaces. It also yields
// the last letter, so that each letter begins a term. Marks belong to their letter.
func (s *segmenter) dense(i int) int {
	last, pairs := -1, false
	for !s.done {
		r, _ := s.runeAt(i)
		if !isDense(r) || !isStart(r) {
			break
		}
		from := i
		i = s.cluster(i)
		if last >= 0 {
			s.emit(s.text[last:i], last, i, false)
			pairs = true
		}
		last = from
	}
	s.emit(s.text[last:i], last, i, pairs)
	return i
}

// isLetter reports whether a text is one letter of a script without spaces, with its
// marks.
func isLetter(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	if !isDense(r) || !isStart(r) {
		return false
	}
	s := segmenter{text: text}
	return s.cluster(0) == len(text)
}

// cluster returns the end of the letter at i with its marks. A sign that stacks letters also joins
// the next letter.
func (s *segmenter) cluster(i int) int {
	r, n := s.runeAt(i)
	for i += n; ; i += n {
		stacks := r == 0x17D2 || r == 0x1039
		if r, n = s.runeAt(i); n == 0 || !(unicode.IsMark(r) || isIgnored(r) || r == 0xFF9E || r == 0xFF9F || stacks && isDense(r)) {
			return i
		}
	}
}

// Limits of a compound. A longer one is split.
const (
	maxParts    = 32
	maxCompound = 1024 // maximum size in bytes
)

// compound yields the words of a compound such as max_connections, v1.2.3 or foo.Bar, and then the
// whole compound, unless hyphens join more than three words. A single word is a compound of one
// word. compound returns the end of the compound.
func (s *segmenter) compound(start int) int {
	parts, hyphens := 0, 0
	joined := s.joined[:0]
	for i := start; ; {
		raw, end := s.atom(i)
		if parts == 0 && s.hasPrefix(end, "://") {
			return s.url(end + len("://"))
		}
		if sign, n := s.sign(i, end); n > 0 {
			s.emit(s.text[i:end], i, end, false)
			joined = append(append(joined[:0], s.text[i:end]...), sign...)
			s.put(s.lex.wordOf(joined), i, end+n, false)
			return end + n
		}
		s.emit(s.text[i:raw], i, end, s.camel(i, raw))
		parts++
		joined = append(joined, s.text[i:raw]...)
		next, as := s.joint(i, end)
		if s.done || next == 0 || parts == maxParts || len(joined) > maxCompound {
			if parts > 1 && (hyphens < parts-1 || parts <= 3) {
				s.put(s.lex.wordOf(joined), start, end, true)
			}
			s.joined = joined
			return end
		}
		if as == "-" {
			hyphens++
			as = ""
		}
		joined = append(joined, as...)
		i = next
	}
}

// atom returns two ends of the word at i. raw is the end of the part that its term contains; end is
// the end of the word in the text.
func (s *segmenter) atom(i int) (raw, end int) {
	start, digits := i, true
	for i < len(s.text) {
		c := s.text[i]
		if c < utf8.RuneSelf {
			if !isAlnum(c) {
				break
			}
			digits = digits && c <= '9'
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s.text[i:])
		if !isTerm(r) && !isIgnored(r) || isDense(r) {
			break
		}
		digits = false
		i += n
	}
	if digits {
		for s.isGroup(i) {
			i += len(",000")
		}
		return i, i
	}
	r, n := s.runeAt(i)
	switch r {
	case '\'', '’':
		return s.apostrophe(start, i, n)
	case '"', '״', '׳': // as in Hebrew abbreviations
		last, _ := utf8.DecodeLastRuneInString(s.text[:i])
		if next, _ := s.runeAt(i + n); isHebrew(last) && isHebrew(next) {
			return s.atom(i + n)
		}
	}
	return i, i
}

// apostrophe returns the ends of a word that contains an apostrophe. A final 's is not part of the
// term, but the end of a contraction, such as n't, is.
func (s *segmenter) apostrophe(start, i, n int) (raw, end int) {
	tail := i + n
	for tail < len(s.text) && isAlnum(s.text[tail]) {
		tail++
	}
	if r, _ := s.runeAt(tail); isStart(r) || tail-i-n > 2 || s.elides(start, i) {
		return i, i
	}
	switch strings.ToLower(s.text[i+n : tail]) {
	case "s":
		return i, tail
	case "t", "d", "m", "ll", "re", "ve":
		return tail, tail
	}
	return i, i
}

// elides reports whether the part before an apostrophe is a separate word, such as an
// article.
func (s *segmenter) elides(start, end int) bool {
	switch s.lex.lang {
	case "fr", "it", "ca", "ga":
		return end-start <= len("quelqu") && s.lex.stops[strings.ToLower(s.text[start:end])]
	}
	return false
}

// joint returns the start of the compound's next word, or 0. as is the text between the words in
// the term of the whole compound: usually "", but a letter for a point or comma between digits,
// because 1.23 differs from 12.3. For a hyphen, as is "-", which the caller replaces with "".
func (s *segmenter) joint(start, end int) (next int, as string) {
	r, n := s.runeAt(end)
	next = end + n
	switch r {
	case '_':
		for next < len(s.text) && s.text[next] == '_' {
			next++
		}
	case '-', '\u2010', '\u2011':
		as = "-"
	case '\'', '’':
		if s.elides(start, end) {
			return 0, ""
		}
	case ':':
		if s.hasPrefix(next, ":") {
			next++
		} else if !s.isDigit(end-1) || !s.isDigit(next) {
			return 0, ""
		}
	case '.', ',':
		if s.isDigit(end-1) && s.isDigit(next) {
			as = "ꞏ"
		} else if r == ',' {
			return 0, ""
		}
	case '@', '&', '\\', '·':
	default:
		return 0, ""
	}
	if r, _ := s.runeAt(next); !isStart(r) || isDense(r) {
		return 0, ""
	}
	return next, as
}

func (s *segmenter) hasPrefix(i int, prefix string) bool {
	return i <= len(s.text) && strings.HasPrefix(s.text[i:], prefix)
}

func (s *segmenter) isDigit(i int) bool {
	return 0 <= i && i < len(s.text) && isDigit(s.text[i])
}

// isGroup reports whether a comma and a group of three digits are at i.
func (s *segmenter) isGroup(i int) bool {
	return s.hasPrefix(i, ",") && s.isDigit(i+1) && s.isDigit(i+2) && s.isDigit(i+3) && !s.isDigit(i+4)
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isAlnum(c byte) bool { return isLower(c) || isUpper(c) || isDigit(c) }

func isHebrew(r rune) bool { return 0x05D0 <= r && r <= 0x05EA }

// isStart reports whether a character can start a word.
func isStart(r rune) bool {
	if r < utf8.RuneSelf {
		return isAlnum(byte(r))
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// isIgnored reports whether to skip a character inside a word: soft hyphens, joiners, and
// direction marks.
func isIgnored(r rune) bool {
	return r == 0x00AD || r == 0x200C || r == 0x200D || r == 0x200E || r == 0x200F || r == 0x2060 || r == 0xFEFF
}
