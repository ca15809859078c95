package extract

import (
	"bytes"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// scanner returns the tokens of a document many times faster than the tokenizer: it finds the
// ends of tags, and reads only their names.
type scanner struct {
	text []byte
	raw  atom.Atom // the open text-only element
}

func (s *scanner) next() (html.TokenType, atom.Atom, []byte) {
	if len(s.text) == 0 {
		return html.ErrorToken, 0, nil
	}
	if s.raw != 0 {
		end := rawEnd(s.text, s.raw)
		s.raw = 0
		if end > 0 {
			return html.TextToken, 0, s.take(end)
		}
	}
	switch i := bytes.IndexByte(s.text, '<'); {
	case i < 0:
		return html.TextToken, 0, s.take(len(s.text))
	case i > 0:
		return html.TextToken, 0, s.take(i)
	}
	name := 1
	if len(s.text) > 2 && s.text[1] == '/' {
		name = 2
	}
	a, end := tagName(s.text[name:])
	if end == 0 {
		return html.TextToken, 0, s.take(markEnd(s.text))
	}
	end, closed := tagEnd(s.text, name+end)
	switch {
	case name == 2:
		return html.EndTagToken, a, s.take(end)
	case closed:
		return html.SelfClosingTagToken, 0, s.take(end)
	case isRawText(a):
		s.raw = a
	}
	return html.StartTagToken, a, s.take(end)
}

func (s *scanner) take(n int) []byte {
	out := s.text[:n]
	s.text = s.text[n:]
	return out
}

// tagName returns the atom of the tag name at the beginning of a text and its length, or 0.
func tagName(text []byte) (atom.Atom, int) {
	var lower [16]byte
	end := 0
	for end < len(text) && !endsName(text[end]) {
		c := text[end]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if end == 0 && (c < 'a' || c > 'z') {
			return 0, 0
		}
		if end < len(lower) {
			lower[end] = c
		}
		end++
	}
	if end > len(lower) {
		return 0, end
	}
	return atom.Lookup(lower[:end]), end
}

// tagEnd returns the end of a tag, and whether the tag is self-closing. A ">" inside quotes
// does not end it.
func tagEnd(text []byte, i int) (end int, closed bool) {
	for i < len(text) {
		switch text[i] {
		case '>':
			return i + 1, closed
		case '/':
			closed = true
			i++
			continue
		case '=':
			closed = false
			for i++; i < len(text) && isSpace(text[i]); i++ {
			}
			if i < len(text) && (text[i] == '"' || text[i] == '\'') {
				n := bytes.IndexByte(text[i+1:], text[i])
				if n < 0 {
					return len(text), false
				}
				i += n + 2
				continue
			}
			for i < len(text) && text[i] != '>' && !isSpace(text[i]) {
				i++
			}
			continue
		}
		closed = false
		i++
	}
	return len(text), false
}

// markEnd returns the end of a comment, a doctype or the like. Anything else is one character
// of text.
func markEnd(text []byte) int {
	if len(text) < 2 || text[1] != '!' && text[1] != '?' && text[1] != '/' {
		return 1
	}
	if !bytes.HasPrefix(text, []byte("<!--")) {
		if i := bytes.IndexByte(text, '>'); i >= 0 {
			return i + 1
		}
		return len(text)
	}
	for i := 2; ; i++ {
		n := bytes.Index(text[i:], []byte("--"))
		if n < 0 {
			return len(text)
		}
		i += n
		if rest := text[i+2:]; bytes.HasPrefix(rest, []byte(">")) {
			return i + 3
		} else if i > 3 && bytes.HasPrefix(rest, []byte("!>")) {
			return i + 4
		}
	}
}

// rawEnd returns the end of the content of a text-only element.
func rawEnd(text []byte, a atom.Atom) int {
	for at := 0; ; at++ {
		i := bytes.Index(text[at:], []byte("</"))
		if i < 0 {
			return len(text)
		}
		at += i
		if name, _ := tagName(text[at+2:]); name == a {
			return at
		}
	}
}
