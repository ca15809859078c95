package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Wrap breaks a text into lines of at most the given number of columns. It divides each line into
// marked and other parts; marks are byte ranges of the text. It breaks lines at spaces, before
// letters of two columns, and inside words that are longer than a line.
func Wrap(text string, marks [][2]int, columns int) (lines [][]Part) {
	var line []Part
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
			lines = append(lines, line)
			line, used, space = nil, 0, 0
		}
		line = marked(append(line, Part{Text: strings.Repeat(" ", space)}), text, from, end, marks)
		used += space + wide
		at = end
	}
	if used > 0 {
		lines = append(lines, line)
	}
	return lines
}

// unit returns the end of the unbreakable part at i, and its number of columns. The part is a word,
// or one wide letter with the punctuation that must not be separated from it.
func unit(text string, i, columns int) (end, wide int) {
	opening, alone := true, false
	for end = i; end < len(text); {
		r, n := utf8.DecodeRuneInString(text[end:])
		c := columnsOf(r)
		switch {
		case unicode.IsSpace(r), !opening && (c == 2 || alone && c == 1) && !neverStartsLine(r):
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

// neverStartsLine reports whether a character must not begin a line.
func neverStartsLine(r rune) bool {
	return unicode.IsPunct(r) && !unicode.In(r, unicode.Ps, unicode.Pi)
}

// columnsOf returns the number of terminal columns of a character.
func columnsOf(r rune) int {
	switch k := width.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) || unicode.IsControl(r):
		return 0
	case k == width.EastAsianWide || k == width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Part is a part of a line.
type Part struct {
	Text   string
	Strong bool // inside a mark
}

// marked appends the bytes from start to end of a text, divided at its marks.
func marked(line []Part, text string, start, end int, marks [][2]int) []Part {
	for _, m := range marks {
		from, to := max(m[0], start), min(m[1], end)
		if from >= to {
			continue
		}
		line = append(line, Part{text[start:from], false}, Part{text[from:to], true})
		start = to
	}
	return append(line, Part{text[start:end], false})
}
