package record

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace"
)

// decodeBlocks is the inverse of EncodeBlocks.
func decodeBlocks(data []byte) ([]millrace.Block, error) {
	if len(data) == 0 {
		return nil, nil
	}
	r := blockReader{text: string(data)}
	if blocks := r.blocks(); !r.unsupported && r.at == len(r.text) {
		return blocks, nil
	}
	var blocks []millrace.Block
	err := json.Unmarshal(data, &blocks)
	return blocks, err
}

// blockReader decodes the output of EncodeBlocks several times as fast as encoding/json. On any
// other input, and on media, which are rare, it sets unsupported, and decodeBlocks uses
// encoding/json instead.
type blockReader struct {
	text        string
	at          int
	unsupported bool
	depth       int
}

// maxNested is the maximum depth of nested blocks, far below the limit of encoding/json.
const maxNested = 1000

// take reads a byte if it is the next one.
func (r *blockReader) take(c byte) bool {
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

// want reads a byte that must be the next one.
func (r *blockReader) want(c byte) {
	if !r.take(c) {
		r.unsupported = true
	}
}

// array reads an array; element reads one element.
func (r *blockReader) array(element func()) {
	r.want('[')
	if r.depth++; r.depth > maxNested {
		r.unsupported = true
	}
	for first := true; !r.unsupported && !r.take(']'); first = false {
		if !first {
			r.want(',')
		}
		element()
	}
	r.depth--
}

// object reads an object; member reads the value of one member.
func (r *blockReader) object(member func(name string)) {
	r.want('{')
	for first := true; !r.unsupported && !r.take('}'); first = false {
		if !first {
			r.want(',')
		}
		name := r.raw()
		r.want(':')
		if !r.unsupported {
			member(name)
		}
	}
}

// raw reads an ASCII string without escapes. The result shares the memory of the input.
func (r *blockReader) raw() string {
	r.want('"')
	s := r.plain()
	r.want('"')
	return s
}

// plain contains the ASCII characters that need no escape in a string.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// plain reads the ASCII characters up to the next one that is not in the table plain.
func (r *blockReader) plain() string {
	at := r.at
	for at < len(r.text) && plain[r.text[at]] {
		at++
	}
	s := r.text[r.at:at]
	r.at = at
	return s
}

// string reads a string.
func (r *blockReader) string() string {
	r.want('"')
	start, escapes := r.at, 0
	if s := r.plain(); r.take('"') && !r.unsupported {
		return strings.Clone(s)
	}
	for r.at < len(r.text) && r.text[r.at] != '"' && r.text[r.at] >= ' ' {
		if r.text[r.at] == '\\' {
			escapes++
			r.at++
		}
		r.at++
	}
	if r.unsupported || r.at >= len(r.text) || r.text[r.at] != '"' {
		r.unsupported = true
		return ""
	}
	s := r.text[start:r.at]
	r.at++
	switch {
	case !utf8.ValidString(s):
		r.unsupported = true
	case escapes > 0:
		return r.unescaped(s)
	}
	return strings.Clone(s)
}

func (r *blockReader) unescaped(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for {
		n := strings.IndexByte(s, '\\')
		if n < 0 || n+1 >= len(s) {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:n])
		c := s[n+1]
		s = s[n+2:]
		switch c {
		case '"', '\\', '/':
			b.WriteByte(c)
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			var c rune
			for i := 0; i < 4; i++ {
				d := -1
				if i < len(s) {
					d = strings.IndexByte("0123456789abcdef", s[i])
				}
				if d < 0 {
					r.unsupported = true
					return ""
				}
				c = c<<4 | rune(d)
			}
			if c >= 0xD800 && c < 0xE000 { // half of a surrogate pair
				r.unsupported = true
				return ""
			}
			b.WriteRune(c)
			s = s[4:]
		default:
			r.unsupported = true
			return ""
		}
	}
}

func (r *blockReader) int() int {
	negative := r.take('-')
	start, n := r.at, 0
	for r.at < len(r.text) && '0' <= r.text[r.at] && r.text[r.at] <= '9' {
		n = n*10 + int(r.text[r.at]-'0')
		r.at++
	}
	if digits := r.at - start; digits == 0 || digits > 9 || digits > 1 && r.text[start] == '0' {
		r.unsupported = true
	}
	if negative {
		n = -n
	}
	return n
}

// readTrue reads a Boolean member, which is present only if true.
func (r *blockReader) readTrue() bool {
	if !strings.HasPrefix(r.text[r.at:], "true") {
		r.unsupported = true
		return false
	}
	r.at += len("true")
	return true
}

func (r *blockReader) blocks() []millrace.Block {
	list := []millrace.Block{}
	r.array(func() {
		list = append(list, millrace.Block{})
		r.block(&list[len(list)-1])
	})
	return list
}

func (r *blockReader) block(b *millrace.Block) {
	r.object(func(name string) {
		switch name {
		case "type":
			b.Type = blockType(r.raw())
		case "text":
			b.Text = r.string()
		case "spans":
			b.Spans = r.spans()
		case "level":
			b.Level = r.int()
		case "anchor":
			b.Anchor = r.string()
		case "language":
			b.Language = r.string()
		case "ordered":
			b.Ordered = r.readTrue()
		case "reversed":
			b.Reversed = r.readTrue()
		case "start":
			b.Start = r.int()
		case "items":
			b.Items = r.items()
		case "rows":
			b.Rows = [][]millrace.Cell{}
			r.array(func() { b.Rows = append(b.Rows, r.cells()) })
		case "blocks":
			b.Blocks = r.blocks()
		case "caption":
			b.Caption = r.string()
		case "title":
			b.Title = r.string()
		case "kind":
			b.Kind = r.string()
		case "cite":
			b.Cite = r.string()
		case "url":
			b.URL = r.string()
		case "alt":
			b.Alt = r.string()
		default:
			r.unsupported = true
		}
	})
}

// blockType returns a constant, so that the input can be freed.
func blockType(name string) millrace.BlockType {
	for _, t := range []millrace.BlockType{millrace.TextBlock, millrace.HeadingBlock, millrace.ListBlock, millrace.CodeBlock, millrace.TableBlock} {
		if string(t) == name {
			return t
		}
	}
	return millrace.BlockType(strings.Clone(name))
}

// spanType returns a constant, so that the input can be freed.
func spanType(name string) millrace.SpanType {
	for _, t := range []millrace.SpanType{millrace.LinkSpan, millrace.CodeSpan, millrace.EmphasisSpan, millrace.StrongSpan} {
		if string(t) == name {
			return t
		}
	}
	return millrace.SpanType(strings.Clone(name))
}

func (r *blockReader) items() []millrace.Item {
	list := []millrace.Item{}
	r.array(func() {
		list = append(list, millrace.Item{})
		it := &list[len(list)-1]
		r.object(func(name string) {
			switch name {
			case "term":
				it.Term = r.string()
			case "text":
				it.Text = r.string()
			case "spans":
				it.Spans = r.spans()
			case "task":
				it.Task = r.readTrue()
			case "done":
				it.Done = r.readTrue()
			case "blocks":
				it.Blocks = r.blocks()
			default:
				r.unsupported = true
			}
		})
	})
	return list
}

func (r *blockReader) cells() []millrace.Cell {
	list := []millrace.Cell{}
	r.array(func() {
		list = append(list, millrace.Cell{})
		c := &list[len(list)-1]
		r.object(func(name string) {
			switch name {
			case "text":
				c.Text = r.string()
			case "spans":
				c.Spans = r.spans()
			case "header":
				c.Header = r.readTrue()
			case "colspan":
				c.Colspan = r.int()
			case "rowspan":
				c.Rowspan = r.int()
			default:
				r.unsupported = true
			}
		})
	})
	return list
}

func (r *blockReader) spans() []millrace.Span {
	list := []millrace.Span{}
	r.array(func() {
		list = append(list, millrace.Span{})
		s := &list[len(list)-1]
		r.object(func(name string) {
			switch name {
			case "type":
				s.Type = spanType(r.raw())
			case "start":
				s.Start = r.int()
			case "end":
				s.End = r.int()
			case "url":
				s.URL = r.string()
			default:
				r.unsupported = true
			}
		})
	})
	return list
}
