package commonmark

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// inlines writes the text of a node.
func (w *writer) inlines(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if raw, ok := c.(*ast.RawHTML); ok {
			c = w.rawHTML(raw)
			continue
		}
		w.inlineNode(c)
	}
}

func (w *writer) inlineNode(n ast.Node) {
	if w.steps++; w.steps&0xFFF == 0 && w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err != nil {
		return
	}
	switch n := n.(type) {
	case *ast.Text:
		w.text(n)
	case *ast.String:
		if n.IsCode() || n.IsRaw() {
			w.line.exact(string(n.Value))
		} else {
			w.line.text(unescaped(n.Value))
		}
	case *ast.CodeSpan:
		opened := w.line.start(millrace.CodeSpan, "")
		w.line.exact(w.codeText(n))
		if opened {
			w.line.end()
		}
	case *ast.Emphasis:
		kind := millrace.EmphasisSpan
		if n.Level == 2 {
			kind = millrace.StrongSpan
		}
		w.span(n, kind, "")
	case *ast.Link:
		w.link(n)
	case *ast.AutoLink:
		target, label := string(n.URL(w.src)), string(n.Label(w.src))
		if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(target), "mailto:") {
			target = "mailto:" + target
		}
		u := w.o.Link(target)
		opened := u != "" && w.line.start(millrace.LinkSpan, u)
		w.line.text(label)
		if opened {
			w.line.end()
		}
	case *ast.Image:
		w.image(n)
	case *tex:
		if w.line.start(millrace.MathSpan, "") {
			w.line.text(n.source)
			w.line.end()
		}
	case *east.FootnoteLink:
		if w.line.start(millrace.FootnoteSpan, footnoteAnchor(n.Index)) {
			w.line.exact(fmt.Sprintf("[%d]", n.Index))
			w.line.end()
		}
	case *east.FootnoteBacklink, *east.TaskCheckBox:
	default:
		w.inlines(n)
	}
}

func (w *writer) span(n ast.Node, kind millrace.SpanType, url string) {
	opened := w.line.start(kind, url)
	w.inlines(n)
	if opened {
		w.line.end()
	}
}

// attributes matches the attributes that follow a link, an image or code in some dialects.
var attributes = regexp.MustCompile(`^\{(?::\s*|\s*[.#]|\s*[a-z-]+=)[^{}\n]*\}`)

func (w *writer) text(n *ast.Text) {
	segment := n.Segment
	value := segment.Value(w.src)
	if len(value) > 0 && value[0] == '{' && w.o.Attributes {
		switch n.PreviousSibling().(type) {
		case *ast.Link, *ast.Image, *ast.CodeSpan, *ast.Emphasis:
			w.gone = segment.Start + len(attributes.Find(w.src[segment.Start:min(len(w.src), segment.Start+500)]))
		}
	}
	if segment.Start < w.gone {
		value = value[min(len(value), w.gone-segment.Start):]
	}
	if n.IsRaw() {
		w.line.text(string(value))
	} else {
		w.line.text(unescaped(value))
	}
	switch {
	case n.HardLineBreak():
		w.line.breaks = true
	case n.SoftLineBreak():
		w.line.space = true
	}
}

// codeText returns the code of a span with line ends as spaces.
func (w *writer) codeText(n *ast.CodeSpan) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(bytes.ReplaceAll(t.Segment.Value(w.src), []byte("\n"), []byte(" ")))
		}
	}
	return visibleCode(b.String())
}

// visibleCode removes control characters except tabs.
func visibleCode(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' {
			return -1
		}
		return r
	}, s)
}

func (w *writer) link(n *ast.Link) {
	u := ""
	if len(n.Destination) <= canon.MaxURL { // many links may share one definition, so a long URL could multiply
		u = w.o.Link(unescaped(n.Destination))
	}
	if u == "" {
		w.inlines(n)
		return
	}
	w.span(n, millrace.LinkSpan, u)
}

// image adds the block of an image, or of a video or audio in the syntax of an image.
func (w *writer) image(n *ast.Image) {
	src := ""
	if len(n.Destination) <= canon.MaxURL {
		src = w.o.Resource(unescaped(n.Destination))
	}
	if src == "" || strings.HasPrefix(src, "data:") {
		return
	}
	title := strings.Join(strings.Fields(unescaped(n.Title)), " ")
	switch name, _, _ := strings.Cut(src, "?"); strings.ToLower(path.Ext(name)) {
	case ".mp4", ".webm", ".ogv", ".mov", ".m4v":
		w.addAfterLine(millrace.Block{Type: millrace.VideoBlock, URL: src, Caption: title})
		return
	case ".mp3", ".ogg", ".oga", ".wav", ".flac", ".m4a", ".opus":
		w.addAfterLine(millrace.Block{Type: millrace.AudioBlock, URL: src, Caption: title})
		return
	}
	b := millrace.Block{Type: millrace.ImageBlock, URL: src, Caption: title}
	line := w.line
	w.line = textLine{}
	pending := w.pending
	w.flat++
	w.inlines(n)
	w.flat--
	b.Alt, _ = w.line.take()
	b.Alt = strings.ReplaceAll(b.Alt, "\n", " ")
	w.line, w.pending = line, pending
	w.addAfterLine(b)
}

// rawHTML writes an inline tag, or the element that it starts, and returns the last node that it
// wrote.
func (w *writer) rawHTML(n *ast.RawHTML) ast.Node {
	source := w.segments(n)
	z := html.NewTokenizer(bytes.NewReader(source))
	kind := z.Next()
	if kind != html.StartTagToken && kind != html.SelfClosingTagToken && kind != html.EndTagToken {
		return n // not a tag, such as a comment
	}
	t := z.Token()
	switch t.DataAtom {
	case atom.Br:
		w.line.breaks = true
		return n
	case atom.Wbr:
		return n
	case atom.Img:
		w.addAfterLine(w.fragment(source)...)
		return n
	}
	if kind != html.StartTagToken {
		return n
	}
	switch t.DataAtom {
	case atom.Video, atom.Audio, atom.Iframe, atom.Picture, atom.Svg, atom.Math, atom.Object, atom.Script, atom.Style:
		last, element := w.until(n, t.Data)
		if last == nil {
			return n
		}
		for _, b := range w.fragment(element) {
			if b.Type == millrace.TextBlock {
				w.line.text(b.Text)
			} else {
				w.addAfterLine(b)
			}
		}
		return last
	}
	kinds := map[atom.Atom]millrace.SpanType{
		atom.B: millrace.StrongSpan, atom.Strong: millrace.StrongSpan, atom.I: millrace.EmphasisSpan, atom.Em: millrace.EmphasisSpan,
		atom.Cite: millrace.EmphasisSpan, atom.Dfn: millrace.EmphasisSpan, atom.Var: millrace.EmphasisSpan,
		atom.Code: millrace.CodeSpan, atom.Kbd: millrace.CodeSpan, atom.Samp: millrace.CodeSpan, atom.Tt: millrace.CodeSpan,
		atom.Sub: millrace.SubscriptSpan, atom.Sup: millrace.SuperscriptSpan,
	}
	kindOf, is := kinds[t.DataAtom]
	url := ""
	if t.DataAtom == atom.A {
		for _, a := range t.Attr {
			if a.Key == "href" {
				url = w.o.Link(a.Val)
			}
		}
		kindOf, is = millrace.LinkSpan, url != ""
	}
	if !is {
		return n
	}
	end := w.closing(n, t.Data)
	if end == nil {
		return n
	}
	opened := w.line.start(kindOf, url)
	limit := w.limit
	w.limit = end
	for c := n.NextSibling(); c != end; c = c.NextSibling() {
		if raw, ok := c.(*ast.RawHTML); ok {
			c = w.rawHTML(raw)
			continue
		}
		w.inlineNode(c)
	}
	w.limit = limit
	if opened {
		w.line.end()
	}
	return end
}

func (w *writer) segments(n *ast.RawHTML) []byte {
	var b []byte
	for i := range n.Segments.Len() {
		s := n.Segments.At(i)
		b = append(b, s.Value(w.src)...)
	}
	return b
}

// closing returns the tag that ends an element, within a limited distance, or nil. It counts
// nested elements of the same name.
func (w *writer) closing(n *ast.RawHTML, name string) *ast.RawHTML {
	depth, steps := 1, 0
	for c := n.NextSibling(); c != nil && c != w.limit && steps < 100; c, steps = c.NextSibling(), steps+1 {
		raw, ok := c.(*ast.RawHTML)
		if !ok || raw.Segments.Len() == 0 {
			continue
		}
		first := raw.Segments.At(0)
		s, end := bytes.CutPrefix(bytes.TrimPrefix(first.Value(w.src), []byte("<")), []byte("/"))
		if len(s) <= len(name) || !strings.EqualFold(string(s[:len(name)]), name) || strings.IndexByte(" \t\n/>", s[len(name)]) < 0 {
			continue
		}
		if !end {
			depth++
		} else if depth--; depth == 0 {
			return raw
		}
	}
	return nil
}

// until returns the source of an element with its contents, and its last node, or nil if the
// element does not end.
func (w *writer) until(n *ast.RawHTML, name string) (ast.Node, []byte) {
	end := w.closing(n, name)
	if end == nil || n.Segments.Len() == 0 {
		return nil, nil
	}
	from, to := n.Segments.At(0).Start, end.Segments.At(end.Segments.Len()-1).Stop
	if from > to || to > len(w.src) {
		return nil, nil
	}
	return end, w.src[from:to]
}
