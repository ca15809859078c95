package extract

import (
	"math"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/forest"
)

// shape counts the characters of a text by type. The text is the part of a box outside of its inner
// boxes.
type shape struct{ bytes, ends, commas, digits, signs int32 }

func (s *shape) add(text string) {
	s.bytes += int32(len(text))
	for i := range len(text) {
		switch c := text[i]; {
		case c >= '0' && c <= '9':
			s.digits++
		case c == ',':
			s.commas++
		case c == '.' || c == '!' || c == '?':
			if i+1 == len(text) || text[i+1] <= ' ' || text[i+1] == '"' {
				s.ends++
			}
		case c == '|' || c == '/' || c == ':' || c == 0xA9 || c == '$' || c == '%' || c == '#' || c == '@':
			s.signs++
		case c == 0x82 && i >= 2 && text[i-2] == 0xE3 && text[i-1] == 0x80: // 。
			s.ends++
		case c == 0x81 && i >= 2 && text[i-2] == 0xE3 && text[i-1] == 0x80: // 、
			s.commas++
		}
	}
}

func (s *shape) sum(o *shape) {
	s.bytes += o.bytes
	s.ends += o.ends
	s.commas += o.commas
	s.digits += o.digits
	s.signs += o.signs
}

// unit is a part of a page that the classifier keeps or drops: the text of a box outside of its
// inner boxes, or a whole table, list, quote, figure or code block.
type unit struct {
	at, end               int32 // range of boxes
	words, links, anchors int32
	shape
	before    int32 // number of words in the units before this one
	heading   int32 // index of the last heading before this unit; -1 = none
	announces bool  // the unit is a heading that announces texts elsewhere
	level     uint8 // rank of the heading. If zero, the unit is not a heading.
	kept      bool  // whether the rules keep the unit
	shows     bool  // the form of the unit is no evidence: code, a figure, a footnote, or a text that was nested too deeply
	score     int32
	alike     *alike
}

// alike contains the sums over the units with the same tag, class and parent class.
type alike struct {
	units, words, links, kept int32
	score, weight             int64
}

// area contains the sums over a subtree, including what the rules leave out.
type area struct {
	words, links, prose, units, kept int32
	inner                            int32 // number of child boxes
	depth                            uint16
	near                             [markCount]uint8 // distance to the nearest enclosing element with each mark
	fixed                            bool             // a rule whose reason is certain leaves the subtree out
	note                             bool             // the subtree is part of a footnote
	whole                            bool             // the subtree is a single unit
	out                              bool             // the rules leave the subtree out
	why                              string           // reason of the outermost box that the rules leave out
	away                             int32            // number of boxes outside of the root that contain the subtree, including its own box
}

const far = 9 // distance of an absent mark

// classifier decides which units of a page are content. In this file, "the rules" are the decisions
// of the earlier steps, not [Rules].
type classifier struct {
	l        *located
	areas    []area
	units    []unit
	titleAt  int // number of units before the title; -1 = no title
	maxScore int32
}

// minClassified is the minimum number of words of a page that is classified. Shorter pages have too
// little text for the classifier.
const minClassified = 150

// maxFormed is the depth at which the form of a text may be lost; see flatten.
const maxFormed = maxDepth - 10

// Minimum distance between a unit's score and the limit for the classifier to overrule the rules.
// The score must be above the limit for a unit that the rules leave out (marginIn), and below it for
// a unit that they keep (marginOut).
const (
	marginIn  = 1000
	marginOut = 300
)

// boxForest scores the units of pages. bench/train generates its table.
var boxForest = func() *forest.Forest {
	f, err := forest.Parse(boxTable, len(features))
	if err != nil {
		panic("extract: " + err.Error())
	}
	return f
}()

// classify corrects the decisions of the rules by the scores of the forest. It skips archives, short
// pages, and manuals, whose texts have too many forms.
func (l *located) classify() {
	probe := forest.ProbeOf(l.c.ctx)
	f := boxForest
	if probe != nil {
		f = probe.Forest
	}
	if l.kind == millrace.Documentation || l.kind == millrace.Archive || l.total.words < minClassified {
		return
	}
	k := l.newClassifier()
	x := make([]int16, 0, len(features))
	for i := range k.units {
		u := &k.units[i]
		x = k.sample(x[:0], i)
		if probe != nil && probe.Seen != nil {
			probe.Seen(l.text(u), x, u.kept)
		}
		if f != nil {
			u.score = f.Score(x)
		}
	}
	if f != nil && len(k.units) > 0 {
		k.smooth()
		k.apply()
	}
}

func (l *located) newClassifier() *classifier {
	boxes := l.c.boxes
	k := &classifier{l: l, areas: make([]area, len(boxes)), titleAt: -1}
	notes := findNotes(l.c, boxes[0].n)
	forms := map[uint64]*alike{}
	root := &boxes[l.at]
	whole, words, heading := int32(0), int32(0), int32(-1) // whole is the end of the current whole unit
	for i := range boxes {
		at, b, a := int32(i), &boxes[i], &k.areas[i]
		k.enter(at)
		a.note = a.note || notes.defs[b.n] != nil || hasClass(b.n, noteLists...)
		if at < whole {
			u := &k.units[len(k.units)-1]
			u.words, u.links, u.anchors = u.words+b.own, u.links+b.ownLinks, u.anchors+b.ownAnchors
			u.shape.sum(&b.shape)
			words += b.own
			u.shows = u.shows || a.note
			continue
		}
		if b.n == l.c.titleNode {
			k.titleAt = len(k.units)
			continue
		}
		var code bool
		a.whole, code = l.isWhole(at)
		if a.fixed || b.own == 0 && !(a.whole && l.texts(at) > 0) {
			continue
		}
		u := unit{
			at: at, end: at + 1, words: b.own, links: b.ownLinks, anchors: b.ownAnchors, shape: b.shape, before: words, heading: heading,
			level: uint8(tagLevel(b.tag)), kept: at >= l.at && at < root.end && !a.out,
			shows: a.note || code || b.tag == atom.Figure || a.depth >= maxFormed,
		}
		if a.whole {
			u.end, whole = b.end, b.end
		}
		if u.level > 0 {
			heading = int32(len(k.units))
			if b.own <= 10 {
				u.announces = announces(plainText(b.n), asideWords)
			}
		}
		words += b.own
		k.units = append(k.units, u)
	}
	for i := range k.units {
		u := &k.units[i]
		k.areas[u.at].units = 1
		k.areas[u.at].kept = int32(bit(u.kept))
	}
	for i := len(boxes) - 1; i > 0; i-- {
		a, p := &k.areas[i], &k.areas[boxes[i].parent]
		p.words += a.words
		p.links += a.links
		p.prose += a.prose
		p.units += a.units
		p.kept += a.kept
	}
	for i := range k.units {
		u := &k.units[i]
		n := boxes[u.at].n
		form := sign(sign(uint64(boxes[u.at].tag), attr(n, "class")), attr(n.Parent, "class"))
		if forms[form] == nil {
			forms[form] = &alike{}
		}
		s := forms[form]
		u.alike = s
		s.units++
		s.words += u.words
		s.links += u.links
		s.kept += int32(bit(u.kept))
		k.maxScore = max(k.maxScore, k.paragraphScore(u))
	}
	return k
}

// enter fills the area of a box with the box's own values and those inherited from its parent.
func (k *classifier) enter(at int32) {
	b, a := &k.l.c.boxes[at], &k.areas[at]
	for g := range a.near {
		a.near[g] = far
	}
	if at > 0 {
		p := &k.areas[b.parent]
		p.inner++
		a.fixed, a.note, a.depth, a.out, a.why, a.away = p.fixed, p.note, p.depth+1, p.out, p.why, p.away
		for g, d := range p.near {
			a.near[g] = min(d+1, far)
		}
	}
	root := &k.l.c.boxes[k.l.at]
	switch {
	case at > k.l.at && at < root.end:
		a.out = a.out || b.drop != ""
	case at >= root.end || b.end <= k.l.at:
		a.away++
	}
	if at > 0 && a.why == "" {
		a.why = b.drop
	}
	a.fixed = a.fixed || isCertain(b.drop)
	a.words, a.links = b.own, b.ownLinks
	switch b.tag {
	case atom.P, atom.Pre, atom.Blockquote, atom.Dd:
		a.prose = b.own - b.ownLinks
	}
	if b.noAttrs && (b.tag == atom.Div || b.tag == atom.P || b.tag == atom.Li) {
		return
	}
	m := marksOf(b.n)
	for g := 0; m != 0; g, m = g+1, m>>1 {
		if m&1 != 0 {
			a.near[g] = 0
		}
	}
}

// isWhole reports whether the subtree of a box is a single unit, and whether it is code.
func (l *located) isWhole(i int32) (whole, code bool) {
	boxes := l.c.boxes
	b := &boxes[i]
	switch b.tag {
	case atom.Pre:
		return true, true
	case atom.Figure:
		return true, false
	case atom.Table:
		_, code = tableText(b.n)
		return code || !isLayoutTable(b.n), code
	case atom.Blockquote, atom.Dl:
		return b.flags&(hasTop|hasTable) == 0, false
	case atom.Ul, atom.Ol:
		for k := i + 1; k < b.end; k++ {
			switch boxes[k].tag {
			case atom.Li, atom.Ul, atom.Ol, atom.P, atom.Pre:
			default:
				return false, false
			}
		}
		return true, false
	}
	return false, false
}

// isCertain reports whether the reason of a rule is certain and needs no correction.
func isCertain(reason string) bool {
	switch reason {
	case "hidden", "aria-hidden", "display: none", "consent", "repeated", "about a writer":
		return true
	}
	return false
}

// paragraphScore returns the prose of the parent of a unit's box plus half of the grandparent's.
func (k *classifier) paragraphScore(u *unit) int32 {
	p := k.l.c.boxes[u.at].parent
	if p < 0 {
		return k.areas[0].prose
	}
	score := k.areas[p].prose
	if p = k.l.c.boxes[p].parent; p >= 0 {
		score += k.areas[p].prose / 2
	}
	return score
}

// text returns the text of a unit.
func (l *located) text(u *unit) string {
	n := l.c.boxes[u.at].n
	if u.end > u.at+1 {
		return plainText(n)
	}
	var b []byte
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.TextNode || isInline(c.DataAtom) {
			b = appendPlain(b, c)
		}
	}
	return folded(string(b))
}

// smooth moves the score of each unit toward the mean score of the units that are alike.
func (k *classifier) smooth() {
	for i := range k.units {
		u := &k.units[i]
		w := 1 + int64(16*math.Sqrt(float64(u.words)))
		u.alike.score += int64(u.score) * w
		u.alike.weight += w
	}
	for i := range k.units {
		u := &k.units[i]
		u.score = int32((7*int64(u.score) + 3*u.alike.score/u.alike.weight) / 10)
	}
}

// limit returns the minimum score of kept units: the one that maximizes the expected F1 of the
// page's words.
func (k *classifier) limit() int32 {
	order := make([]*unit, len(k.units))
	want := 0.
	for i := range k.units {
		order[i] = &k.units[i]
		want += float64(order[i].words) * chance(order[i].score)
	}
	slices.SortFunc(order, func(a, b *unit) int { return int(b.score - a.score) })
	best, limit, have, common := 0., int32(0), 0., 0.
	for _, u := range order {
		have += float64(u.words)
		common += float64(u.words) * chance(u.score)
		if f := 2 * common / (have + want); f > best {
			best, limit = f, u.score
		}
	}
	return limit
}

// chance converts a score into a probability.
func chance(score int32) float64 { return 1 / (1 + math.Exp(-float64(score)/1000)) }

// apply leaves out the units with low scores. If high scores keep text outside of the root, apply
// moves the root.
func (k *classifier) apply() {
	l, boxes := k.l, k.l.c.boxes
	keep := make([]int32, len(boxes)) // kept units in each subtree
	limit := k.limit()

	next := false // the next unit is kept
	for i := len(k.units) - 1; i >= 0; i-- {
		u := &k.units[i]
		// A heading is kept if the text after it is kept.
		next = u.kept && (u.score >= limit-marginOut || u.shows || u.level > 0 && next || k.isAnnounced(i)) || u.score > limit+marginIn
		keep[u.at] = int32(bit(next))
	}
	for i := len(boxes) - 1; i > 0; i-- {
		keep[boxes[i].parent] += keep[i]
	}
	if keep[0] == 0 {
		return
	}
	old, oldEnd := l.at, boxes[l.at].end
	at := k.root(keep)
	for p := at; p > 0; p = boxes[p].parent {
		boxes[p].drop = ""
	}
	for i := at + 1; i < boxes[at].end; {
		b := &boxes[i]
		switch {
		case keep[i] > 0:
			b.drop = ""
			if k.areas[i].whole {
				i = b.end
			} else {
				i++
			}
			continue
		case b.drop != "" || b.n == l.c.titleNode:
		case i >= old && i < oldEnd && k.areas[i].kept > 0:
			b.drop = k.whyNot(i)
		case (i < old || i >= oldEnd) && !(i <= old && old < b.end):
			b.drop = OutsideRoot
		default:
			i++
			continue
		}
		i = b.end
	}
	l.at = at
	l.c.sum()
}

// isAnnounced reports whether a unit is a list that follows a text ending with a colon.
func (k *classifier) isAnnounced(i int) bool {
	boxes, u := k.l.c.boxes, &k.units[i]
	if i == 0 || boxes[u.at].tag != atom.Ul && boxes[u.at].tag != atom.Ol {
		return false
	}
	before := &k.units[i-1]
	return boxes[before.at].parent == boxes[u.at].parent && strings.HasSuffix(k.l.text(before), ":")
}

// root returns a box that contains all kept units. If the current root contains any of them, root
// returns the current root or its nearest suitable ancestor; if not, the innermost container.
func (k *classifier) root(keep []int32) int32 {
	boxes, at := k.l.c.boxes, k.l.at
	if keep[at] > 0 {
		for keep[at] < keep[0] {
			at = boxes[at].parent
		}
		return at
	}
	for at = 0; ; {
		next := int32(-1)
		for i := at + 1; i < boxes[at].end; i = boxes[i].end {
			if keep[i] == keep[0] && isContainer(boxes[i].n) && boxes[i].end > i+1 && !k.areas[i].whole {
				next = i
			}
		}
		if next < 0 {
			return at
		}
		at = next
	}
}

// whyNot explains why a box is left out, using its longest unit.
func (k *classifier) whyNot(at int32) string {
	first, _ := slices.BinarySearchFunc(k.units, at, func(u unit, at int32) int { return int(u.at - at) })
	longest, words := first, int32(0)
	for i := first; i < len(k.units) && k.units[i].at < k.l.c.boxes[at].end; i++ {
		if words += k.units[i].words; k.units[i].words > k.units[longest].words {
			longest = i
		}
	}
	if words < minDropped {
		return classified // not reported
	}
	return k.explain(longest)
}
