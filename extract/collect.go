package extract

import (
	"context"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// box is one block element with its word counts. Boxes are in document order. The boxes of a
// subtree follow the box of its root, up to end.
type box struct {
	n           *html.Node
	parent, end int32
	words       int32 // number of words in the subtree
	links       int32 // number of words inside links
	own         int32 // number of words outside of inner boxes
	ownLinks    int32
	anchors     int32 // number of links in the subtree
	ownAnchors  int32
	prose       int32     // number of words in paragraphs of the subtree, without links
	shape                 // characters of the text outside of inner boxes
	ownSign     uint64    // signature of the text outside of inner boxes; equal for equal texts
	sign        uint64    // signature of the text in the subtree
	tag         atom.Atom // copy of n.DataAtom, because n is slow to access on a large page
	flags       flags
	level       uint8  // highest rank of a heading in the subtree; 7 = none
	marked      bool   // a rule marks the box as content
	noAttrs     bool   // whether n has no attributes; copied for the same reason as tag
	drop        string // reason why the subtree is left out, or "" for content
}

// plain returns the number of words outside of links.
func (b *box) plain() int32 { return b.words - b.links }

type flags uint8

const (
	hasPager   flags = 1 << iota // links to the previous and next pages
	hasHeading                   // a heading below the first level
	hasTop                       // a heading of the first level
	hasBlock                     // code, a quote, a definition list
	inContent                    // inside main or article
	hasMain                      // main, article or their roles
	hasTable
)

// collected is the result of one pass over the tree.
type collected struct {
	ctx       context.Context
	html      *html.Node
	body      *html.Node
	base      *html.Node
	title     string       // text of the title element
	titleNode *html.Node   // the heading that is the page's title; set by meta
	heads     []*html.Node // meta and link elements, including those in the body
	jsons     []*html.Node // JSON-LD scripts, and meta elements with the same content
	passwords []*html.Node // the first password fields
	wants     bool         // an element asks readers to enable scripts

	references []reference    // targets of links, in document order
	referred   map[string]int // index of each target in references

	boxes      []box
	headings   []*html.Node    // h1 and h2
	props      []*html.Node    // elements with an itemprop or a rel=author
	tags       []*html.Node    // links with rel=tag
	refs       []*html.Node    // links to fragments with a short text, which may be footnote references
	controlled map[string]bool // ids of elements that controls on the page show or hide
	forms      []int32         // boxes of the first forms
	rules      *correction     // changes by rules. If nil, there are no rules.
	cuts       []cutting       // subtrees that rules removed
	keeping    int             // number of open elements that rules keep
	steps      int
	err        error
}

// collect visits a document to which rules were applied. rules may be nil.
func collect(ctx context.Context, doc *html.Node, rules *correction) (*collected, error) {
	c := &collected{ctx: ctx, rules: rules}
	for n := range children(doc) {
		c.html = n
		for b := range children(n) {
			switch b.DataAtom {
			case atom.Head:
				c.head(b)
			case atom.Body, atom.Frameset:
				c.body = b
			}
		}
	}
	if c.body == nil {
		c.body = &html.Node{Type: html.ElementNode, DataAtom: atom.Body, Data: "body"}
	}
	c.boxes = make([]box, 0, countBlocks(c.body)+1)
	c.visit(c.body, -1, false)
	if c.err == nil {
		c.sum()
	}
	return c, c.err
}

// countBlocks counts the block elements below an element.
func countBlocks(n *html.Node) int {
	count := 0
	for e := n.FirstChild; e != nil; e = e.NextSibling {
		if e.Type == html.ElementNode {
			if !isInline(e.DataAtom) {
				count++
			}
			count += countBlocks(e)
		}
	}
	return count
}

func (c *collected) head(n *html.Node) {
	for e := range children(n) {
		c.headElement(e)
		if e.DataAtom == atom.Noscript {
			c.head(e)
		}
	}
}

func (c *collected) headElement(e *html.Node) {
	switch e.DataAtom {
	case atom.Title:
		if c.title == "" && e.FirstChild != nil {
			c.title = folded(e.FirstChild.Data)
		}
	case atom.Meta, atom.Link:
		c.heads = append(c.heads, e)
		if e.DataAtom == atom.Meta && strings.Contains(attr(e, "name"), "ld+json") {
			c.jsons = append(c.jsons, e) // a framework writes JSON-LD scripts as meta elements
		}
		if rel := attr(e, "rel"); hasToken(rel, "next") || hasToken(rel, "prev") {
			c.refer(e, "href")
		}
	case atom.Base:
		if c.base == nil && attr(e, "href") != "" {
			c.base = e
		}
	case atom.Script:
		if strings.Contains(attr(e, "type"), "ld+json") {
			c.jsons = append(c.jsons, e)
		}
	}
}

// visit opens a box for a block element, and adds all text inside n to the boxes.
func (c *collected) visit(n *html.Node, parent int32, link bool) {
	if c.steps++; c.steps&0xFFF == 0 && c.err == nil {
		c.err = c.ctx.Err()
	}
	if c.err != nil {
		return
	}
	keep := c.rules != nil && c.rules.content[n]
	if keep {
		c.keeping++
	}
	at := parent
	if !isInline(n.DataAtom) {
		at = int32(len(c.boxes))
		b := box{n: n, parent: parent, tag: n.DataAtom, marked: c.keeping > 0, noAttrs: len(n.Attr) == 0}
		if parent >= 0 {
			b.flags = c.boxes[parent].flags & inContent
		}
		if n.DataAtom == atom.Main || n.DataAtom == atom.Article {
			b.flags |= inContent | hasMain
		} else if attr(n, "role") == "main" {
			b.flags |= hasMain
		}
		switch n.DataAtom {
		case atom.H1:
			b.flags |= hasTop
			c.addHeading(n)
		case atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
			b.flags |= hasHeading
			if n.DataAtom == atom.H2 {
				c.addHeading(n)
			}
		case atom.Pre, atom.Blockquote, atom.Dl:
			b.flags |= hasBlock
		case atom.Table:
			b.flags |= hasTable
		case atom.Form:
			if len(c.forms) < maxForms {
				c.forms = append(c.forms, at)
			}
		}
		c.boxes = append(c.boxes, b)
	}
	switch n.DataAtom {
	case atom.A:
		link = link || hasAttr(n, "href")
		c.anchor(n, at)
		c.refer(n, "href")
	case atom.Area:
		c.refer(n, "href")
	case atom.Frame:
		c.refer(n, "src")
	}
	for i := range n.Attr {
		switch n.Attr[i].Key {
		case "itemprop":
			c.props = append(c.props, n)
		case "aria-controls":
			c.control(n)
		}
	}
	for e := n.FirstChild; e != nil; e = e.NextSibling {
		switch e.Type {
		case html.TextNode:
			w := wordCount(e.Data)
			c.boxes[at].own += w
			c.boxes[at].shape.add(e.Data)
			if w > 0 {
				c.boxes[at].ownSign = sign(c.boxes[at].ownSign, e.Data)
			}
			if link {
				c.boxes[at].ownLinks += w
			}
		case html.CommentNode:
			if c.rules != nil && c.rules.cuts[e] != nil {
				c.cuts = append(c.cuts, cutting{c.rules.cuts[e], int32(len(c.boxes))})
			}
		case html.ElementNode:
			if e.DataAtom == atom.Button {
				c.control(e)
			}
			if e.DataAtom == atom.Noscript && wantsScripts(e) {
				c.wants = true
				c.recordHidden(e)
				continue
			}
			if isNothing(e) || isInline(e.DataAtom) && isHidden(e) != "" {
				c.headElement(e)
				c.recordHidden(e)
				continue
			}
			if e.DataAtom == atom.Meta || e.DataAtom == atom.Link {
				c.headElement(e)
			}
			c.visit(e, at, link)
		}
	}
	if at != parent {
		c.boxes[at].end = int32(len(c.boxes))
	}
	if keep {
		c.keeping--
	}
}

// wantsScripts reports whether an element is only a notice that scripts are off.
func wantsScripts(n *html.Node) bool {
	text := plainText(n)
	if len(text) > 800 {
		return false
	}
	text = strings.ToLower(text)
	return strings.Contains(text, "javascript") || strings.Contains(text, "java script")
}

// addHeading records a heading, which may be the page's title, if it is one of the first 300.
func (c *collected) addHeading(n *html.Node) {
	if len(c.headings) < 300 {
		c.headings = append(c.headings, n)
	}
}

// control records the elements that n shows and hides.
func (c *collected) control(n *html.Node) {
	if id := attr(n, "aria-controls"); id != "" {
		if c.controlled == nil {
			c.controlled = map[string]bool{}
		}
		c.controlled[id] = true
	}
}

func (c *collected) anchor(n *html.Node, at int32) {
	c.boxes[at].ownAnchors++
	for i := range n.Attr {
		switch v := n.Attr[i].Val; n.Attr[i].Key {
		case "accesskey":
			if v == "n" || v == "p" { // next and previous: DocBook, Texinfo
				c.boxes[at].flags |= hasPager
			}
		case "rel":
			if hasToken(v, "next") || hasToken(v, "prev") || hasToken(v, "previous") {
				c.boxes[at].flags |= hasPager
			}
			if hasToken(v, "author") {
				c.props = append(c.props, n)
			}
			if hasToken(v, "tag") && len(c.tags) < maxTries {
				c.tags = append(c.tags, n)
			}
		case "href":
			if i := strings.IndexByte(v, '#'); i >= 0 && len(v) > i+1 && len(c.refs) < 5000 {
				if t := shortText(n); t != "" {
					c.refs = append(c.refs, n)
				}
			}
		}
	}
}

// shortText returns the text of a link if the text is no longer than a footnote mark, or else "".
func shortText(n *html.Node) string {
	var first string
	for e := n; e != nil; e = e.FirstChild {
		if s := e.NextSibling; s != nil && e != n && s.NextSibling != nil && s.NextSibling.NextSibling != nil {
			return "" // more than a mark in brackets
		}
		first = e.Data
		if e.Type == html.TextNode {
			break
		}
	}
	if len(first) > 24 {
		return ""
	}
	t := plainText(n)
	if len(t) > 12 {
		return ""
	}
	return t
}

// sum adds the counts of inner boxes that are not left out to the outer boxes.
func (c *collected) sum() {
	for i := range c.boxes {
		b := &c.boxes[i]
		b.level = 7
		if lv := tagLevel(b.tag); lv > 0 {
			b.level = uint8(lv)
		}
		b.words, b.links, b.anchors, b.prose = b.own, b.ownLinks, b.ownAnchors, 0
		b.sign = b.ownSign
		if b.tag == atom.P || b.tag == atom.Pre || b.tag == atom.Blockquote || b.tag == atom.Dd {
			b.prose = b.own - b.ownLinks
		}
	}
	for i := len(c.boxes) - 1; i > 0; i-- {
		b := &c.boxes[i]
		if b.drop != "" {
			continue
		}
		p := &c.boxes[b.parent]
		p.level = min(p.level, b.level)
		p.words += b.words
		p.links += b.links
		p.prose += b.prose
		p.anchors += b.anchors
		p.flags |= b.flags &^ inContent
		if b.words > 0 {
			p.sign = p.sign*31 + b.sign + 1
		}
	}
}

// maxSigned is the number of bytes of a text that enter its signature.
const maxSigned = 12

// sign adds a text to a signature: its length and its first bytes.
func sign(s uint64, text string) uint64 {
	text = strings.TrimSpace(text)
	s = s*1099511628211 + uint64(len(text))
	for i := range min(len(text), maxSigned) {
		s = (s ^ uint64(text[i])) * 1099511628211
	}
	return s
}
