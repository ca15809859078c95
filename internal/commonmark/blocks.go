package commonmark

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"

	"github.com/millrace/millrace"
)

// writer converts a parsed text to blocks.
type writer struct {
	ctx context.Context
	o   *Options
	src []byte

	line    textLine
	out     []millrace.Block
	pending []millrace.Block // blocks found inside the current line; they follow its text
	flat    int              // nesting of headings and cells, which contain no blocks
	inner   int              // nesting of items, where a link alone on its line is text and not a block
	depth   int
	limit   ast.Node // end tag of the enclosing inline element, where searches for end tags stop
	gone    int      // offset in the source of the first byte that may be text
	steps   int
	err     error
}

// flush ends the current line of text.
func (w *writer) flush() {
	if w.flat > 0 {
		w.line.breaks = true
		return
	}
	if text, spans := w.line.take(); text != "" {
		if w.inner == 0 && len(spans) == 1 && spans[0].Type == millrace.LinkSpan && spans[0].Start == 0 && spans[0].End == len(text) {
			w.out = append(w.out, millrace.Block{Type: millrace.LinkBlock, URL: spans[0].URL, Text: text})
		} else {
			w.out = append(w.out, millrace.Block{Type: millrace.TextBlock, Text: text, Spans: spans})
		}
	}
	if len(w.pending) > 0 {
		w.out = append(w.out, w.pending...)
		w.pending = nil
	}
}

// addAfterLine adds blocks after the current line, without interrupting it.
func (w *writer) addAfterLine(b ...millrace.Block) {
	if w.line.empty() && w.flat == 0 {
		w.out = append(w.out, b...)
		return
	}
	w.pending = append(w.pending, b...)
}

// inside returns the blocks that f emits.
func (w *writer) inside(f func()) []millrace.Block {
	line, out, pending, flat := w.line, w.out, w.pending, w.flat
	w.line, w.out, w.pending, w.flat = textLine{}, nil, nil, 0
	f()
	w.flush()
	made := w.out
	w.line, w.out, w.pending, w.flat = line, out, pending, flat
	return made
}

// lineOf returns the text of a node as one line, and its spans. Media in the node will follow the
// line's block.
func (w *writer) lineOf(n ast.Node) (string, []millrace.Span) {
	line := w.line
	w.line = textLine{}
	w.flat++
	w.inlines(n)
	w.flat--
	text, spans := w.line.take()
	w.line = line
	return text, spans
}

// after adds the pending blocks of a line, after the line's block.
func (w *writer) after() {
	w.out = append(w.out, w.pending...)
	w.pending = nil
}

func (w *writer) children(n ast.Node) {
	for c := n.FirstChild(); c != nil && w.err == nil; c = c.NextSibling() {
		if h, ok := c.(*ast.HTMLBlock); ok {
			c = w.html(h)
			continue
		}
		w.block(c)
	}
}

// block writes one block. At the depth limit, its contents follow it as siblings.
func (w *writer) block(n ast.Node) {
	if w.steps++; w.steps&0xFF == 0 && w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err != nil {
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > MaxDepth {
		switch n.(type) {
		case *ast.Blockquote, *ast.List, *ast.ListItem, *east.DefinitionList, *east.DefinitionDescription, *insertion:
			w.flush()
			w.children(n)
			return
		}
	}
	switch n := n.(type) {
	case *ast.Heading:
		w.heading(n)
	case *ast.List:
		w.list(n)
	case *ast.FencedCodeBlock:
		info := ""
		if n.Info != nil {
			info = unescaped(n.Info.Segment.Value(w.src))
		}
		w.code(w.raw(n), info)
	case *ast.CodeBlock:
		w.code(w.raw(n), "")
	case *ast.Blockquote:
		w.quote(n)
	case *ast.HTMLBlock:
		w.html(n)
	case *ast.ThematicBreak, *ast.LinkReferenceDefinition:
	case *insertion:
		w.insertion(n.kind, n.title, n)
	case *formula:
		if s := strings.TrimSpace(w.raw(n)); s != "" {
			w.out = append(w.out, millrace.Block{Type: millrace.MathBlock, Text: s, Language: "tex"})
		}
	case *east.Table:
		w.table(n)
	case *east.DefinitionList:
		w.definitions(n)
	case *east.FootnoteList:
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if f, ok := c.(*east.Footnote); ok {
				w.footnote(f)
			}
		}
	case *ast.Paragraph, *ast.TextBlock, *east.DefinitionTerm:
		w.inlines(n)
		w.flush()
	default:
		w.children(n)
	}
}

// raw returns the lines of a block unchanged.
func (w *writer) raw(n ast.Node) string {
	var b strings.Builder
	lines := n.Lines()
	for i := range lines.Len() {
		s := lines.At(i)
		b.Write(s.Value(w.src))
	}
	return b.String()
}

func (w *writer) heading(n *ast.Heading) {
	b := millrace.Block{Type: millrace.HeadingBlock, Level: n.Level}
	b.Text, b.Spans = w.lineOf(n)
	if id, ok := n.AttributeString("id"); ok {
		if id, ok := id.([]byte); ok {
			b.Anchor = string(id)
		}
	}
	b.Text = strings.ReplaceAll(b.Text, "\n", " ")
	// goldmark does not parse these as attributes: {#Über}, {: #a }.
	if m := headingID.FindStringSubmatchIndex(b.Text); m != nil && b.Anchor == "" {
		b.Anchor = b.Text[m[2]:m[3]]
		b.Text = b.Text[:m[0]]
		b.Spans = cut(b.Spans, len(b.Text))
	}
	if w.o.Anchor != nil {
		b.Anchor = w.o.Anchor(b.Text, b.Anchor)
	}
	if b.Text != "" {
		w.out = append(w.out, b)
	}
	w.after()
}

var headingID = regexp.MustCompile(`\s*\{:?\s*#([^\s{}]+)[^{}]*\}\s*$`)

// cut removes the spans that reach beyond the end of their text.
func cut(spans []millrace.Span, end int) []millrace.Span {
	return slices.DeleteFunc(spans, func(s millrace.Span) bool { return s.End > end })
}

func (w *writer) list(n *ast.List) {
	b := millrace.Block{Type: millrace.ListBlock, Ordered: n.IsOrdered()}
	if b.Ordered && n.Start != 1 {
		b.Start = n.Start
	}
	for c := n.FirstChild(); c != nil && w.err == nil; c = c.NextSibling() {
		it := w.item(c)
		if box := checkbox(c); box != nil {
			it.Task, it.Done = true, box.IsChecked
		}
		if it.Text != "" || len(it.Blocks) > 0 {
			b.Items = append(b.Items, it)
		}
	}
	if len(b.Items) > 0 {
		w.out = append(w.out, b)
	}
}

// item returns the contents of a node as an item. Text at the start becomes the text of the item.
func (w *writer) item(n ast.Node) millrace.Item {
	w.inner++
	w.depth++
	blocks := w.inside(func() { w.children(n) })
	w.depth--
	w.inner--
	if len(blocks) == 0 {
		return millrace.Item{}
	}
	if blocks[0].Type != millrace.TextBlock {
		return millrace.Item{Blocks: blocks}
	}
	it := millrace.Item{Text: blocks[0].Text, Spans: blocks[0].Spans}
	if len(blocks) > 1 {
		it.Blocks = blocks[1:]
	}
	return it
}

func checkbox(n ast.Node) *east.TaskCheckBox {
	if first := n.FirstChild(); first != nil {
		box, _ := first.FirstChild().(*east.TaskCheckBox)
		return box
	}
	return nil
}

var (
	infoWord  = regexp.MustCompile(`^[^\s{},:]+`)
	infoTitle = regexp.MustCompile(`(?:^|[\s{,])(?:title|caption|file|filename)\s*=\s*(?:"([^"]*)"|'([^']*)')`)
	infoClass = regexp.MustCompile(`^\{\s*\.?([\w+#-]+)`)
)

// code adds a code block. info is the text after its fence, such as go title="a.go",
// python{1,3} or {.ruby}.
func (w *writer) code(source, info string) {
	if strings.TrimSpace(source) == "" {
		return
	}
	b := millrace.Block{Type: millrace.CodeBlock, Text: source}
	info = strings.TrimSpace(info)
	if m := infoClass.FindStringSubmatch(info); m != nil {
		b.Language = strings.ToLower(m[1])
	} else {
		b.Language = strings.ToLower(infoWord.FindString(info))
	}
	if strings.Contains(b.Language, "=") || b.Language == "text" || b.Language == "plain" || b.Language == "plaintext" || b.Language == "nohighlight" {
		b.Language = ""
	}
	if m := infoTitle.FindStringSubmatch(info); m != nil {
		b.Caption = strings.Join(strings.Fields(m[1]+m[2]), " ")
	}
	if b.Language == "math" {
		w.out = append(w.out, millrace.Block{Type: millrace.MathBlock, Text: strings.TrimSpace(source), Language: "tex"})
		return
	}
	w.out = append(w.out, b)
}

func (w *writer) quote(n *ast.Blockquote) {
	if kind, ok := n.AttributeString("kind"); ok {
		title, _ := n.AttributeString("title")
		w.insertion(fmt.Sprint(kind), fmt.Sprint(title), n)
		return
	}
	if blocks := w.inside(func() { w.children(n) }); len(blocks) > 0 {
		w.out = append(w.out, millrace.Block{Type: millrace.QuoteBlock, Blocks: blocks})
	}
}

// insertion adds a callout, or the contents of another container after its title.
func (w *writer) insertion(kind, title string, n ast.Node) {
	title = strings.Join(strings.Fields(unescaped([]byte(title))), " ")
	if kind == "" {
		if title != "" {
			w.out = append(w.out, millrace.Block{Type: millrace.TextBlock, Text: title, Spans: []millrace.Span{{Type: millrace.StrongSpan, End: len(title)}}})
		}
		w.children(n)
		return
	}
	b := millrace.Block{Type: millrace.CalloutBlock, Kind: kind, Title: title}
	if b.Blocks = w.inside(func() { w.children(n) }); b.Title != "" || len(b.Blocks) > 0 {
		w.out = append(w.out, b)
	}
}

func (w *writer) table(n *east.Table) {
	b := millrace.Block{Type: millrace.TableBlock}
	for r := n.FirstChild(); r != nil; r = r.NextSibling() {
		_, header := r.(*east.TableHeader)
		var row []millrace.Cell
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			cell := millrace.Cell{Header: header}
			cell.Text, cell.Spans = w.lineOf(c)
			row = append(row, cell)
		}
		if header && !slices.ContainsFunc(row, func(c millrace.Cell) bool { return c.Text != "" }) {
			continue // the format requires a header, and the table has none
		}
		b.Rows = append(b.Rows, row)
	}
	if len(b.Rows) > 0 {
		w.out = append(w.out, b)
	}
	w.after()
}

func (w *writer) definitions(n *east.DefinitionList) {
	b := millrace.Block{Type: millrace.DefinitionsBlock}
	var terms []string
	for c := n.FirstChild(); c != nil && w.err == nil; c = c.NextSibling() {
		if _, ok := c.(*east.DefinitionTerm); ok {
			if t, _ := w.lineOf(c); t != "" {
				terms = append(terms, strings.ReplaceAll(t, "\n", " "))
			}
			continue
		}
		it := w.item(c)
		it.Term, terms = strings.Join(terms, "\n"), nil
		if it.Term != "" || it.Text != "" || len(it.Blocks) > 0 {
			b.Items = append(b.Items, it)
		}
	}
	if len(terms) > 0 {
		b.Items = append(b.Items, millrace.Item{Term: strings.Join(terms, "\n")})
	}
	if len(b.Items) > 0 {
		w.out = append(w.out, b)
	}
	w.after()
}

func (w *writer) footnote(n *east.Footnote) {
	w.inner++
	blocks := w.inside(func() { w.children(n) })
	w.inner--
	if len(blocks) > 0 {
		w.out = append(w.out, millrace.Block{Type: millrace.FootnoteBlock, Anchor: footnoteAnchor(n.Index), Text: fmt.Sprint(n.Index), Blocks: blocks})
	}
}

func footnoteAnchor(index int) string { return fmt.Sprintf("fn:%d", index) }
