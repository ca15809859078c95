package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace"
)

// Field is where a part of a question has to stand.
type Field uint8

// The fields that a question can name.
const (
	AnyField   Field = iota // anywhere in the passage, its headings or the title of its page
	TitleField              // in the title of the page
	URLField                // in the address of the page
)

// Part is one part of a question: a word or a phrase.
type Part struct {
	Text   string // as it was typed, without what the little language says; never empty
	Field  Field
	Phrase bool // its words stand one after the other
	Not    bool // what has it is not wanted
}

// Query is a question as [Parse] reads it. The zero value asks for nothing.
type Query struct {
	Parts []Part // in the order of the question, repeated ones included
}

// Empty reports whether the question asks for nothing.
func (q Query) Empty() bool { return len(q.Parts) == 0 }

// Parse reads what a person typed: words, "phrases", -without, -"without a
// phrase", title:word and url:part. It reads any text: what has no meaning in
// this little language is words, such as AND, a quotation mark that is never
// closed, or "title:" with nothing after it. What has no letter and no digit is
// left out. A question of nothing but exclusions asks for them, since a person
// who types "-Wall" means that. Only the first [millrace.MaxQuery] code points
// count.
func Parse(text string) Query {
	p := parser{rest: []rune(strings.ToValidUTF8(head(text, millrace.MaxQuery), " "))}
	var q Query
	wanted := false
	for p.space(); len(p.rest) > 0; p.space() {
		part := p.part()
		if strings.ContainsFunc(part.Text, isStart) {
			q.Parts = append(q.Parts, part)
			wanted = wanted || !part.Not
		}
	}
	if !wanted {
		for i := range q.Parts {
			q.Parts[i].Not = false
		}
	}
	return q
}

// head returns the first n code points of a text.
func head(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

type parser struct{ rest []rune }

func (p *parser) space() {
	for len(p.rest) > 0 && isGap(p.rest[0]) {
		p.rest = p.rest[1:]
	}
}

// part reads one part; there is no white space before it.
func (p *parser) part() Part {
	var part Part
	if len(p.rest) > 1 && p.rest[0] == '-' && p.rest[1] != '-' && !isGap(p.rest[1]) {
		part.Not = true
		p.rest = p.rest[1:]
	}
	for _, f := range []struct {
		name  string
		field Field
	}{{"title:", TitleField}, {"url:", URLField}} {
		n := len(f.name)
		if len(p.rest) <= n || isGap(p.rest[n]) || !strings.EqualFold(string(p.rest[:n]), f.name) {
			continue
		}
		name := string(p.rest[:n])
		p.rest = p.rest[n:]
		if p.value(&part); strings.ContainsFunc(part.Text, isStart) {
			part.Field = f.field
		} else { // the name of a field with nothing after it is a word
			part.Text, part.Phrase = name, false
		}
		return part
	}
	p.value(&part)
	return part
}

// value reads a phrase or a word.
func (p *parser) value(part *Part) {
	if part.Text, part.Phrase = p.quoted(); part.Phrase {
		return
	}
	n := 0
	for n < len(p.rest) && !isGap(p.rest[n]) {
		n++
	}
	part.Text = string(p.rest[:n])
	p.rest = p.rest[n:]
}

// quoted reads a phrase, if one starts here and ends.
func (p *parser) quoted() (string, bool) {
	if len(p.rest) == 0 {
		return "", false
	}
	ends, ok := quotes(p.rest[0])
	if !ok {
		return "", false
	}
	for i, r := range p.rest[1:] {
		if strings.ContainsRune(ends, r) {
			inside := strings.Join(strings.FieldsFunc(string(p.rest[1:i+1]), isGap), " ")
			p.rest = p.rest[i+2:]
			return inside, true
		}
	}
	return "", false
}

// quotes returns the marks that end a phrase, by the mark that starts it.
func quotes(r rune) (string, bool) {
	switch r {
	case '"', '＂':
		return "\"＂", true
	case '“', '”', '„':
		return "“”\"", true
	case '«':
		return "»", true
	case '»':
		return "«", true
	case '「':
		return "」", true
	}
	return "", false
}

// isGap reports whether a character separates parts.
func isGap(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError
}

// isTerm reports whether a character can be in a term.
func isTerm(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) }
