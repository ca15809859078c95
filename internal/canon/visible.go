package canon

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsInvisible reports whether a character is invisible and changes what people or programs see:
// a control character except line feed and tab, a change of the writing direction, a line
// or paragraph separator, a byte order mark, or a tag character, which can hide a text.
func IsInvisible(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == 0x2028 || r == 0x2029 || r == 0xfeff || r >= 0xe0000 && r <= 0xe007f
}

// Visible returns untrusted text without invisible characters. A byte that is not UTF-8 becomes
// U+FFFD.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		if IsInvisible(r) {
			return -1
		}
		return r
	}, ValidUTF8(s))
}

// OneLine returns untrusted text as one line: visible, with each run of white space as one
// space, and none at the ends.
func OneLine(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case IsInvisible(r):
			return -1
		}
		return r
	}, ValidUTF8(s))), " ")
}

// CSVCell returns untrusted text for a cell of CSV: one line that is not a formula. Spreadsheets
// execute cells that begin with = + - or @, or with the wide form of one of these. A leading
// apostrophe prevents that. A text in which such a character follows leading apostrophes also gets
// one more apostrophe, so removing one apostrophe restores the text.
func CSVCell(s string) string {
	s = OneLine(s)
	if r, n := utf8.DecodeRuneInString(strings.TrimLeft(s, "'")); n > 0 && strings.ContainsRune("=+-@＝＋－＠−", r) {
		return "'" + s
	}
	return s
}
