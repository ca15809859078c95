package search

import "strings"

// sign returns the word for the signs at the end of names such as C++ and C#, and the number of
// these signs, or 0 if there are none.
func (s *segmenter) sign(start, end int) (word string, n int) {
	const most = 10 // in longer words, the signs have other meanings
	switch {
	case end-start > most || s.isDigit(start):
	case s.hasPrefix(end, "++") && !s.hasPrefix(end, "+++"):
		return "plusplus", 2
	case s.hasPrefix(end, "#") && end-start == 1:
		if r, _ := s.runeAt(end + 1); !isStart(r) {
			return "sharp", 1
		}
	}
	return "", 0
}

// url yields the words of a URL without its scheme, and then the whole URL if it has a path. It
// returns the end of the URL.
func (s *segmenter) url(start int) int {
	end := start
	for end < len(s.text) {
		r, n := s.runeAt(end)
		if isGap(r) || isDense(r) || strings.ContainsRune("<>\"|^`{}“”«»", r) {
			break
		}
		end += n
	}
	for end > start && strings.IndexByte(".,;:!?)]'*_", s.text[end-1]) >= 0 {
		end--
	}
	for i := start; i < end && !s.done; {
		r, n := s.runeAt(i)
		if isStart(r) {
			i = s.compound(i)
		} else {
			i += n
		}
	}
	if strings.IndexByte(s.text[start:end], '/') > 0 {
		s.emit(s.text[start:end], start, end, true)
	}
	return end
}

// camel yields the words of a name such as getElementById, and reports whether the word is
// such a name. Names like iPhone, and names of two words with an initial capital, such as
// JavaScript, are one word.
func (s *segmenter) camel(start, end int) bool {
	const longest = 64
	if end-start > longest || end-start < 4 {
		return false
	}
	var cuts [longest]int
	n := 0
	for i := start + 1; i < end; i++ {
		c, before := s.text[i], s.text[i-1]
		if isUpper(c) && (isLower(before) || isDigit(before) || isUpper(before) && i+1 < end && isLower(s.text[i+1])) {
			cuts[n] = i
			n++
		}
	}
	if n == 0 || n == 1 && (isUpper(s.text[start]) || cuts[0]-start < 2) {
		return false
	}
	cuts[n] = end
	for i, from := 0, start; i <= n; i++ {
		s.emit(s.text[from:cuts[i]], from, cuts[i], false)
		from = cuts[i]
	}
	return true
}
