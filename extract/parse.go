package extract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	maxDepth      = 300 // open tags that flatten keeps; the parser allows 512 elements
	maxOpen       = 480 // open elements that the parser gets unchanged
	maxFormatting = 48  // open formatting tags; the parser reopens all of them in every paragraph
)

// parse returns the tree of a document as a browser without scripts builds it.
func parse(ctx context.Context, text []byte, maxNodes int) (*html.Node, error) {
	s := scanTags(text)
	if s.tags > maxNodes {
		return nil, fmt.Errorf("%w: %d tags, limit %d", millrace.ErrTooLarge, s.tags, maxNodes)
	}
	text = withEnds(text, s.unclosed)
	var doc *html.Node
	err := errDeep
	if s.formatting <= maxFormatting && s.depth <= maxOpen {
		doc, err = parseTree(ctx, text)
	}
	for _, level := range []flattening{flatFast, flatNesting, flatAll} {
		if level == flatFast && s.formatting > maxFormatting {
			continue // too expensive if the fast scan miscounts the formatting tags
		}
		if err == nil || ctx.Err() != nil {
			break
		}
		doc, err = parseTree(ctx, flatten(text, level))
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	}
	return doc, nil
}

var errDeep = errors.New("tags nest too deeply")

func parseTree(ctx context.Context, text []byte) (*html.Node, error) {
	return html.ParseWithOptions(&reader{ctx: ctx, text: text}, html.ParseOptionEnableScripting(false))
}

// reader feeds the parser and stops it when the context ends.
type reader struct {
	ctx  context.Context
	text []byte
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if len(r.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.text[:min(len(r.text), 1<<16)])
	r.text = r.text[n:]
	return n, nil
}

// scanned is the result of one scan of a document. The parser rejects a document late, and
// the work until then would be wasted.
type scanned struct {
	tags       int // upper bound of the number of tags
	formatting int // maximum number of formatting tags open at once
	depth      int // approximate number of elements open at once
	unclosed   []unclosed
}

// unclosed is the place where an unclosed text-only element should end: the end of the
// surrounding noscript.
type unclosed struct {
	at   int // offset of the place
	name atom.Atom
}

// withEnds closes elements. Browsers with scripts do not parse noscript, so an unclosed
// tracker frame in it goes unnoticed. Without scripts it would swallow the rest of the page as
// text.
func withEnds(text []byte, missing []unclosed) []byte {
	if len(missing) == 0 {
		return text
	}
	out := make([]byte, 0, len(text)+len(missing)*len("</noframes>"))
	done := 0
	for _, u := range missing {
		out = append(out, text[done:u.at]...)
		out = append(append(append(out, "</"...), u.name.String()...), '>')
		done = u.at
	}
	return append(out, text[done:]...)
}

// scanTags scans only for "<", so it is fast. Tag-like text inside scripts and comments counts
// as a tag, but not for the depth.
func scanTags(text []byte) scanned {
	var s scanned
	formatting, depth := 0, 0
	var raw atom.Atom // open element whose content is text only
	noscript, length := false, len(text)
	for {
		i := bytes.IndexByte(text, '<')
		if i < 0 || i+2 >= len(text) {
			return s
		}
		text = text[i+1:]
		at := length - len(text) - 1
		s.tags++
		step := 1
		if text[0] == '/' {
			text, step = text[1:], -1
		}
		var lower [12]byte
		end := 0
		for end < len(text) && end < len(lower) {
			c := text[end]
			if c|0x20 >= 'a' && c|0x20 <= 'z' {
				c |= 0x20
			} else if end == 0 || (c < '0' || c > '9') && c != '-' {
				break
			}
			lower[end] = c
			end++
		}
		if end == 0 || end < len(text) && end < len(lower) && !endsName(text[end]) {
			continue
		}
		a := atom.Lookup(lower[:end])
		if isFormatting(a) {
			formatting = max(formatting+step, 0)
			s.formatting = max(s.formatting, formatting)
		}
		if a == atom.Noscript {
			if step < 0 && noscript && raw != 0 {
				s.unclosed = append(s.unclosed, unclosed{at: at, name: raw})
				raw = 0
			}
			noscript = step > 0 && (noscript || raw == 0)
		}
		if raw != 0 {
			if a != raw || step > 0 {
				continue
			}
			raw = 0
		}
		depth = max(depth+step*opens(a), 0)
		if depth > s.depth && step > 0 {
			if tag := bytes.IndexByte(text, '>'); tag > 0 && text[tag-1] == '/' && depth > maxOpen/2 {
				depth -= opens(a) // SVG drawings contain hundreds of them
			}
			s.depth = max(s.depth, depth)
		}
		if step > 0 && isRawText(a) {
			raw = a
		}
	}
}

// endsName reports whether c ends the name of a tag.
func endsName(c byte) bool { return isSpace(c) || c == '>' || c == '/' }

// opens returns how many nested elements a tag opens until it is closed: a table comes with
// its rows and their cells, a list with an item. A tag that the next tag of its kind closes
// counts with its parent.
func opens(a atom.Atom) int {
	switch a {
	case atom.Table:
		return 5
	case atom.Ul, atom.Ol, atom.Menu, atom.Dir, atom.Dl, atom.Ruby, atom.Select:
		return 2
	case atom.Li, atom.Dt, atom.Dd, atom.P, atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr, atom.Td, atom.Th, atom.Caption, atom.Colgroup, atom.Option,
		atom.Optgroup, atom.Rb, atom.Rt, atom.Rp, atom.Rtc, atom.Html, atom.Head, atom.Body:
		return 0
	}
	if isVoid(a) {
		return 0
	}
	return 1
}

// isFormatting reports whether the parser reopens an unclosed element after the end of its
// block (HTML, "list of active formatting elements"). At most one link is open at a time.
func isFormatting(a atom.Atom) bool {
	switch a {
	case atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.S, atom.Small, atom.Strike, atom.Strong, atom.Tt, atom.U:
		return true
	}
	return false
}
