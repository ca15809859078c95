package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/humanize"
	"golang.org/x/text/width"
)

// Wrap breaks a text into lines of so many columns, with its marks made
// strong: at spaces, before letters that take two columns, and where a word is
// longer than a line.
func Wrap(text string, marks [][2]int, columns int, strong func(string) string) []string {
	var lines []string
	var line strings.Builder
	used := 0
	for at := 0; ; {
		from := at + len(text[at:]) - len(strings.TrimLeftFunc(text[at:], unicode.IsSpace))
		if from == len(text) {
			break
		}
		space := 0
		if from > at && used > 0 {
			space = 1
		}
		end, wide := unit(text, from, columns)
		if used > 0 && used+space+wide > columns {
			lines = append(lines, line.String())
			line.Reset()
			used, space = 0, 0
		}
		line.WriteString(strings.Repeat(" ", space))
		line.WriteString(marked(text[from:end], from, marks, strong))
		used += space + wide
		at = end
	}
	if used > 0 {
		lines = append(lines, line.String())
	}
	return lines
}

// unit gives the end of what is not to be parted at i, and how many columns it
// takes: a word, or one wide letter with the signs that may not begin a line.
func unit(text string, i, columns int) (end, wide int) {
	opening, alone := true, false
	for end = i; end < len(text); {
		r, n := utf8.DecodeRuneInString(text[end:])
		c := columnsOf(r)
		switch {
		case unicode.IsSpace(r), !opening && (c == 2 || alone && c == 1) && !stays(r):
			return end, wide
		case wide+c > columns && end > i:
			return end, wide
		case opening && !unicode.In(r, unicode.Ps, unicode.Pi):
			opening, alone = false, c == 2
		}
		end += n
		wide += c
	}
	return end, wide
}

// stays reports whether a sign may not begin a line.
func stays(r rune) bool { return unicode.IsPunct(r) && !unicode.In(r, unicode.Ps, unicode.Pi) }

// columnsOf gives how many columns of a terminal a character takes.
func columnsOf(r rune) int {
	switch k := width.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) || unicode.IsControl(r):
		return 0
	case k == width.EastAsianWide || k == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// marked gives a part of a text that starts at a place of it, with what is
// marked there made strong.
func marked(part string, start int, marks [][2]int, strong func(string) string) string {
	var b strings.Builder
	at := 0
	for _, m := range marks {
		from, to := max(m[0]-start, at), min(m[1]-start, len(part))
		if from >= to {
			continue
		}
		b.WriteString(humanize.Printable(part[at:from]))
		b.WriteString(strong(humanize.Printable(part[from:to])))
		at = to
	}
	b.WriteString(humanize.Printable(part[at:]))
	return b.String()
}
