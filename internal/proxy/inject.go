package proxy

import "io"

// injector inserts bytes into the head of an HTML page while it streams. It inserts them before
// the first tag that may end the head or is not a simple head element. That position is valid with
// or without head tags, and is after an early declaration of the character set. It buffers only
// the start of one tag. Pages in encodings incompatible with ASCII pass unchanged.
type injector struct {
	w       io.Writer
	insert  []byte
	state   state
	offset  int64
	pending []byte // start of the current tag: "<" and its name
	raw     string // name of the element whose text is read, or ""
	match   int    // number of matched bytes of "</" and raw
	dashes  int    // number of dashes that may end a comment
	bang    bool   // "!" has followed the dashes
	quote   byte   // quote character of an attribute value
}

// state is the state of the parser. The names are those of the HTML standard,
// section 13.2.5, which has more states.
type state uint8

const (
	inData state = iota
	inTagOpen
	inAttributes
	beforeValue
	inUnquoted
	inQuoted
	inDeclaration // <!DOCTYPE, <?xml, until ">"
	inComment
	inRaw // text of title and style
	over  // elements inserted, or insertion impossible
)

// longestName is the length of the longest tag start that matters, "</title".
const longestName = 7

// Write writes p to the underlying writer, and inserts the elements at the end of the head.
func (in *injector) Write(p []byte) (int, error) {
	if in.state == over {
		return in.w.Write(p)
	}
	from := 0 // p[:from] is already written or in pending
	for i, c := range p {
		if c == 0 || in.offset == 0 && c >= 0xFE {
			// The content is UTF-16, UTF-32 or binary.
			return len(p), in.end(nil, p[from:])
		}
		switch in.state {
		case inData:
			switch {
			case c == '<':
				if _, err := in.w.Write(p[from:i]); err != nil {
					return from, err
				}
				from = i + 1
				in.pending = append(in.pending[:0], c)
				in.state = inTagOpen
			case isSpace(c), in.offset < 3 && c == "\xEF\xBB\xBF"[in.offset]:
			default:
				if _, err := in.w.Write(p[from:i]); err != nil {
					return from, err
				}
				return len(p), in.end(in.insert, p[i:])
			}
		case inTagOpen:
			insert, err := in.tagOpen(c)
			if err != nil {
				return from, err
			}
			if insert {
				return len(p), in.end(in.insert, p[i:])
			}
			if in.state == inTagOpen {
				from = i + 1 // the byte is buffered
			} else {
				from = i
			}
		default:
			in.skip(c)
		}
		in.offset++
	}
	if _, err := in.w.Write(p[from:]); err != nil {
		return from, err
	}
	return len(p), nil
}

// Close ends the page.
func (in *injector) Close() error {
	insert := in.insert
	if in.state != inData {
		insert = nil
	}
	if in.state == over {
		return nil
	}
	return in.end(insert, nil)
}

// end writes the insertion, the buffer and the rest. Later bytes pass unchanged.
func (in *injector) end(insert, rest []byte) error {
	in.state = over
	for _, b := range [][]byte{insert, in.pending, rest} {
		if len(b) > 0 {
			if _, err := in.w.Write(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// tagOpen reads one byte after "<". It returns true if the elements belong before the tag.
// Otherwise it either buffers the byte, or changes the state, in which case the caller writes the
// byte.
func (in *injector) tagOpen(c byte) (bool, error) {
	name := in.pending[1:]
	letter := 'a' <= c|0x20 && c|0x20 <= 'z'
	switch {
	case len(name) == 0:
		if c == '?' {
			return false, in.pass(inDeclaration)
		}
		in.pending = append(in.pending, c)
		if !letter && c != '!' && c != '/' {
			in.pending = in.pending[:1]
			return true, nil
		}
		return false, nil
	case name[0] == '!':
		switch {
		case c == '-' && len(name) == 1:
			in.pending = append(in.pending, c)
			return false, nil
		case c == '-':
			in.dashes, in.bang = 2, false
			return false, in.pass(inComment)
		}
		err := in.pass(inDeclaration)
		in.skip(c)
		return false, err
	case letter || '0' <= c && c <= '9':
		if len(in.pending) == longestName {
			return true, nil
		}
		in.pending = append(in.pending, c)
		return false, nil
	case !isSpace(c) && c != '/' && c != '>':
		return true, nil
	}
	switch lower(name) {
	case "html", "head", "meta", "link", "base":
		in.raw = ""
	case "title", "style":
		in.raw = lower(name)
	case "/title", "/style", "/meta", "/link", "/base":
		in.raw = "" // a stray end tag
	default:
		return true, nil
	}
	err := in.pass(inAttributes)
	in.skip(c)
	return false, err
}

// pass writes the buffer and changes the state.
func (in *injector) pass(to state) error {
	in.state = to
	_, err := in.w.Write(in.pending)
	in.pending = in.pending[:0]
	return err
}

// skip reads one byte of a part in which nothing is inserted.
func (in *injector) skip(c byte) {
	switch in.state {
	case inAttributes:
		switch c {
		case '>':
			in.close()
		case '=':
			in.state = beforeValue
		}
	case beforeValue:
		switch {
		case c == '"' || c == '\'':
			in.state, in.quote = inQuoted, c
		case c == '>':
			in.close()
		case !isSpace(c):
			in.state = inUnquoted
		}
	case inUnquoted:
		if c == '>' {
			in.close()
		} else if isSpace(c) {
			in.state = inAttributes
		}
	case inQuoted:
		if c == in.quote {
			in.state = inAttributes
		}
	case inDeclaration:
		if c == '>' {
			in.state = inData
		}
	case inComment:
		switch {
		case c == '>' && (in.dashes >= 2 || in.bang):
			in.state = inData
		case c == '-':
			in.dashes++
			in.bang = false
		default:
			in.bang = c == '!' && in.dashes >= 2
			in.dashes = 0
		}
	case inRaw:
		in.rawText(c)
	}
}

// close ends a tag.
func (in *injector) close() {
	in.state = inData
	if in.raw != "" {
		in.state, in.match = inRaw, 0
	}
}

// rawText reads text up to the end tag of its element.
func (in *injector) rawText(c byte) {
	end := len("</") + len(in.raw)
	switch {
	case in.match == end && (isSpace(c) || c == '/' || c == '>'):
		in.raw = ""
		in.state = inAttributes
		in.skip(c)
	case in.match < end && (in.match == 0 && c == '<' || in.match == 1 && c == '/' ||
		in.match >= 2 && c|0x20 == in.raw[in.match-2]):
		in.match++
	case c == '<':
		in.match = 1
	default:
		in.match = 0
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }

// lower returns a short name in lower case.
func lower(name []byte) string {
	var b [longestName]byte
	n := copy(b[:], name)
	for i := range n {
		if 'A' <= b[i] && b[i] <= 'Z' {
			b[i] |= 0x20
		}
	}
	return string(b[:n])
}
