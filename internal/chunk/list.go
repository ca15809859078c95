package chunk

import (
	"strconv"
	"strings"

	"github.com/millrace/millrace"
)

// lines collects the items of a list, one per line. Other blocks in an item, such as code, become
// separate pieces.
type lines struct {
	w *walker
	b strings.Builder
}

func (l *lines) list(b *millrace.Block, indent string) {
	for i := range b.Items {
		it := &b.Items[i]
		mark := "- "
		switch {
		case b.Type == millrace.DefinitionsBlock:
			mark = "  "
		case b.Ordered:
			mark = strconv.Itoa(b.Number(i)) + ". "
		}
		body := indent + strings.Repeat(" ", min(len(mark), 4))
		switch {
		case it.Task && it.Done:
			mark += "[x] "
		case it.Task:
			mark += "[ ] "
		}
		l.line(indent, indent, it.Term)
		if l.line(indent+mark, body, it.Text) {
			mark = strings.Repeat(" ", len(mark))
		}
		l.inside(it.Blocks, indent+mark, body)
	}
}

// inside adds the blocks after the text of an item. first is the prefix of the first line.
func (l *lines) inside(blocks []millrace.Block, first, indent string) {
	for i := range blocks {
		switch b := &blocks[i]; b.Type {
		case millrace.ListBlock, millrace.DefinitionsBlock:
			if len(indent) < maxIndent {
				l.list(b, indent)
			} else {
				l.list(b, "")
			}
		case millrace.TextBlock, millrace.HeadingBlock, millrace.MathBlock, millrace.LinkBlock:
			if l.line(first, indent, b.Text) {
				first = indent
			}
		default:
			l.flush()
			l.w.within("", func() { l.w.block(b) })
		}
	}
}

// maxIndent limits the indent of nested lists, so that the size of the text is linear in the size
// of the content.
const maxIndent = 16

// line adds the lines of a text. first is the prefix of the first line, and indent that of the
// others. It reports whether the text has content.
func (l *lines) line(first, indent, text string) bool {
	text = strings.TrimSpace(text)
	if text == "" {
		return false
	}
	for part := range strings.SplitSeq(text, "\n") {
		if part = strings.TrimSpace(part); part != "" {
			l.b.WriteString(first + part + "\n")
			first = indent
		}
	}
	return true
}

func (l *lines) flush() {
	text := l.b.String()
	l.b.Reset()
	l.w.add(List, text)
}
