package markdown

import (
	"bytes"
	"net/url"
	"strings"

	"github.com/yuin/goldmark/ast"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
)

// html writes raw HTML, with that which follows at once, and gives the last
// node that it has taken. What stands between an opening and a closing tag in
// Markdown is written as if there were no tags.
func (w *writer) html(n *ast.HTMLBlock) ast.Node {
	var b bytes.Buffer
	var last ast.Node = n
	for {
		b.WriteString(w.raw(n))
		if n.HasClosure() {
			b.Write(n.ClosureLine.Value(w.src))
		}
		b.WriteByte('\n')
		next, ok := n.NextSibling().(*ast.HTMLBlock)
		if !ok {
			break
		}
		n, last = next, next
	}
	w.flush()
	w.out = append(w.out, w.fragment(b.Bytes())...)
	return last
}

// fragment gives the blocks of HTML.
func (w *writer) fragment(source []byte) []millrace.Block {
	base := w.l.base
	if w.l.s.kind == Plain {
		base = w.l.own
	}
	blocks, err := extract.Fragment(w.ctx, source, base.String(), &extract.Options{Rules: w.l.s.rules})
	if err != nil {
		if w.err == nil {
			w.err = w.ctx.Err()
		}
		return nil
	}
	if w.l.s.kind == Plain {
		w.relink(blocks)
	}
	if w.inner > 0 {
		for i := range blocks {
			if b := &blocks[i]; b.Type == millrace.LinkBlock {
				*b = millrace.Block{Type: millrace.TextBlock, Text: b.Text, Spans: []millrace.Span{{Type: millrace.LinkSpan, End: len(b.Text), URL: b.URL}}}
			}
		}
	}
	return blocks
}

// relink makes links to files of the folder links to their pages.
func (w *writer) relink(blocks []millrace.Block) {
	spans := func(list []millrace.Span) {
		for i := range list {
			list[i].URL = w.page(list[i].URL)
		}
	}
	for i := range blocks {
		b := &blocks[i]
		b.URL = w.page(b.URL)
		spans(b.Spans)
		w.relink(b.Blocks)
		for i := range b.Items {
			spans(b.Items[i].Spans)
			w.relink(b.Items[i].Blocks)
		}
		for _, row := range b.Rows {
			for i := range row {
				spans(row[i].Spans)
			}
		}
	}
}

// page gives the URL of the page of a file that a URL names, other URLs as they
// are.
func (w *writer) page(u string) string {
	bare, fragment, ok := strings.Cut(u, "#")
	id := canon.Relative(w.l.s.base, bare)
	if !isMarkdown(bare) || !strings.HasPrefix(id, "/") {
		return u
	}
	name, err := url.PathUnescape(id)
	if err != nil {
		return u
	}
	page := w.l.document(name)
	if page == "" {
		return u
	}
	if ok {
		page += "#" + fragment
	}
	return page
}
