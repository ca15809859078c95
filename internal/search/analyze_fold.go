package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/millrace/millrace/internal/canon"
)

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// fold returns a word in NFKC with case folding, reduced to letters, digits and marks.
func (l *lexicon) fold(raw string) string {
	if l.lang == "tr" {
		raw = strings.ReplaceAll(strings.ReplaceAll(raw, "I", "ı"), "İ", "i")
	}
	if isASCII(raw) {
		return strings.Map(func(r rune) rune {
			switch {
			case 'A' <= r && r <= 'Z':
				return r + 'a' - 'A'
			case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
				return r
			}
			return -1
		}, raw)
	}
	return strings.Map(func(r rune) rune {
		if !isTerm(r) || isVariation(r) {
			return -1
		}
		return r
	}, canon.Normalize(raw))
}

func isVariation(r rune) bool { return 0xFE00 <= r && r <= 0xFE0F || 0xE0100 <= r && r <= 0xE01EF }

// plain removes marks that people often omit when they type: accents of Latin and Greek letters,
// stress marks and the dots of ё in Cyrillic, and vowel signs of Hebrew and Arabic. It keeps all
// other marks, which are part of the spelling. It also replaces some letters; see letters.
func plain(s string) string {
	if isASCII(s) {
		return s
	}
	var out strings.Builder
	var base rune
	for _, r := range norm.NFD.String(s) {
		if unicode.IsMark(r) {
			if dropped(base, r) {
				continue
			}
		} else {
			base = r
		}
		if as, ok := letters(r); ok {
			out.WriteString(as)
		} else {
			out.WriteRune(r)
		}
	}
	if t := norm.NFC.String(out.String()); t != "" {
		return t
	}
	return s
}

// dropped reports whether plain removes the mark from the base letter.
func dropped(base, mark rune) bool {
	switch {
	case 0x0300 <= mark && mark <= 0x036F:
		if unicode.Is(unicode.Cyrillic, base) {
			return mark <= 0x0301 || mark == 0x0308 && base == 'е'
		}
		return unicode.In(base, unicode.Latin, unicode.Greek)
	case 0x0591 <= mark && mark <= 0x05C7: // Hebrew
		return true
	case 0x064B <= mark && mark <= 0x065F, mark == 0x0670, 0x0610 <= mark && mark <= 0x061A: // Arabic
		return true
	}
	return false
}

// letters returns the replacement for a letter that has no suitable Unicode decomposition, and
// reports whether there is one.
func letters(r rune) (string, bool) {
	switch r {
	case 'ø':
		return "o", true
	case 'ł':
		return "l", true
	case 'đ', 'ð':
		return "d", true
	case 'ħ':
		return "h", true
	case 'ı':
		return "i", true
	case 'æ':
		return "ae", true
	case 'œ':
		return "oe", true
	case 'þ':
		return "th", true
	case 'ς':
		return "σ", true
	case 'ی', 'ى':
		return "ي", true
	case 'ک':
		return "ك", true
	case 'ـ': // the tatweel only stretches a word
		return "", true
	}
	return "", false
}

// isDense reports whether a letter's script writes words without spaces, or uses spaces
// only between phrases.
func isDense(r rune) bool {
	switch {
	case r < 0x0E00:
		return false
	case r <= 0x0EFF: // Thai, Lao
		return !unicode.IsDigit(r)
	case 0x1000 <= r && r <= 0x109F: // Burmese
		return !unicode.IsDigit(r)
	case 0x1100 <= r && r <= 0x11FF: // Hangul, in parts
		return true
	case 0x1780 <= r && r <= 0x17FF: // Khmer
		return !unicode.IsDigit(r)
	case r < 0x3005:
		return false
	case r <= 0x318F: // kana, bopomofo, Hangul
		return true
	case 0x31A0 <= r && r <= 0x31FF, 0x3400 <= r && r <= 0x4DBF, 0x4E00 <= r && r <= 0xA4CF, 0xA960 <= r && r <= 0xA97F:
		return true
	case 0xAC00 <= r && r <= 0xD7FF, 0xF900 <= r && r <= 0xFAFF, 0xFF66 <= r && r <= 0xFFDC:
		return true
	}
	return 0x1B000 <= r && r <= 0x1B16F || 0x20000 <= r && r <= 0x3FFFD
}
