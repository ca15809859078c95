package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace"
)

// Field is the field to which a part of a question applies.
type Field uint8

// Fields that a question can name.
const (
	AnyField   Field = iota // anywhere in the passage, its headings or the title of its page
	TitleField              // in the title of the page
	URLField                // in the URL of the page
)

// Part is one part of a question: a word or a phrase.
type Part struct {
	Text   string // without the query syntax; never empty
	Field  Field
	Phrase bool // the words must be consecutive
	Not    bool // passages that contain the part are excluded
}

// Query is a parsed question. The zero value is empty.
type Query struct {
	Parts []Part // in the order of the question, with repeats
}

// Empty reports whether the question has no parts.
func (q Query) Empty() bool { return len(q.Parts) == 0 }

// Parse parses what a user types: words, "phrases", -without, -"without a phrase", title:word and
// url:part. It accepts any text. It treats other syntax as words, such as AND, an unclosed
// quotation mark, or "title:" with nothing after it. It drops parts without a letter or digit. If
// all parts are exclusions, Parse treats them as words, because a user who types "-Wall" searches
// for that word. Parse ignores the text after the first [millrace.MaxQuery] code points.
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

// part reads one part. The rest must not be empty or start with white space.
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
		} else { // a field name with nothing after it is a word
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

// quoted reads a phrase if one starts here and is closed.
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

// quotes returns the quotation marks that close a phrase that r opens, and reports whether r opens
// one.
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
