package extract

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/millrace/millrace"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	maxDepth      = 300 // maximum number of open tags that flatten keeps; the parser allows 512 elements
	maxFormatting = 48  // maximum number of open formatting tags; the parser reopens all of them in every paragraph
)

// parse returns the tree of a document as a browser without scripts builds it.
func parse(ctx context.Context, text []byte, maxNodes int) (*html.Node, error) {
	text, tags, formatting := scanTags(text)
	if tags > maxNodes {
		return nil, fmt.Errorf("%w: %d tags, limit %d", millrace.ErrTooLarge, tags, maxNodes)
	}
	var doc *html.Node
	err := millrace.ErrTooLarge
	if formatting <= maxFormatting {
		doc, err = parseTree(ctx, text)
	}
	for _, all := range []bool{false, true} {
		if err != nil && ctx.Err() == nil {
			doc, err = parseTree(ctx, flatten(text, all))
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	}
	return doc, nil
}

func parseTree(ctx context.Context, text []byte) (*html.Node, error) {
	return html.ParseWithOptions(&reader{ctx: ctx, text: text}, html.ParseOptionEnableScripting(false))
}

// reader passes the document to the parser, and stops when the context ends.
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

// scanTags returns an upper bound on the number of tags of a document, and the maximum number of
// formatting tags that are open at the same time. It searches only for "<", so it is fast. It also
// closes text-only elements that are still open at the end of a noscript, such as the iframe of a
// tracker. Otherwise, without scripts, the rest of the page would be their text.
func scanTags(text []byte) (closed []byte, tags, formatting int) {
	var raw atom.Atom // open element that contains only text
	noscript, open, done := false, 0, 0
	for at := 0; ; at++ {
		i := bytes.IndexByte(text[at:], '<')
		if i < 0 || at+i+2 >= len(text) {
			break
		}
		at += i
		tags++
		step, a := 1, tagName(text[at+1:])
		if text[at+1] == '/' {
			step, a = -1, tagName(text[at+2:])
		}
		if isFormatting(a) {
			open = max(open+step, 0)
			formatting = max(formatting, open)
		}
		if a == atom.Noscript {
			if step < 0 && noscript && raw != 0 {
				closed = append(append(closed, text[done:at]...), "</"+raw.String()+">"...)
				done, raw = at, 0
			}
			noscript = step > 0 && (noscript || raw == 0)
		}
		switch {
		case step > 0 && raw == 0 && isRawText(a):
			raw = a
		case step < 0 && raw == a:
			raw = 0
		}
	}
	if done == 0 {
		return text, tags, formatting
	}
	return append(closed, text[done:]...), tags, formatting
}

// tagName returns the atom of the name at the beginning of a tag, or 0 for another name.
func tagName(text []byte) atom.Atom {
	var lower [12]byte // longer than all relevant names
	for i, c := range text[:min(len(text), len(lower))] {
		if isSpace(c) || c == '>' || c == '/' {
			return atom.Lookup(lower[:i])
		}
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		lower[i] = c
	}
	return 0
}

// isFormatting reports whether the parser reopens an unclosed element after the end of its
// block (HTML, "list of active formatting elements"). Links do not count, because at most one link
// is open at a time.
func isFormatting(a atom.Atom) bool {
	switch a {
	case atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.S, atom.Small, atom.Strike, atom.Strong, atom.Tt, atom.U:
		return true
	}
	return false
}
