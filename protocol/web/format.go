package web

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/canon"
)

// Media types that are used in several files.
const (
	markdownType = "text/markdown; charset=utf-8" // RFC 7763, section 2
	listType     = "text/plain"                   // type of llms.txt, which is Markdown but is sent as plain text by every server
)

// revalidate is the usual Cache-Control of documents, because all documents have validators.
const revalidate = "max-age=0, must-revalidate"

// firstInvalid returns the index of the first byte that is not UTF-8, or -1 if there is no such
// byte.
func firstInvalid(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// parseTime parses a time in front matter. For any other text, it returns the zero time.
func parseTime(s string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() > 0 && t.Year() < 10_000 {
			return t.UTC().Truncate(time.Second)
		}
	}
	return time.Time{}
}

// cleanLine returns a string as one line of visible characters.
func cleanLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case canon.IsInvisible(r), r == '\u00AD', r == '\uFFFE', r == '\uFFFF':
			return -1
		}
		return r
	}, canon.ValidUTF8(s))
	return strings.Join(strings.Fields(s), " ")
}
