package extract

import (
	"errors"
	"math"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// located is the result of locate: the root of the content, and the subtrees below it that are left
// out.
type located struct {
	c       *collected
	at      int32 // index of the root's box
	from    int32 // index of the box where the walk begins; rules can make it differ from at
	root    *html.Node
	skip    map[*html.Node]bool // subtrees that the walk skips
	dropped []Dropped
	kind    millrace.PageKind
	login   bool
	// protected reports whether the page is a password-protected post of WordPress.
	protected bool
	consent   bool                // the page contains little more than the elements of a consent tool
	why       error               // reason why there is no content. If nil, there may be content.
	thread    bool                // comments are the content of the page
	own       *html.Node          // the root that was located, if the walk begins at another element
	keeps     bool                // some rule keeps elements
	partial   map[*html.Node]bool // subtrees that the walk skips except for the elements that a rule keeps
	retained  []Kept
	carded    int32 // index of the box after the last author's card
	total     box   // the body before anything was left out
}

// minDropped is the minimum number of words of a dropped subtree that is reported.
const minDropped = 10

// locate finds the content. The first pass leaves out boilerplate by tag and role. The second
// descends to the root. The third leaves out link lists and similar subtrees inside the root.
func locate(c *collected, m *meta) *located {
	l := &located{c: c, skip: map[*html.Node]bool{}, total: c.boxes[0], kind: m.guess}
	if m.list >= likeList {
		l.kind = millrace.Archive
	}
	l.prune()
	c.sum()
	l.login = l.isLogin(m)
	if l.why = l.wall(m); l.why == nil {
		l.at = l.descend()
		l.trim()
		l.sections()
		l.repeats()
		l.classify()
	}
	l.from = l.at
	l.root = c.boxes[l.at].n
	if l.why != nil {
		c.boxes[0].drop = l.why.Error()
	}
	l.leaveOut()
	return l
}

// besideRoot returns the boxes with text that are left out only because they are siblings of the
// root or of its ancestors.
func (l *located) besideRoot() map[int32]bool {
	boxes := l.c.boxes
	found := map[int32]bool{}
	for at := l.at; at > 0 && l.why == nil; at = boxes[at].parent {
		p := boxes[at].parent
		for i := p + 1; i < boxes[p].end && len(found) < maxReported; i = boxes[i].end {
			if b := &boxes[i]; i != at && b.drop == "" && b.words >= minDropped && b.n != l.c.titleNode {
				found[i] = true
			}
		}
	}
	return found
}

func (l *located) selector() string {
	if l.own != nil {
		return selector(l.own)
	}
	return selector(l.root)
}

func (l *located) emptyReason() error {
	switch {
	case l.why != nil:
		return l.why
	case l.total.words == 0 && len(l.dropped) == 0:
		if l.c.body.DataAtom == atom.Frameset {
			return errFrames
		}
		return errNoText
	case len(l.dropped) > 0:
		most := slices.MaxFunc(l.dropped, func(a, b Dropped) int { return a.Words - b.Words })
		return millrace.Coded("all-dropped", errors.New("all content was left out, mostly by "+most.Reason))
	}
	return errNoWords
}

// prune marks the subtrees that are boilerplate by their tag, role or position.
func (l *located) prune() {
	boxes := l.c.boxes
	for i := int32(1); i < int32(len(boxes)); {
		b := &boxes[i]
		if b.drop == "" {
			b.drop = l.boilerplate(b)
		}
		if b.drop == "" && l.kind == millrace.Forum {
			b.drop = l.post(i)
		}
		if b.drop != "" {
			i = b.end
			continue
		}
		i++
	}
}

func sibling(n *html.Node, next bool) *html.Node {
	for n != nil {
		if next {
			n = n.NextSibling
		} else {
			n = n.PrevSibling
		}
		if n != nil && n.Type == html.ElementNode {
			return n
		}
	}
	return nil
}

// isContainer reports whether an element may group other elements.
func isContainer(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Div, atom.Section, atom.Article, atom.Main, atom.Td, atom.Center, atom.Table, atom.Tbody, atom.Tr, atom.Ul, atom.Ol,
		atom.Aside, atom.P, atom.Form, atom.Fieldset, atom.Dl, atom.Header, atom.Footer, atom.Nav, atom.Details, atom.Body:
		return true
	}
	return n.DataAtom == 0
}

func isAncestor(a, n *html.Node) bool {
	for ; n != nil; n = n.Parent {
		if n == a {
			return true
		}
	}
	return false
}

// descend finds the root: the main element or the article if it contains the text, else the
// innermost container that contains the text.
func (l *located) descend() int32 {
	boxes := l.c.boxes
	at := int32(0)
	if i := l.largest(at, func(b *box) bool { return b.tag == atom.Main || !b.noAttrs && attr(b.n, "role") == "main" }); i > 0 &&
		(boxes[i].plain()*4 >= boxes[at].plain() || l.kind == millrace.Documentation && isAncestor(boxes[i].n, l.c.titleNode)) {
		at = i
	}
	if i := l.largest(at, func(b *box) bool { return b.tag == atom.Article || !b.noAttrs && attr(b.n, "role") == "article" }); i > 0 && boxes[i].plain()*2 >= boxes[at].plain() {
		at = i
	}
	for {
		next := l.dominant(at)
		if next < 0 {
			return at
		}
		at = next
	}
}

// largest returns the outermost box below at for which ok is true, or the one with the most text if
// there are several, or 0.
func (l *located) largest(at int32, ok func(*box) bool) int32 {
	boxes := l.c.boxes
	best := int32(0)
	for i := at + 1; i < boxes[at].end; {
		b := &boxes[i]
		switch {
		case b.drop != "":
			i = b.end
			continue
		case ok(b):
			if best == 0 || b.plain() > boxes[best].plain() {
				best = i
			}
			i = b.end
			continue
		}
		i++
	}
	return best
}

// dominant returns the child that contains nearly all text of a box and may become the root in its
// place, or -1.
func (l *located) dominant(at int32) int32 {
	boxes := l.c.boxes
	cur := &boxes[at]
	text := (*box).plain
	if cur.links*2 > cur.words {
		text = func(b *box) int32 { return b.words } // on a page of links, all words count
	}
	if !isContainer(cur.n) || text(cur) == 0 {
		return -1
	}
	best := int32(-1)
	for i := at + 1; i < cur.end; i = boxes[i].end {
		b := &boxes[i]
		if b.drop == "" && (best < 0 || text(b) > text(&boxes[best])) {
			best = i
		}
	}
	if best < 0 {
		return -1
	}
	b := &boxes[best]
	if !isContainer(b.n) || b.n.DataAtom == atom.P || b.n.DataAtom == atom.Ul || b.n.DataAtom == atom.Ol || b.n.DataAtom == atom.Dl ||
		b.n.DataAtom == atom.Details || text(b)*4 < text(cur)*3 || (cur.own-cur.ownLinks)*20 > cur.plain() {
		return -1
	}
	if b.n.DataAtom == atom.Table && !isLayoutTable(b.n) {
		return -1
	}
	if t := l.c.titleNode; l.kind == millrace.Documentation && t != nil && isAncestor(cur.n, t) && !isAncestor(b.n, t) {
		return -1 // the title is outside of the child, possibly with a table of contents
	}
	// The omitted parts must not belong to the same text: no paragraphs next to the child, and no
	// heading that ranks above all headings in the child.
	for i := at + 1; i < cur.end; i = boxes[i].end {
		s := &boxes[i]
		if i == best || s.drop != "" {
			continue
		}
		switch s.tag {
		case atom.P, atom.Pre, atom.Blockquote, atom.Dl, atom.Figure, atom.Ul, atom.Ol:
			if s.plain() >= 5 {
				return -1
			}
		}
		if s.prose >= 40 && i < best {
			return -1
		}
		if lv := l.ownLevel(i); lv > 0 && (lv < int(b.level) || lv == int(b.level) && (l.kind == millrace.Documentation || sameForm(s.n, b.n))) && s.plain() > 0 {
			return -1
		}
	}
	return best
}

// sameForm reports whether two elements look like parts of the same text.
func sameForm(a, b *html.Node) bool {
	class := attr(a, "class")
	return a.DataAtom == b.DataAtom && class != "" && class == attr(b, "class")
}

// ownLevel returns the highest rank of a heading inside a box, ignoring the page's title and
// headings that are links, or 0.
func (l *located) ownLevel(at int32) int {
	best := 0
	for i := at; i < l.c.boxes[at].end; i++ {
		b := &l.c.boxes[i]
		if lv := tagLevel(b.tag); lv > 0 && b.drop == "" && b.n != l.c.titleNode && b.plain() > 0 && (best == 0 || lv < best) {
			best = lv
		}
	}
	return best
}

// trim marks boilerplate inside the root: groups that consist mostly of links, and groups whose
// class names boilerplate and whose form does not contradict it. If a class word for small elements
// would remove a large part of the text, trim ignores the word. For example, all entries of a list
// may have the class "meta".
func (l *located) trim() {
	root := &l.c.boxes[l.at]
	t := trimmer{l: l, root: root, by: map[string]int32{}, lists: math.MaxInt32}
	switch {
	case l.kind == millrace.Documentation:
		t.lists = l.at
		for i := l.at + 1; i < root.end && t.lists == l.at; i++ {
			if b := &l.c.boxes[i]; tagLevel(b.tag) > 0 && b.drop == "" {
				t.lists = i
			}
		}
	case l.kind == millrace.Archive, root.links*2 > root.words:
		t.lists = l.at
	}
	t.within(l.at+1, root.end)
	var again []int32
	for _, i := range t.classed {
		b := &l.c.boxes[i]
		if word := strings.TrimPrefix(b.drop, classReason); t.by[b.drop]*5 > root.words && !boilerplateWords[word] {
			t.not = append(t.not, word)
			again = append(again, i)
		}
	}
	for _, i := range again {
		l.c.boxes[i].drop = ""
		t.within(i, l.c.boxes[i].end)
	}
}

const classReason = "class "

type trimmer struct {
	l       *located
	root    *box
	lists   int32            // lists of links after this box are content
	classed []int32          // boxes with a boilerplate word in their class
	by      map[string]int32 // number of words left out for each reason
	not     []string         // class words that are ignored on this page
}

func (t *trimmer) within(i, end int32) {
	for i < end {
		b := &t.l.c.boxes[i]
		if b.drop == "" {
			if b.drop = t.l.trimmed(b, t.root, i > t.lists, t.not); strings.HasPrefix(b.drop, classReason) {
				t.by[b.drop] += b.words
				t.classed = append(t.classed, i)
			}
		}
		if b.drop != "" {
			i = b.end
			continue
		}
		i++
	}
}

func (l *located) trimmed(b, root *box, links bool, not []string) string {
	n := b.n
	if b.words == 0 || b.words*2 > root.words {
		return ""
	}
	switch b.tag {
	case atom.Div, atom.Section, atom.Ul, atom.Ol, atom.Aside, atom.Table, atom.P, atom.Dl, 0:
	default:
		return ""
	}
	if !links && (l.kind != "" && l.kind != millrace.Collection || b.words < 10*b.anchors) && b.anchors >= 3 && b.links*4 >= b.words*3 && b.prose < 15 && b.flags&hasBlock == 0 && b.tag != atom.P && b.tag != atom.Table {
		return "links"
	}
	if b.links == b.words && b.words <= 5*b.anchors && find(n, func(e *html.Node) bool { return e.DataAtom == atom.A && !isButton(e) }) == nil {
		return "buttons"
	}
	if b.noAttrs {
		return ""
	}
	if word := boilerplateClass(n); word != "" && !slices.Contains(not, word) && calloutKind(n) == "" && (word != "toc" || !links) && b.prose*3 < root.prose+1 && (b.links*3 >= b.words || b.prose*2 < b.words || b.words < 30) {
		return classReason + word
	}
	return ""
}

// isButton reports whether a link has the class of a button.
func isButton(n *html.Node) bool {
	class := strings.ToLower(attr(n, "class"))
	return strings.Contains(class, "button") || strings.Contains(class, "btn")
}
