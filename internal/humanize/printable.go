package humanize

import (
	"strings"
	"unicode"
)

// Printable returns untrusted text without control sequences of terminals.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, s)
}
