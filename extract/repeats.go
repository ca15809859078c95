package extract

import (
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// minRepeated is the number of words from which a part that stands in a page
// twice is no coincidence.
const minRepeated = 12

// repeats leaves out what stands in the root a second time, word for word:
// the copies that a show of slides makes of its ends, the same part once more
// for small screens. References repeat themselves, and so do code, tables,
// quotations and lists of plain lines.
func (l *located) repeats() {
	if l.kind == millrace.Documentation {
		return
	}
	boxes := l.c.boxes
	seen := map[uint64]int32{}
	for i := l.at + 1; i < boxes[l.at].end; {
		b := &boxes[i]
		if b.drop != "" || b.n.DataAtom == atom.Blockquote || b.n.DataAtom == atom.Table {
			i = b.end
			continue
		}
		if b.words >= minRepeated && mayRepeat(b, i) {
			first, ok := seen[b.sign]
			switch {
			case !ok:
				seen[b.sign] = i
			case boxes[first].end <= i && boxes[first].words == b.words && plainText(boxes[first].n) == plainText(b.n):
				b.drop = "repeated"
				i = b.end
				continue
			}
		}
		i++
	}
}

// mayRepeat reports whether a box is a part of a page, no part of a text.
func mayRepeat(b *box, at int32) bool {
	if b.flags&(hasBlock|hasTable) != 0 {
		return false
	}
	switch b.n.DataAtom {
	case atom.Div, atom.Section, atom.Article, atom.Aside, atom.Figure:
		return true
	case atom.Li:
		return b.end > at+1 // more than a line of a list
	}
	return false
}
