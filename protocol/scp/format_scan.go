package scp

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// parser reads one line of JSON after the other (RFC 8259), by hand, because a
// collection is as large as a site. Half of a surrogate pair counts as U+FFFD,
// as in most decoders; bytes that are not UTF-8 are an error.
//
// Its methods stop at the first thing that is no JSON, which is fatal to the
// file; what only one page is refused for is noted in skip, and reading goes
// on.
type parser struct {
	data []byte
	pos  int
	keep bool   // what is read is wanted, not only whether it is right
	text string // data, once; strings without escapes are parts of it
	buf  []byte // of names and the like with escapes

	failed  bool
	fatal   issue
	skip    issue
	section string      // of the schema that is followed
	broken  string      // the rule that a line breaks which is no JSON
	rule    string      // that what is read now breaks if it is not as the schema says
	report  *lineReport // of the checker; nil = not a check

	limits *OpenOptions
	values int       // since the clock was last looked at
	until  time.Time // of this line; zero: it has not taken long
	depth  int       // arrays and objects that are open
	before int       // where the member before this one ends; 0: it is the first
	spaced bool      // there was white space between two tokens
	astray bool      // a URL leads nowhere, so that what it is in is dropped

	page   page
	media  media
	sum    place
	strs   []string
	counts counts
}

// issue is what is wrong with a line. The zero value is nothing.
type issue struct {
	at      int    // the byte in the line
	member  string // that is missing in the object at that byte
	rule    string // that it breaks
	section string
	reason  string
}

// lineReport is what a checker learns of a line beside its page.
type lineReport struct {
	about  map[string]bool // rules that the line has something about
	issues []issue         // all that the page is refused for
	odd    []issue         // what it is taken in spite of, with its rule
}

// maxIssues is how many issues of one line a report has.
const maxIssues = 20

// has notes that the line has something that a rule is about.
func (p *parser) has(rule string) {
	if p.report != nil {
		p.report.about[rule] = true
	}
}

// odd notes what breaks a rule, while the page is taken.
func (p *parser) odd(at int, rule, reason string) {
	if p.report != nil && len(p.report.odd) < maxIssues {
		p.report.odd = append(p.report.odd, issue{at: at, rule: rule, section: p.section, reason: reason})
	}
}

// counts are the oddities that a file is read in spite of.
type counts struct {
	unknown   int // blocks of a type that is not known
	dropped   int // blocks, sources, captions and icons that lead nowhere
	canonical int // canonical URLs that lead nowhere
	clamped   int // headings of a level outside 1 to 6
}

const everyValues = 1024 // how often the clock is looked at

// reset starts a line of a schema.
func (p *parser) reset(line []byte, section, broken string) {
	p.data, p.pos, p.text = line, 0, ""
	if p.keep {
		p.text = string(line)
	}
	p.failed, p.fatal, p.skip = false, issue{}, issue{}
	p.section, p.broken, p.rule = section, broken, broken
	p.values, p.until, p.depth, p.astray = 0, time.Time{}, 0, false
}

// fail notes what is fatal, and gives false.
func (p *parser) fail(i issue) bool {
	if !p.failed {
		p.failed, p.fatal = true, i
	}
	return false
}

func (p *parser) syntax(at int, reason string) bool {
	return p.fail(issue{at: at, rule: p.broken, section: "Error Handling", reason: reason})
}

// refuse notes why the page of the line is not taken.
func (p *parser) refuse(at int, reason string) {
	p.note(issue{at: at, rule: p.rule, section: p.section, reason: reason})
}

func (p *parser) note(i issue) {
	if p.skip.reason == "" {
		p.skip = i
	}
	if p.report != nil && len(p.report.issues) < maxIssues {
		p.report.issues = append(p.report.issues, i)
	}
}

// open reads the bracket that starts the object of a line.
func (p *parser) open() bool {
	if p.peek() != '{' {
		if p.value() && p.end() {
			p.fail(issue{rule: p.broken, section: p.section, reason: "the line is no object"})
		}
		return false
	}
	p.pos++
	return true
}

// peek gives the first byte of the next token, 0 at the end.
func (p *parser) peek() byte {
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; c {
		case ' ', '\t', '\n', '\r':
			p.pos++
			p.spaced = true
		default:
			return c
		}
	}
	return 0
}

// end reports whether nothing but white space is left.
func (p *parser) end() bool {
	if p.peek() != 0 || p.pos < len(p.data) {
		return p.syntax(p.pos, "there is data after the value")
	}
	return true
}

// span is a string in the line: its bytes without the quotes.
type span struct {
	from, to int
	escaped  bool
}

const ones, highs = 0x0101010101010101, 0x8080808080808080

// marks sets the highest bit of the first byte of eight that ends a run of plain
// bytes in a string, and perhaps of some after it: a quote, a backslash or a
// control character. In each term a borrow can only mark a byte after one that
// is marked rightly; bytes that are not ASCII are never marked.
func marks(w uint64) uint64 {
	return ((w - ' '*ones) | (w ^ '"'*ones - ones) | (w ^ '\\'*ones - ones)) &^ w & highs
}

// quoted reads a string. It looks at sixteen bytes at a time for what ends a run
// of plain bytes.
func (p *parser) quoted() (s span, ok bool) {
	data, i := p.data, p.pos+1
	s.from = i
	high := uint64(0)
	for {
		for ; i+16 <= len(data); i += 16 {
			w, v := binary.LittleEndian.Uint64(data[i:]), binary.LittleEndian.Uint64(data[i+8:])
			first, second := marks(w), marks(v)
			high |= w
			if first != 0 {
				i += bits.TrailingZeros64(first) / 8
				break
			}
			high |= v
			if second != 0 {
				i += 8 + bits.TrailingZeros64(second)/8
				break
			}
		}
		for i < len(data) && data[i] >= ' ' && data[i] != '"' && data[i] != '\\' {
			high |= uint64(data[i])
			i++
		}
		if i == len(data) {
			return s, p.syntax(i, "it ends too early")
		}
		switch data[i] {
		case '"':
			s.to, p.pos = i, i+1
			if high&highs != 0 && !utf8.Valid(data[s.from:i]) {
				return s, p.fail(issue{at: s.from, rule: "format/json-lines", section: "Error Handling", reason: "a string is not UTF-8"})
			}
			return s, true
		case '\\':
			n := escape(data[i:])
			if n == 0 {
				return s, p.syntax(i, "an escape is none")
			}
			s.escaped = true
			i += n
		default:
			return s, p.syntax(i, "a control character stands in a string")
		}
	}
}

// escape gives the length of the escape that b starts with, 0 if it is none.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := unit(b); ok {
			return 6
		}
	}
	return 0
}

// unit reads "\uXXXX".
func unit[T string | []byte](b T) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for i := 2; i < 6; i++ {
		c := b[i]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// bytes gives what a string says; it holds until the next call.
func (p *parser) bytes(s span) []byte {
	b := p.data[s.from:s.to]
	if !s.escaped {
		return b
	}
	p.buf = p.buf[:0]
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			p.buf = append(p.buf, b...)
			return p.buf
		}
		r, n := unescape(b[i:])
		p.buf = utf8.AppendRune(append(p.buf, b[:i]...), r)
		b = b[i+n:]
	}
}

// string gives what a string says if it is wanted.
func (p *parser) string(s span) string {
	switch {
	case !p.keep:
		return ""
	case !s.escaped:
		return p.text[s.from:s.to]
	}
	var out strings.Builder
	out.Grow(s.to - s.from)
	b := p.text[s.from:s.to]
	for {
		i := strings.IndexByte(b, '\\')
		if i < 0 {
			out.WriteString(b)
			return out.String()
		}
		out.WriteString(b[:i])
		r, n := unescape(b[i:])
		out.WriteRune(r)
		b = b[i+n:]
	}
}

// unescape gives what the escape that b starts with stands for, and its length.
func unescape[T string | []byte](b T) (r rune, n int) {
	switch c := b[1]; c {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r, _ = unit(b)
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		low, _ := unit(b[6:])
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			return r, 12
		}
		return r, 6
	default:
		return rune(c), 2
	}
}

// member goes on to the next member of an object, which is open: first tells
// that none has been read yet. It gives false at the end and on an error.
func (p *parser) member(first bool) (name []byte, more bool) {
	c := p.peek()
	switch {
	case c == '}':
		p.pos++
		return nil, false
	case first:
	case c != ',':
		return nil, p.expected(`"," or "}"`)
	default:
		p.pos++
		c = p.peek()
	}
	if c != '"' {
		return nil, p.expected("a name")
	}
	s, ok := p.quoted()
	if !ok {
		return nil, false
	}
	if p.peek() != ':' {
		return nil, p.expected(`":"`)
	}
	p.pos++
	return p.bytes(s), true
}

// element goes on to the next element of an array, as member does.
func (p *parser) element(first bool) (more bool) {
	c := p.peek()
	switch {
	case c == ']':
		// After a comma this is no value, and found out where one is read.
		p.pos++
		return false
	case first:
	case c != ',':
		return p.expected(`"," or "]"`)
	default:
		p.pos++
		if p.peek() == ']' {
			return p.expected("a value")
		}
	}
	return true
}

// array parses an array and calls each for every element. It reports whether it
// has parsed a complete array.
func (p *parser) array(each func()) bool {
	if p.peek() != '[' {
		p.wrong("an array")
		return false
	}
	p.pos++
	p.depth++
	for more := p.element(true); more; more = p.element(false) {
		if each(); p.failed {
			return false
		}
	}
	p.depth--
	return !p.failed
}

func (p *parser) expected(what string) bool {
	if p.pos >= len(p.data) {
		return p.syntax(len(p.data), "it ends too early")
	}
	return p.syntax(p.pos, "here should be "+what)
}

// value reads any value and forgets it.
func (p *parser) value() bool {
	if p.late() {
		return false
	}
	switch c := p.peek(); c {
	case '"':
		_, ok := p.quoted()
		return ok
	case '{', '[':
		if p.depth >= p.limits.MaxDepth {
			return p.limit("it nests too deep")
		}
		p.depth++
		p.pos++
		if c == '{' {
			for _, more := p.member(true); more; _, more = p.member(false) {
				if !p.value() {
					return false
				}
			}
		} else {
			for more := p.element(true); more; more = p.element(false) {
				if !p.value() {
					return false
				}
			}
		}
		p.depth--
		return !p.failed
	case 't':
		return p.literal("true")
	case 'f':
		return p.literal("false")
	case 'n':
		return p.literal("null")
	}
	_, ok := p.number()
	return ok
}

func (p *parser) literal(s string) bool {
	if len(p.data)-p.pos < len(s) || string(p.data[p.pos:p.pos+len(s)]) != s {
		return p.expected("a value")
	}
	p.pos += len(s)
	return true
}

// number reads a number and gives its bytes.
func (p *parser) number() (b []byte, ok bool) {
	data, i := p.data, p.pos
	digits := func() bool {
		from := i
		for i < len(data) && '0' <= data[i] && data[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(data) && data[i] == '-' {
		i++
	}
	if i < len(data) && data[i] == '0' {
		i++
	} else if !digits() {
		return nil, p.expected("a value")
	}
	if i < len(data) && data[i] == '.' {
		if i++; !digits() {
			return nil, p.syntax(i, "a number is none")
		}
	}
	if i < len(data) && data[i]|0x20 == 'e' {
		if i++; i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		if !digits() {
			return nil, p.syntax(i, "a number is none")
		}
	}
	b, p.pos = data[p.pos:i], i
	return b, true
}

// late counts a value, and reports whether the page has taken longer than it may, which
// is fatal, since the rest of the line is then not known to be JSON.
func (p *parser) late() bool {
	if p.values++; p.values < everyValues {
		return false
	}
	p.values = 0
	now := p.limits.Now()
	if p.until.IsZero() {
		p.until = now.Add(p.limits.PageTime)
	}
	return now.After(p.until) && !p.limit("the page takes too long to read")
}

// limit fails for a reason that the specification has no number for.
func (p *parser) limit(reason string) bool {
	return p.fail(issue{at: p.pos, rule: noteRefused, section: sectionLimits, reason: reason})
}
