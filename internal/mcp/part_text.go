package mcp

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace"
)

// takeText returns the first part of a block's text after a position, and the position of the
// rest.
func takeText(b millrace.Block, at blockPath, room int, lines bool) (head millrace.Block, rest blockPath, err error) {
	from := 0
	if len(at) > 0 {
		from = at[0]
	}
	if len(at) > 1 || from < 0 || from > len(b.Text) || from == len(b.Text) && from > 0 || from > 0 && !utf8.RuneStart(b.Text[from]) {
		return b, nil, errBlockPath(at)
	}
	full := b.Text
	if from > 0 {
		b.Caption = ""
	}
	spans := b.Spans
	room = max(room, 1)
	for n := room; ; n = n * 3 / 4 {
		to := from + cut(full[from:], max(n, 1), lines)
		b.Text, b.Spans = full[from:to], spansIn(spans, from, to)
		if to < len(full) {
			rest = blockPath{to}
		}
		// Outside of code, marks and escapes take additional characters.
		if lines || n <= 1 || size(millrace.Block{Type: millrace.TextBlock, Text: b.Text, Spans: b.Spans}) <= room+2 {
			return b, rest, nil
		}
		if n < 16 && spans != nil {
			spans, n = nil, room*4/3 // drop the spans, because the URL of a link does not fit
		}
	}
}

// takeOne returns the start of a block that contains only the i-th of n items or rows, as
// text.
func takeOne(b millrace.Block, at blockPath, room, i, n int) (head millrace.Block, rest blockPath, err error) {
	head, rest, err = takeText(plain(b), at, room, false)
	switch {
	case err != nil:
		return b, nil, err
	case rest != nil:
		return head, rest.below(i), nil
	case i+1 < n:
		return head, blockPath{i + 1}, nil
	}
	return head, nil, nil
}

// spansIn returns the spans of the text between two offsets, relative to the first.
func spansIn(spans []millrace.Span, from, to int) (out []millrace.Span) {
	for _, s := range spans {
		if s.Start, s.End = max(s.Start, from)-from, min(s.End, to)-from; s.Start < s.End {
			out = append(out, s)
		}
	}
	return out
}

// cut returns the offset at which to cut a text to a maximum number of characters. It prefers the
// end of a line, a sentence or a word in the second half. It never splits a visible character, and
// returns 0 only for an empty text.
func cut(s string, most int, lines bool) int {
	end, half := len(s), 0
	n := 0
	for i := range s {
		if n == most/2 {
			half = i
		}
		if n == most {
			end = i
			break
		}
		n++
	}
	if end == len(s) {
		return end
	}
	if i := strings.LastIndexByte(s[half:end], '\n'); i >= 0 && half+i > 0 {
		return half + i + 1
	}
	if !lines {
		for _, stop := range []string{". ", "! ", "? ", "。", "！", "？", " "} {
			if i := strings.LastIndex(s[half:end], stop); i >= 0 && half+i > 0 {
				return half + i + len(stop)
			}
		}
	}
	return edge(s, end)
}

// edge returns the largest offset from at-63 to at that does not separate a character from its
// combining marks. If there is no such offset, edge returns the start of the first character at or
// after at.
func edge(s string, at int) int {
	for i := at; i > 0 && at-i < 64; i-- {
		if isBoundary(s, i) {
			return i
		}
	}
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return at
}

const joiner = '\u200d'

// isBoundary reports whether a text can be cut at byte i.
func isBoundary(s string, i int) bool {
	if i >= len(s) {
		return true
	}
	if !utf8.RuneStart(s[i]) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i:])
	switch {
	case unicode.Is(unicode.M, after), after == joiner, before == joiner, after >= 0x1f3fb && after <= 0x1f3ff:
		return false
	case before == '\r' && after == '\n':
		return false
	case flag(after): // two regional indicators form a flag
		n := 0
		for before := s[:i]; ; n++ {
			r, size := utf8.DecodeLastRuneInString(before)
			if !flag(r) {
				break
			}
			before = before[:len(before)-size]
		}
		return n%2 == 0
	}
	return true
}

func flag(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }
