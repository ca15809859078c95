package chunk

import (
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// MaxPassage is the maximum length of the text of a passage in code points.
const MaxPassage = 2000

// Passage is the unit of a search result: consecutive parts of a page.
type Passage struct {
	// ID is unique in the page: 13 letters and digits, derived from Type, Text and a counter
	// among equal passages of the page.
	ID   string
	Type string // type of most of the text, not counting headings; Heading if there are only headings
	// Headings contains the headings above the first text of the passage, the outermost first,
	// without the page's title. Inside contains the other headings in the passage.
	Headings, Inside []string
	// Text is the text of the parts, including headings. A line end follows a heading, and an
	// empty line separates other parts, except pieces of one block.
	Text  string
	Parts []Part // nil if the page has no content, so that Text is its summary or description
	Start []int  // byte offset of each part in Text
}

// Passages returns the content of a page as passages, in document order. A page without content has
// one passage: its summary, else its description, else an empty text. A page that also lacks a
// title, a summary and a description has no passages.
func Passages(page *millrace.Page) []Passage {
	parts := walk(page.Blocks)
	if len(parts) == 0 {
		return fieldsOnly(page)
	}
	var out []Passage
	var names namer
	path := outline{title: canon.Normalize(page.Title)}
	for run := range runs(parts) {
		p := compose(run)
		p.ID = names.name(p.Type, p.Text)
		path.head(&p)
		out = append(out, p)
	}
	return out
}

func fieldsOnly(page *millrace.Page) []Passage {
	text := page.Summary
	if strings.TrimSpace(text) == "" {
		text = page.Description
	}
	text = strings.TrimSpace(text)
	if text == "" && strings.TrimSpace(page.Title) == "" {
		return nil
	}
	text = strings.TrimSpace(text[:runeOffset(text, MaxPassage)])
	var n namer
	return []Passage{{ID: n.name(Paragraph, text), Type: Paragraph, Text: text}}
}

// outline holds the headings above a position of the page.
type outline struct {
	title string
	open  []Part
	begun bool // a heading has been found
}

// head sets the headings of the next passage.
func (o *outline) head(p *Passage) {
	leading := true
	for _, part := range p.Parts {
		if part.Type != Heading {
			if leading {
				p.Headings = o.path()
			}
			leading = false
			continue
		}
		// A first heading equal to the title applies to the whole page.
		title := !o.begun && canon.Normalize(part.Text) == o.title
		o.begun = true
		if title && len(p.Parts) > 1 {
			continue
		}
		for len(o.open) > 0 && o.open[len(o.open)-1].Level >= part.Level {
			o.open = o.open[:len(o.open)-1]
		}
		o.open = append(o.open, part)
		if !leading {
			p.Inside = append(p.Inside, part.Text)
		}
	}
	if leading {
		p.Headings = o.path()
	}
}

func (o *outline) path() []string {
	var out []string
	for _, h := range o.open {
		out = append(out, h.Text)
	}
	return out
}

// runs divides the parts of a page into as few passages as possible. It prefers cuts above
// headings.
func runs(parts []piece) func(yield func([]piece) bool) {
	return func(yield func([]piece) bool) {
		size := 0
		ps := make([]cut, 0, len(parts))
		for i := range parts {
			if i > 0 {
				ps = append(ps, cut{at: i, size: size, key: between(&parts[i-1], &parts[i])})
				size += len("\n\n")
			}
			size += parts[i].size
		}
		from := 0
		if size > MaxPassage {
			for _, at := range pack(ps, size, MaxPassage) {
				if !yield(parts[from:at]) {
					return
				}
				from = at
			}
		}
		yield(parts[from:])
	}
}

// between returns the key of the cut between two parts. Cuts between closely related parts, such as
// a heading and its text, have the highest keys.
func between(a, b *piece) uint64 {
	class := uint64(7)
	switch last, _ := utf8.DecodeLastRuneInString(a.Text); {
	case a.Type == Heading:
		class = never
	case b.Type == Heading:
		class = uint64(b.Level - 1)
	case last == ':' || last == '：': // the text introduces the next part
		class = 9
	case b.Type == Code || b.Type == List && a.Type == Paragraph:
		class = 8
	case b.Type == Paragraph && !b.cont:
		class = 6
	}
	return class<<60 | mix(a.hash^b.hash>>1)>>4
}

// compose joins parts into a passage.
func compose(parts []piece) Passage {
	p := Passage{Type: Heading}
	var text strings.Builder
	sizes := map[string]int{}
	for i := range parts {
		part := &parts[i]
		if i > 0 {
			switch {
			case part.cont && parts[i-1].Type == part.Type:
				text.WriteString(part.glue)
			case parts[i-1].Type == Heading:
				text.WriteByte('\n')
			default:
				text.WriteString("\n\n")
			}
		}
		p.Parts = append(p.Parts, part.Part)
		p.Start = append(p.Start, text.Len())
		text.WriteString(part.Text)
		if part.Type == Heading {
			continue
		}
		sizes[part.Type] += part.size
		if p.Type == Heading || sizes[part.Type] > sizes[p.Type] {
			p.Type = part.Type
		}
	}
	p.Text = text.String()
	return p
}
