package humanize

import (
	"strings"
	"unicode"
)

// Printable returns text of others without what a terminal would obey.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, s)
}
