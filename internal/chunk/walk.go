package chunk

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace"
)

// piece is a part with the facts that passages need.
type piece struct {
	Part
	size int    // of Text, in code points
	hash uint64 // of Type and Text, the same wherever it stands
	glue string // what joins it to the piece before, when both come from one block; else ""
	cont bool   // it comes from the same block as the piece before
}

// walker gathers the pieces of a page.
type walker struct {
	pieces []piece
	lead   string // what the next text begins with: the title of a call-out, the label of a footnote
	inside string // the type of texts here: Paragraph, or Quote inside of a quotation
	nested int    // how many blocks are open around; headings count in none
}

// walk gives the pieces of a page's content.
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

// heading adds a heading of the page. One inside of another block is text: it
// does not head what stands after that block.
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

// within adds what stands inside of a block whose first text begins with lead.
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

// table adds one line a row. A table of one row is a layout, not a list.
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

// flushLead adds a lead that has found no text as a text of its own.
func (w *walker) flushLead() {
	if lead := w.lead; lead != "" {
		w.lead = ""
		w.add(w.inside, lead)
	}
}

// add adds a text of a type, divided where it is too long.
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

// glue gives what stood between two parts of a text, from the text up to the
// second: a line end, a space, or nothing.
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

// trim takes white space from both ends; code keeps the indent of its first
// line.
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
