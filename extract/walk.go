package extract

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// walker converts the content to blocks in one walk.
type walker struct {
	ctx     context.Context
	c       *collected
	l       *located
	base    *url.URL
	pageURL string // absolute URL of the page

	in      inline
	out     []millrace.Block
	pending []millrace.Block // blocks found inside a line; they are added after its text
	flat    int              // nesting depth of headings, cells and captions, which cannot contain blocks
	inner   int              // nesting depth of items, where a link alone on its line is text and not a block
	depth   int              // number of open blocks
	notes   notes
	labels  map[*html.Node]label // labels of code blocks
	// listings contains the texts of boxes without a pre whose children are lines of code.
	listings map[*html.Node]string
	panels   map[*html.Node]string // tab names of the panels that contain more than a code block
	seen     map[string]bool       // images that were already emitted
	steps    int
	err      error

	texScripts int // 1: a script renders the TeX formulas of the page, -1: no script does, 0: unknown
}

func newWalker(ctx context.Context, c *collected, l *located, base *url.URL, pageURL string) *walker {
	w := &walker{ctx: ctx, c: c, l: l, base: base, pageURL: pageURL}
	w.notes = findNotes(c, l.root)
	for a := range w.notes.refs {
		trimBrackets(a)
	}
	w.findLabels()
	w.out = make([]millrace.Block, 0, l.countBlocks()+8)
	// Nested texts use the buffer after the outer text.
	w.in = inline{buf: make([]byte, 0, 4096), spans: make([]millrace.Span, 0, 32), open: make([]int, 0, 16)}
	return w
}

// countBlocks returns the approximate number of blocks of the content. Growing a long list of
// blocks is the most expensive part of the walk.
func (l *located) countBlocks() int {
	count := 1
	for i := l.at + 1; i < l.c.boxes[l.at].end; i++ {
		b := &l.c.boxes[i]
		if b.drop != "" {
			i = b.end - 1
			continue
		}
		switch b.tag {
		case atom.Li, atom.Td, atom.Th, atom.Dd, atom.Dt:
			i = b.end - 1 // it becomes part of its parent's block
		case atom.Ul, atom.Ol, atom.Dl, atom.Table, atom.Blockquote, atom.Figure:
			count++
		default:
			if b.own > 0 {
				count++
			}
		}
	}
	return count
}

func (w *walker) run(root *html.Node) ([]millrace.Block, error) {
	w.children(root)
	w.flush()
	if w.err != nil || len(w.out) == 0 {
		return nil, w.err
	}
	return w.out, nil
}

// flush ends the current line of text.
func (w *walker) flush() {
	if w.flat > 0 {
		w.in.breaks = max(w.in.breaks, 1)
		return
	}
	if !w.in.empty() {
		if text, spans := w.in.take(); text != "" {
			w.out = append(w.out, w.textBlock(text, spans))
		}
	}
	w.in.space, w.in.breaks = false, 0
	if len(w.pending) > 0 {
		w.out = append(w.out, w.pending...)
		w.pending = w.pending[:0]
	}
}

func (w *walker) textBlock(text string, spans []millrace.Span) millrace.Block {
	if w.inner == 0 && len(spans) == 1 && spans[0].Type == millrace.LinkSpan && spans[0].End-spans[0].Start == len(text) {
		return millrace.Block{Type: millrace.LinkBlock, URL: spans[0].URL, Text: text}
	}
	return millrace.Block{Type: millrace.TextBlock, Text: text, Spans: spans}
}

// emit adds a block that interrupts the line. Where blocks are not allowed, the block is added
// after the line.
func (w *walker) emit(b millrace.Block) {
	if w.flat > 0 {
		w.pending = append(w.pending, b)
		return
	}
	w.flush()
	w.out = append(w.out, b)
}

// addAfterLine adds a block that does not interrupt the line.
func (w *walker) addAfterLine(b millrace.Block) {
	if w.in.empty() && w.flat == 0 {
		w.out = append(w.out, b)
		return
	}
	w.pending = append(w.pending, b)
}

// inside returns the blocks that f emits.
func (w *walker) inside(f func()) []millrace.Block {
	return slices.Clone(w.within(f))
}

// within is like inside, for a caller that does not retain the blocks. Blocks are large, so they
// use the space after the parent's blocks, which the parent's next block overwrites.
func (w *walker) within(f func()) []millrace.Block {
	in, out, pending, flat := w.in, slices.Grow(w.out, 4), w.pending, w.flat
	w.in, w.out, w.pending, w.flat = in.fork(), out[len(out):], nil, 0
	w.depth++
	f()
	w.depth--
	w.flush()
	made := w.out
	w.in, w.out, w.pending, w.flat = in, out, pending, flat
	return made
}

// maxNesting is the maximum nesting depth of blocks. The content of deeper blocks is added to the
// innermost block. No text needs such a depth, and in some output formats every line repeats the
// marks of its ancestors.
const maxNesting = 32

// tooDeep reports whether the nesting is too deep for another block. If so, it walks n without
// opening a block.
func (w *walker) tooDeep(n *html.Node) bool {
	if w.depth < maxNesting {
		return false
	}
	w.flush()
	w.children(n)
	w.flush()
	return true
}

// item returns the output of f as an item: its leading text becomes the text of the item.
func (w *walker) item(f func()) millrace.Item {
	w.inner++
	blocks := w.within(f)
	w.inner--
	if len(blocks) == 0 {
		return millrace.Item{}
	}
	if blocks[0].Type != millrace.TextBlock {
		return millrace.Item{Blocks: slices.Clone(blocks)}
	}
	it := millrace.Item{Text: blocks[0].Text, Spans: blocks[0].Spans}
	if len(blocks) > 1 {
		it.Blocks = slices.Clone(blocks[1:])
	}
	return it
}

// line returns the text that f emits, in one line. Media in the line are added after the block to
// which the line belongs.
func (w *walker) line(f func()) (string, []millrace.Span) {
	in := w.in
	w.in = in.fork()
	w.flat++
	f()
	w.flat--
	text, spans := w.in.take()
	w.in = in
	return text, spans
}

func (w *walker) children(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		w.node(c)
	}
}

func (w *walker) node(n *html.Node) {
	if w.steps++; w.steps&0xFFF == 0 && w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err != nil {
		return
	}
	switch n.Type {
	case html.TextNode:
		w.textNode(n.Data)
	case html.ElementNode:
		w.element(n)
	}
}

func (w *walker) element(n *html.Node) {
	if w.l.skip[n] {
		return
	}
	if w.notes.defs != nil {
		if note := w.notes.defs[n]; note != nil && w.flat == 0 {
			w.footnote(n, note)
			return
		}
		if w.notes.back[n] {
			return
		}
	}
	if w.mathElement(n) || isNothing(n) && !w.replaced(n) {
		return
	}
	a := n.DataAtom
	if isInline(a) {
		if isHidden(n) == "" {
			w.inlineElement(n)
		}
		return
	}
	if w.flat > 0 {
		w.flatElement(n)
		return
	}
	switch a {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.heading(n, headingLevel(n))
	case atom.Ul, atom.Ol, atom.Menu, atom.Dir:
		if a == atom.Ol && w.lines(n) {
			return
		}
		w.list(n)
	case atom.Dl:
		w.definitions(n)
	case atom.Pre, atom.Listing, atom.Xmp, atom.Plaintext:
		w.code(n)
	case atom.Table:
		w.table(n)
	case atom.Blockquote:
		if kind := calloutKind(n); kind != "" {
			w.callout(n, kind)
			return
		}
		w.quote(n)
	case atom.Figure:
		w.figure(n)
	case atom.Video, atom.Audio:
		w.media(n)
	case atom.Iframe, atom.Embed:
		w.embed(n)
	case atom.Hr:
		w.flush()
	case atom.Div, atom.Aside, atom.Section, atom.Details:
		if n.DataAtom == atom.Div {
			switch {
			case w.lines(n):
				return
			case isFigure(n), isFormal(n):
				w.figure(n)
				return
			case w.grid(n), w.facade(n):
				return
			}
		}
		if kind := calloutKind(n); kind != "" {
			w.callout(n, kind)
			return
		}
		if attr(n, "role") == "heading" {
			if lv, err := strconv.Atoi(attr(n, "aria-level")); err == nil && lv > 0 && lv < 7 {
				w.heading(n, lv)
				return
			}
		}
		fallthrough
	default:
		w.flush()
		if t := w.panels[n]; t != "" {
			w.out = append(w.out, millrace.Block{Type: millrace.TextBlock, Text: t, Spans: []millrace.Span{{Type: millrace.StrongSpan, End: len(t)}}})
		}
		w.children(n)
		w.flush()
	}
}

// replaced reports whether the walk emits a block for an element without text.
func (w *walker) replaced(n *html.Node) bool { return n.DataAtom == atom.Iframe }

// flatElement walks a block element where blocks are not allowed.
func (w *walker) flatElement(n *html.Node) {
	switch n.DataAtom {
	case atom.Video, atom.Audio:
		w.media(n)
		return
	case atom.Iframe, atom.Embed:
		w.embed(n)
		return
	}
	w.flush()
	switch n.DataAtom {
	case atom.Pre:
		opened := w.in.start(millrace.CodeSpan, "")
		w.in.pre = true
		w.in.text(strings.Trim(codeText(n), "\n"))
		w.in.pre = false
		if opened {
			w.in.end()
		}
	default:
		w.children(n)
	}
	w.flush()
}

func (w *walker) inlineElement(n *html.Node) {
	if w.isApart(n) {
		w.in.space = true
	}
	switch n.DataAtom {
	case atom.A:
		w.link(n)
	case atom.Code, atom.Kbd, atom.Samp, atom.Tt:
		if findTag(n, atom.Pre) != nil {
			w.children(n) // a code element around a code block has no meaning
			return
		}
		if w.flat == 0 && w.in.empty() && isCodeBlock(n) {
			w.listing(n)
			return
		}
		w.span(n, millrace.CodeSpan)
	case atom.Em, atom.I, atom.Cite, atom.Dfn, atom.Var:
		w.span(n, millrace.EmphasisSpan)
	case atom.Strong, atom.B:
		w.span(n, millrace.StrongSpan)
	case atom.Br:
		w.lineBreak()
	case atom.Img, atom.Picture:
		w.image(n)
	case atom.Noscript:
		w.noscript(n)
	case atom.Q:
		w.in.text("“")
		w.children(n)
		w.in.text("”")
	case atom.Rt: // the pronunciation of the text before it
		w.in.text("(")
		w.children(n)
		w.in.text(")")
	case atom.Wbr, atom.Rp:
	case atom.Sup, atom.Sub:
		w.script(n)
	case atom.Object:
		w.object(n)
	case 0:
		if n.Data == "amp-img" {
			w.image(n)
			return
		}
		if w.facade(n) {
			return
		}
		custom := strings.Contains(n.Data, "-") && !strings.HasPrefix(n.Data, "mjx-")
		w.in.space = w.in.space || custom
		w.children(n)
		w.in.space = w.in.space || custom
	default:
		w.children(n)
	}
}

func (w *walker) span(n *html.Node, t millrace.SpanType) {
	opened := w.in.start(t, "")
	w.children(n)
	if opened {
		w.in.end()
	}
}

// lineBreak handles a br element. Two br elements in a row end a paragraph.
func (w *walker) lineBreak() {
	w.in.breaks++
	if w.in.breaks > 1 {
		w.flush()
	}
}

// script marks superscripts and subscripts, except note marks and the letters of ordinals, whose
// meaning does not depend on their position.
func (w *walker) script(n *html.Node) {
	t := millrace.SuperscriptSpan
	if n.DataAtom == atom.Sub {
		t = millrace.SubscriptSpan
	}
	if isLineText(plainText(n)) {
		w.children(n)
		return
	}
	if w.notes.refs != nil && find(n, func(c *html.Node) bool { _, ok := w.notes.refs[c]; return ok }) != nil {
		w.children(n)
		return
	}
	w.span(n, t)
}

// isLineText reports whether a superscript has the same meaning as normal text.
func isLineText(s string) bool {
	switch strings.ToLower(s) {
	case "st", "nd", "rd", "th", "er", "re", "e", "ème", "tm", "sm", "™", "®", "©", "*", "†":
		return true
	}
	return false
}
