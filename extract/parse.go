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
	maxDepth      = 300 // tags open at once that flatten leaves; the parser allows 512 elements
	maxFormatting = 48  // formatting tags left open; the parser opens all of them again in every paragraph
)

// parse gives the tree of a document, as a browser without scripts sees it.
func parse(ctx context.Context, text []byte, maxNodes int) (*html.Node, error) {
	tags, open := survey(text)
	if tags > maxNodes {
		return nil, fmt.Errorf("%w: %d tags, the limit is %d", millrace.ErrTooLarge, tags, maxNodes)
	}
	var doc *html.Node
	err := errDeep
	if open <= maxFormatting {
		doc, err = parseTree(ctx, text)
	}
	for _, level := range []flattening{flatNesting, flatAll} {
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

// survey counts the tags of a document, and at most how many formatting tags
// are open at once. It looks for "<" only, so that it costs little.
func survey(text []byte) (tags, most int) {
	open := 0
	for {
		i := bytes.IndexByte(text, '<')
		if i < 0 || i+2 >= len(text) {
			return tags, most
		}
		text = text[i+1:]
		tags++
		step := 1
		if text[0] == '/' {
			text, step = text[1:], -1
		}
		end := 0
		for end < len(text) && end < 8 && (text[end]|0x20 >= 'a' && text[end]|0x20 <= 'z') {
			end++
		}
		if end == 0 || end == 8 || end < len(text) && text[end] >= '0' && text[end] <= '9' {
			continue
		}
		var name [8]byte
		for j, c := range text[:end] {
			name[j] = c | 0x20
		}
		if isFormatting(atom.Lookup(name[:end])) {
			if open = max(open+step, 0); open > most {
				most = open
			}
		}
	}
}

// isFormatting reports whether the parser opens an element again after the
// block that it was left open in (HTML, "list of active formatting elements").
// Of links, only one is ever open.
func isFormatting(a atom.Atom) bool {
	switch a {
	case atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.S, atom.Small, atom.Strike, atom.Strong, atom.Tt, atom.U:
		return true
	}
	return false
}

type flattening int

const (
	flatNesting flattening = iota // leaves out tags deeper than maxDepth
	flatAll                       // leaves paragraphs only: always parses
)

// flatten writes a document again without the tags that nest too deeply. The
// text stays. Formatting tags are left out wholly where too many are open.
func flatten(text []byte, level flattening) []byte {
	out := make([]byte, 0, len(text))
	z := html.NewTokenizer(bytes.NewReader(text))
	var stack []atom.Atom // open tags; 0 for one that was left out or has no atom
	formatting := 0
	for {
		switch z.Next() {
		case html.ErrorToken:
			return out
		case html.TextToken:
			out = append(out, z.Raw()...)
		case html.StartTagToken:
			raw := z.Raw()
			name, _ := z.TagName()
			a := atom.Lookup(name)
			keep := len(stack) < maxDepth
			switch {
			case isVoid(a) || isRawText(a):
				out = append(out, raw...)
				continue
			case level == flatAll:
				if keep = a == atom.P; !keep && !isInline(a) {
					out = append(out, "<p>"...)
				}
				if keep {
					out = append(out, raw...)
				}
				continue
			case isFormatting(a):
				if keep = keep && formatting < maxFormatting; keep {
					formatting++
				}
			}
			if keep {
				out = append(out, raw...)
			}
			if len(stack) < 8*maxDepth {
				stack = append(stack, a)
			}
		case html.EndTagToken:
			raw := z.Raw()
			name, _ := z.TagName()
			a := atom.Lookup(name)
			if isRawText(a) {
				out = append(out, raw...)
				continue
			}
			if level == flatAll {
				continue
			}
			// Look for the tag that this one ends, not endlessly far up.
			at := -1
			for i := len(stack) - 1; i >= 0 && i >= len(stack)-32; i-- {
				if stack[i] == a {
					at = i
					break
				}
			}
			if at < 0 {
				continue
			}
			stack = stack[:at]
			if isFormatting(a) {
				formatting = max(formatting-1, 0)
			}
			if at < maxDepth {
				out = append(out, raw...)
			}
		case html.SelfClosingTagToken:
			out = append(out, z.Raw()...)
		}
	}
}

func isVoid(a atom.Atom) bool {
	switch a {
	case atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta,
		atom.Param, atom.Source, atom.Track, atom.Wbr:
		return true
	}
	return false
}

func isRawText(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Title, atom.Textarea:
		return true
	}
	return false
}
