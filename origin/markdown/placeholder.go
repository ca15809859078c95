package markdown

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace"
)

// placeholder marks a position in a text at which the value is known only to the generator. It is a
// Unicode noncharacter.
const placeholder = '\uFDD0'

// escapedPlaceholder is placeholder as it appears in a URL.
const escapedPlaceholder = "%EF%B7%90"

// omitValue writes a placeholder for the tag s[from:end]. It writes nothing if the tag is a
// separate paragraph or, if control is set, a separate line.
func (c *cleaner) omitValue(s string, from, end int, control bool) {
	before, after := strings.TrimRight(s[:from], " \t"), strings.TrimLeft(s[end:], " \t")
	line := (before == "" || strings.HasSuffix(before, "\n")) && (after == "" || after[0] == '\n')
	paragraph := line && (before == "" || strings.HasSuffix(before, "\n\n")) && (len(after) < 2 || after[1] == '\n')
	switch {
	case control && line:
	case paragraph:
		c.lost++
	default:
		c.out = utf8.AppendRune(c.out, placeholder)
	}
}

// valueOf returns the value with a name such as "a.b".
func valueOf(m matter, name string) (string, bool) {
	first, rest, more := strings.Cut(strings.ToLower(name), ".")
	if more {
		return valueOf(m.under(first), rest)
	}
	switch v := m[first].(type) {
	case string, bool, int, int64, uint64, float64:
		return valid(fmt.Sprint(v)), true
	}
	return "", false
}

// omissions removes sentences that contain placeholders, and counts these sentences.
type omissions int

// hasPlaceholder reports whether a text or a URL contains a placeholder.
func hasPlaceholder(s string) bool {
	return strings.ContainsRune(s, placeholder) || strings.Contains(s, escapedPlaceholder)
}

func (h *omissions) blocks(list []millrace.Block) []millrace.Block {
	var out []millrace.Block
	for i := range list {
		if !h.block(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

// block removes sentences with placeholders from a block. empty reports whether the rest of the
// block is empty.
func (h *omissions) block(b *millrace.Block) (empty bool) {
	indivisible := b.Type == millrace.HeadingBlock || b.Type == millrace.CodeBlock || b.Type == millrace.MathBlock
	if indivisible && hasPlaceholder(b.Text) || hasPlaceholder(b.URL) {
		*h++
		return true
	}
	before := *h
	h.text(&b.Text, &b.Spans)
	for _, s := range []*string{&b.Caption, &b.Title, &b.Cite, &b.Alt} {
		h.text(s, nil)
	}
	b.Blocks = h.blocks(b.Blocks)
	var items []millrace.Item
	for _, it := range b.Items {
		before := *h
		h.text(&it.Text, &it.Spans)
		h.text(&it.Term, nil)
		if it.Blocks = h.blocks(it.Blocks); *h == before || it.Text != "" || len(it.Blocks) > 0 {
			items = append(items, it)
		}
	}
	b.Items = items
	for _, row := range b.Rows {
		for i := range row {
			h.text(&row[i].Text, &row[i].Spans)
		}
	}
	return *h > before && b.Text == "" && len(b.Blocks) == 0 && len(b.Items) == 0 && len(b.Rows) == 0 && b.URL == ""
}

// text removes sentences with placeholders from a text, and the targets of links that contain
// placeholders.
func (h *omissions) text(text *string, spans *[]millrace.Span) {
	if spans != nil {
		*spans = slices.DeleteFunc(*spans, func(s millrace.Span) bool { return s.Type == millrace.LinkSpan && hasPlaceholder(s.URL) })
	}
	for {
		at := strings.IndexRune(*text, placeholder)
		if at < 0 {
			return
		}
		*h++
		from, to := sentence(*text, at)
		end := at + utf8.RuneLen(placeholder)
		if next, _ := utf8.DecodeRuneInString((*text)[end:]); at == from && unicode.IsUpper(next) {
			to = end
		}
		s := (*text)[:from] + (*text)[to:]
		if to == len(*text) {
			s = strings.TrimRightFunc(s, unicode.IsSpace)
		}
		*text = s
		if spans == nil {
			continue
		}
		for i := range *spans {
			span := &(*spans)[i]
			for _, end := range []*int{&span.Start, &span.End} {
				*end = min(*end-max(0, min(*end, to)-from), len(s))
			}
		}
		*spans = slices.DeleteFunc(*spans, func(s millrace.Span) bool { return s.Start >= s.End })
	}
}

// sentence returns the bounds of the sentence that contains text[at:].
func sentence(text string, at int) (from, to int) {
	for i, r := range text {
		end := i + utf8.RuneLen(r)
		space := len(text[end:]) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
		if end += space; r == '\n' || isStop(r, space > 0, text[end:]) {
			if i >= at {
				return from, end
			}
			from = end
		}
	}
	return from, len(text)
}

// isStop reports whether a character ends a sentence. If a lower-case letter follows, the character
// belongs to an abbreviation.
func isStop(r rune, space bool, next string) bool {
	switch r {
	case '。', '！', '？':
		return true
	case '.', '!', '?', '…':
		first, n := utf8.DecodeRuneInString(next)
		if first == placeholder {
			after, _ := utf8.DecodeRuneInString(next[n:])
			return unicode.IsUpper(after) // the placeholder is between two sentences
		}
		return next == "" || space && !unicode.IsLower(first)
	}
	return false
}
