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

// parser parses lines of JSON (RFC 8259). It is handwritten for speed, because a collection is as
// large as a site. Like most decoders, it reads an unpaired surrogate as U+FFFD. Invalid UTF-8 is
// an error.
//
// Its methods stop at the first invalid JSON, which is fatal to the file. An error that only
// rejects a page is recorded in skip, and parsing continues.
type parser struct {
	data []byte
	pos  int
	keep bool   // whether to store values; otherwise they are only validated
	text string // data as a string; strings without escapes are substrings of it
	buf  []byte // buffer for unescaped names and values

	failed  bool
	fatal   issue
	skip    issue
	section string      // section of the current schema
	broken  string      // rule that invalid JSON violates
	rule    string      // rule that the current value violates if it does not match the schema
	report  *lineReport // collects issues for the checker; nil in the reader

	limits     *OpenOptions
	values     int       // number of values since the clock was last read
	until      time.Time // deadline of the line; zero = not set yet
	depth      int       // number of open arrays and objects
	before     int       // end of the previous member. If zero, the current member is the first.
	spaced     bool      // whether white space precedes or follows a token
	invalidURL bool      // whether a URL is invalid, so the object that contains the URL is dropped

	page   page
	media  media
	sum    memberSpan
	strs   []string
	counts counts
}

// issue is an error in a line. The zero value means no error.
type issue struct {
	at      int    // byte offset in the line
	member  string // missing member of the object at that offset
	rule    string // violated rule
	section string
	reason  string
}

// lineReport contains what a checker needs to know about a line, apart from its page.
type lineReport struct {
	about    map[string]bool // rules that apply to the line
	issues   []issue         // errors for which the page is rejected
	warnings []issue         // tolerated errors, with their rules
}

// maxIssues is the maximum number of issues per line in a report.
const maxIssues = 20

// applies records that a rule applies to the line.
func (p *parser) applies(rule string) {
	if p.report != nil {
		p.report.about[rule] = true
	}
}

// warn records a violation for which the page is not rejected.
func (p *parser) warn(at int, rule, reason string) {
	if p.report != nil && len(p.report.warnings) < maxIssues {
		p.report.warnings = append(p.report.warnings, issue{at: at, rule: rule, section: p.section, reason: reason})
	}
}

// counts are the numbers of tolerated errors in a file.
type counts struct {
	unknown   int // blocks of unknown types
	dropped   int // blocks, sources, captions and icons with invalid URLs
	canonical int // invalid canonical URLs
	clamped   int // headings with a level outside 1 to 6
}

const everyValues = 1024 // number of values after which the clock is read

// reset prepares the parser for a new line.
func (p *parser) reset(line []byte, section, broken string) {
	p.data, p.pos, p.text = line, 0, ""
	if p.keep {
		p.text = string(line)
	}
	p.failed, p.fatal, p.skip = false, issue{}, issue{}
	p.section, p.broken, p.rule = section, broken, broken
	p.values, p.until, p.depth, p.invalidURL = 0, time.Time{}, 0, false
}

// fail records a fatal error and returns false.
func (p *parser) fail(i issue) bool {
	if !p.failed {
		p.failed, p.fatal = true, i
	}
	return false
}

func (p *parser) syntax(at int, reason string) bool {
	return p.fail(issue{at: at, rule: p.broken, section: "Error Handling", reason: reason})
}

// refuse records why the page of the line is rejected.
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

// open reads the opening brace of the object in a line.
func (p *parser) open() bool {
	if p.peek() != '{' {
		if p.value() && p.end() {
			p.fail(issue{rule: p.broken, section: p.section, reason: "the line is not an object"})
		}
		return false
	}
	p.pos++
	return true
}

// peek returns the first byte of the next token, or 0 at the end.
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

// end reports whether only white space is left.
func (p *parser) end() bool {
	if p.peek() != 0 || p.pos < len(p.data) {
		return p.syntax(p.pos, "data after the value")
	}
	return true
}

// span is the position of a string in the line, without its quotes.
type span struct {
	from, to int
	escaped  bool
}

const ones, highs = 0x0101010101010101, 0x8080808080808080

// marks returns a word in which the highest bit is set in the first byte of w that ends a run of
// plain bytes: a quote, a backslash or a control character. Later bytes may be marked wrongly,
// because a borrow can mark a byte after a correctly marked one. Non-ASCII bytes are never marked.
func marks(w uint64) uint64 {
	return ((w - ' '*ones) | (w ^ '"'*ones - ones) | (w ^ '\\'*ones - ones)) &^ w & highs
}

// quoted reads a string. It searches sixteen bytes at a time for the end of a run of plain bytes.
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
			return s, p.syntax(i, "unexpected end of the line")
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
				return s, p.syntax(i, "invalid escape")
			}
			s.escaped = true
			i += n
		default:
			return s, p.syntax(i, "control character in a string")
		}
	}
}

// escape returns the length of the escape at the start of b, or 0 if it is invalid.
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

// unit parses an escape "\uXXXX" at the start of b.
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

// bytes returns the unescaped string. It is valid until the next call.
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

// string returns the unescaped string, or "" if values are not stored.
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

// unescape decodes the escape at the start of b and returns its length.
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

// member reads the name of the next member of an open object, and moves to its value. first reports
// whether no member has been read yet. At the end and after an error, member returns false.
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

// element moves to the next element of an open array. first and more are as in member.
func (p *parser) element(first bool) (more bool) {
	c := p.peek()
	switch {
	case c == ']':
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

// array parses an array, and calls each for every element. It reports whether the array is
// complete.
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
		return p.syntax(len(p.data), "unexpected end of the line")
	}
	return p.syntax(p.pos, "expected "+what)
}

// value reads and discards any value.
func (p *parser) value() bool {
	if p.timedOut() {
		return false
	}
	switch c := p.peek(); c {
	case '"':
		_, ok := p.quoted()
		return ok
	case '{', '[':
		if p.depth >= p.limits.MaxDepth {
			return p.limit("nested too deep")
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

// number reads a number and returns its bytes.
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
			return nil, p.syntax(i, "invalid number")
		}
	}
	if i < len(data) && data[i]|0x20 == 'e' {
		if i++; i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		if !digits() {
			return nil, p.syntax(i, "invalid number")
		}
	}
	b, p.pos = data[p.pos:i], i
	return b, true
}

// timedOut counts a value, and reports whether the page has exceeded its time limit. This is fatal,
// because the rest of the line may be invalid JSON.
func (p *parser) timedOut() bool {
	if p.values++; p.values < everyValues {
		return false
	}
	p.values = 0
	now := p.limits.Now()
	if p.until.IsZero() {
		p.until = now.Add(pageTime)
	}
	return now.After(p.until) && !p.limit("the page takes too long to read")
}

// limit records that the line exceeds a limit of this parser, and returns false. The specification
// does not define these limits.
func (p *parser) limit(reason string) bool {
	return p.fail(issue{at: p.pos, rule: noteRefused, section: sectionLimits, reason: reason})
}
