package chunk

import (
	"unicode"
	"unicode/utf8"
)

// scanner reads code points of a text and classifies the positions after them.
type scanner struct {
	text string
	at   int  // offset of the byte after the current code point
	r    rune // the current code point
	// ended reports whether a sentence has ended, and only closing marks have followed since.
	ended bool
	stop  rune // the character that ended the sentence
}

func (s *scanner) next() bool {
	if s.at >= len(s.text) {
		return false
	}
	var n int
	s.r, n = rune(s.text[s.at]), 1
	if s.r >= utf8.RuneSelf {
		s.r, n = utf8.DecodeRuneInString(s.text[s.at:])
	}
	s.at += n
	if endsSentence(s.r) {
		s.ended, s.stop = true, s.r
	} else if !closing(s.r) {
		s.ended = false
	}
	return true
}

// class returns the best class of the position after the current code point, or
// classes if the text must not be cut there.
func (s *scanner) class() int {
	if s.r == '\n' {
		return afterLine
	}
	next, _ := utf8.DecodeRuneInString(s.text[s.at:])
	if unicode.IsSpace(s.r) {
		// The text may be cut only after the white space.
		if unicode.IsSpace(next) {
			return classes
		}
		return s.afterSpace(next)
	}
	switch {
	case s.at < len(s.text) && (unicode.IsMark(next) || next == '\u200d' || s.r == '\u200d'):
		return classes
	case closing(next) || endsSentence(next) || clause(next):
		if s.r < utf8.RuneSelf && next < utf8.RuneSelf {
			return classes
		}
		return afterRune
	case s.ended && wide(s.stop):
		return afterSentence
	case clause(s.r) && wide(s.r):
		return afterClause
	case s.r == '\u200b':
		return afterWord
	}
	return afterRune
}

// afterSpace returns the class of the position after white space, before next.
func (s *scanner) afterSpace(next rune) int {
	before := s.text[:s.at]
	for before != "" {
		r, n := utf8.DecodeLastRuneInString(before)
		if !unicode.IsSpace(r) {
			break
		}
		before = before[:len(before)-n]
	}
	// Closing marks may be between the end of the sentence and the space.
	end := before
	r, n := utf8.DecodeLastRuneInString(end)
	for range 4 {
		if !closing(r) {
			break
		}
		end = end[:len(end)-n]
		r, n = utf8.DecodeLastRuneInString(end)
	}
	switch {
	case r == '.' && (unicode.IsLower(next) || abbreviation(end)):
		return afterWord
	case endsSentence(r):
		return afterSentence
	}
	if r, _ = utf8.DecodeLastRuneInString(before); clause(r) {
		return afterClause
	}
	return afterWord
}

// abbreviation reports whether the period at the end of a text belongs to an initial or a known
// abbreviation.
func abbreviation(end string) bool {
	word := end[:len(end)-1]
	start := len(word)
	for start > 0 && len(word)-start < 8 {
		r, n := utf8.DecodeLastRuneInString(word[:start])
		if !unicode.IsLetter(r) && r != '.' {
			break
		}
		start -= n
	}
	switch word = word[start:]; word {
	case "Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Nr", "No", "Fig", "vs", "etc", "e.g", "i.e", "cf", "al", "z.B", "d.h", "bzw", "ca",
		"Abb", "Hr", "Fr", "Sr", "Sra", "M", "p", "pp", "vol", "Vol", "ed", "eds", "approx":
		return true
	}
	r, n := utf8.DecodeRuneInString(word)
	return n == len(word) && n > 0 && unicode.IsUpper(r)
}

// endsSentence reports whether a character ends a sentence. It covers STerm and ATerm of UAX 29 for
// the scripts in use on web pages.
func endsSentence(r rune) bool {
	switch r {
	case '.', '!', '?', '…', '。', '！', '？', '｡', '．', '։', '؟', '۔', '।', '॥', '።', '፧', '။', '။' + 1, '។', '៕', '჻', '‼', '⁇', '⁈', '⁉':
		return true
	}
	return false
}

// clause reports whether a character ends a part of a sentence.
func clause(r rune) bool {
	switch r {
	case ',', ';', ':', '、', '，', '；', '：', '،', '؛', '၊', '·', '—', '–':
		return true
	}
	return false
}

// wide reports whether a punctuation mark needs no space after it.
func wide(r rune) bool {
	switch r {
	case '。', '！', '？', '｡', '．', '、', '，', '；', '：', '။', '၊', '។', '៕':
		return true
	}
	return false
}

// closing reports whether a character after the end of a sentence still belongs to the sentence.
func closing(r rune) bool {
	switch r {
	case '"', '\'', ')', ']', '}', '”', '’', '»', '›', '」', '』', '）', '】', '》', '〉', '］':
		return true
	}
	return false
}
