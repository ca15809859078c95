package commonmark

import (
	"bytes"

	"github.com/yuin/goldmark/ast"

	"github.com/millrace/millrace"
)

// html writes an HTML block together with the HTML blocks that directly follow it, and returns the
// last of them. If Markdown separates an opening tag from its closing tag, the tags have no effect.
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

// fragment returns the blocks of HTML. Inside items, link blocks become text.
func (w *writer) fragment(source []byte) []millrace.Block {
	if w.o.HTML == nil {
		return nil
	}
	blocks := w.o.HTML(w.ctx, source)
	if w.err == nil {
		w.err = w.ctx.Err()
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
