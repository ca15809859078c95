package extract

import (
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// minRepeated is the minimum number of words of a part that is removed as a copy. Shorter
// repetitions may be coincidence.
const minRepeated = 12

// repeats leaves out boxes of the page layout that repeat an earlier one word for word. Examples
// are copies of the first and last slide of a slide show, and a second version for small screens.
// Repetitions are kept in manuals, and in boxes with code, quotations, definitions or tables.
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

// mayRepeat reports whether a box is part of the page layout and not of a text.
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

// texts counts the inner boxes of a box that have text of their own, up to three.
func (l *located) texts(at int32) int {
	boxes := l.c.boxes
	n := 0
	for i := at + 1; i < boxes[at].end && n < 3; i++ {
		if boxes[i].own > 0 && boxes[i].drop == "" {
			n++
		}
	}
	return n
}
