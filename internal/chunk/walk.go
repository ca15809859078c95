package chunk

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace"
)

// piece is a part with the data that Passages needs.
type piece struct {
	Part
	size int    // size of Text in code points
	hash uint64 // hash of Type and Text, independent of the position
	glue string // text between the previous piece of the same block and this one, or ""
	cont bool   // the piece continues the block of the previous piece
}

// walker collects the pieces of a page.
type walker struct {
	pieces []piece
	lead   string // start of the next text: the title of a call-out, the label of a footnote
	inside string // type of plain text: Paragraph, or Quote in a quotation
	nested int    // number of enclosing blocks; a heading inside one counts as text
}

// walk returns the pieces of a page's content.
func walk(blocks []millrace.Block) []piece {
	w := &walker{inside: Paragraph}
	w.blocks(blocks)
	return w.pieces
}

func (w *walker) blocks(blocks []millrace.Block) {
	for i := range blocks {
		w.block(&blocks[i])
	}
}

func (w *walker) block(b *millrace.Block) {
	switch b.Type {
	case millrace.HeadingBlock:
		w.heading(b)
	case millrace.ListBlock, millrace.DefinitionsBlock:
		l := &lines{w: w}
		l.list(b, "")
		l.flush()
	case millrace.TableBlock:
		w.table(b)
	case millrace.CodeBlock:
		w.add(w.inside, b.Caption)
		w.flushLead()
		w.add(Code, b.Text)
	case millrace.QuoteBlock:
		was := w.inside
		w.inside = Quote
		w.within("", func() {
			w.add(Quote, b.Text)
			w.blocks(b.Blocks)
			if strings.TrimSpace(b.Cite) != "" {
				w.add(Quote, "— "+b.Cite)
			}
		})
		w.inside = was
	case millrace.CalloutBlock:
		w.within(b.Title, func() {
			w.add(w.inside, b.Text)
			w.blocks(b.Blocks)
		})
	case millrace.FootnoteBlock:
		w.within("["+b.Text+"]", func() { w.blocks(b.Blocks) })
	case millrace.ImageBlock:
		w.add(w.inside, both(b.Alt, b.Caption))
	case millrace.VideoBlock, millrace.AudioBlock:
		w.media(b)
	case millrace.EmbedBlock:
		w.add(w.inside, both(b.Title, b.Caption))
	default:
		w.add(w.inside, b.Text)
		w.blocks(b.Blocks)
	}
}

// heading adds a heading of the page. It adds a heading inside another block as plain text.
func (w *walker) heading(b *millrace.Block) {
	if w.nested > 0 {
		w.add(w.inside, b.Text)
		return
	}
	text := strings.Join(strings.Fields(b.Text), " ")
	if cut := runeOffset(text, maxPart); cut < len(text) {
		text = strings.TrimSpace(text[:cut])
	}
	if text != "" {
		w.put(piece{Part: Part{Type: Heading, Text: text, Level: min(max(b.Level, 1), 6)}})
	}
}

// within adds the content of a block; its first text begins with lead.
func (w *walker) within(lead string, inside func()) {
	w.nested++
	w.flushLead()
	w.lead = strings.TrimSpace(lead)
	inside()
	w.flushLead()
	w.nested--
}

func (w *walker) media(b *millrace.Block) {
	w.add(w.inside, both(b.Title, b.Caption))
	if b.Media == nil {
		return
	}
	var chapters strings.Builder
	for _, c := range b.Media.Chapters {
		if t := strings.TrimSpace(c.Title); t != "" {
			chapters.WriteString("- " + t + "\n")
		}
	}
	w.add(List, chapters.String())
	for _, t := range millrace.TextBlocks(b.Media.Transcript) {
		w.add(w.inside, t.Text)
	}
}

// table adds one line per row, as a List. A table with a single row counts as plain text.
func (w *walker) table(b *millrace.Block) {
	w.add(w.inside, b.Caption)
	kind := List
	if len(b.Rows) < 2 {
		kind = w.inside
	}
	w.add(kind, millrace.Text([]millrace.Block{{Type: millrace.TableBlock, Rows: b.Rows}}))
}

func both(a, b string) string {
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	}
	return a + "\n" + b
}

// flushLead adds an unused lead as a text.
func (w *walker) flushLead() {
	if lead := w.lead; lead != "" {
		w.lead = ""
		w.add(w.inside, lead)
	}
}

// add adds a text, and divides it if it is too long.
func (w *walker) add(kind, text string) {
	if text = trim(kind, text); text == "" {
		return
	}
	if w.lead != "" && kind != Code {
		sep := "\n"
		if strings.HasPrefix(w.lead, "[") {
			sep = " "
		}
		text, w.lead = w.lead+sep+text, ""
	}
	start := 0
	for i, cut := range divide(text, kind == Code || kind == List) {
		part := trim(kind, text[start:cut])
		p := piece{Part: Part{Type: kind, Text: part}, cont: i > 0}
		if i > 0 {
			p.glue = glue(text[:start])
		}
		start = cut
		if part != "" {
			w.put(p)
		}
	}
}

// glue returns the separator between two pieces of a text: a line end, a space, or nothing. before
// is the text before the second piece.
func glue(before string) string {
	r, _ := utf8.DecodeLastRuneInString(before)
	switch {
	case r == '\n':
		return "\n"
	case unicode.IsSpace(r):
		return " "
	}
	return ""
}

func (w *walker) put(p piece) {
	p.size = utf8.RuneCountInString(p.Text)
	p.hash = mix(fnv(fnv(fnv(offset64, p.Type), "\n"), p.Text))
	w.pieces = append(w.pieces, p)
}

// trim trims white space. It keeps the indent of the first line of code.
func trim(kind, text string) string {
	text = strings.TrimRightFunc(text, unicode.IsSpace)
	if kind != Code {
		return strings.TrimLeftFunc(text, unicode.IsSpace)
	}
	for {
		line, rest, more := strings.Cut(text, "\n")
		if !more || strings.TrimSpace(line) != "" {
			return text
		}
		text = rest
	}
}
