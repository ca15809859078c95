package extract

import (
	"bytes"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

type flattening int

const (
	flatFast    flattening = iota // like flatNesting, with a fast scan of tags that crafted input can mislead
	flatNesting                   // drops tags deeper than maxDepth
	flatAll                       // keeps only paragraphs: always parses
)

// flatten returns a document without the tags that nest too deeply. The text stays. It drops
// all formatting tags if too many are open.
func flatten(text []byte, level flattening) []byte {
	out := make([]byte, 0, len(text))
	next := tokenized(text)
	if level == flatFast {
		next = (&scanner{text: text}).next
	}
	var stack []atom.Atom // open tags; 0 for a tag without an atom
	formatting := 0
	for {
		switch kind, a, raw := next(); kind {
		case html.ErrorToken:
			return out
		case html.TextToken, html.SelfClosingTagToken:
			out = append(out, raw...)
		case html.StartTagToken:
			if isVoid(a) || isRawText(a) {
				out = append(out, raw...)
				continue
			}
			if level == flatAll {
				switch {
				case a == atom.P:
					out = append(out, raw...)
				case !isInline(a):
					out = append(out, "<p>"...)
				}
				continue
			}
			stack = stack[:impliedEnd(stack, a)]
			keep := len(stack) < maxDepth
			if isFormatting(a) {
				if keep = keep && formatting < maxFormatting; keep {
					formatting++
				}
			}
			if keep {
				out = append(out, raw...)
			} else if !isInline(a) {
				out = append(out, ' ') // keeps words apart
			}
			if len(stack) < 8*maxDepth {
				stack = append(stack, a)
			}
		case html.EndTagToken:
			if isRawText(a) {
				out = append(out, raw...)
				continue
			}
			if level == flatAll {
				continue
			}
			at := nearest(stack, a)
			if at < 0 {
				if isFormatting(a) { // it may be open although its parent is closed
					out = append(out, raw...)
				}
				continue
			}
			stack = stack[:at]
			if isFormatting(a) {
				formatting = max(formatting-1, 0)
			}
			if at < maxDepth {
				out = append(out, raw...)
			}
		}
	}
}

// tokenized returns an iterator over the tokens of a document: their kind, the atom of a tag,
// their bytes. It skips comments and the like.
func tokenized(text []byte) func() (html.TokenType, atom.Atom, []byte) {
	z := html.NewTokenizer(bytes.NewReader(text))
	return func() (html.TokenType, atom.Atom, []byte) {
		kind := z.Next()
		raw := z.Raw()
		if kind != html.StartTagToken && kind != html.EndTagToken {
			return kind, 0, raw
		}
		name, _ := z.TagName()
		a := atom.Lookup(name)
		if a == atom.Noscript && kind == html.StartTagToken {
			z.NextIsNotRawText() // without scripts its content is markup
		}
		return kind, a, raw
	}
}

// nearest returns the index of the open tag that an end tag closes, or -1. It searches a
// limited number of tags.
func nearest(stack []atom.Atom, a atom.Atom) int {
	for i := len(stack) - 1; i >= 0 && i >= len(stack)-32; i-- {
		if stack[i] == a {
			return i
		}
	}
	return -1
}

// impliedEnd returns how many open tags stay open when another one starts. For example, an
// item ends the previous item. Otherwise a long list without end tags would look deep.
func impliedEnd(stack []atom.Atom, a atom.Atom) int {
	ends := func(of ...atom.Atom) int {
		for i := len(stack) - 1; i >= 0 && i >= len(stack)-32; i-- {
			for _, o := range of {
				if stack[i] == o {
					return i
				}
			}
			switch stack[i] {
			case atom.Ul, atom.Ol, atom.Menu, atom.Dir, atom.Dl, atom.Table, atom.Select:
				return len(stack)
			case atom.Td, atom.Th:
				if of[0] == atom.Li || of[0] == atom.Dd {
					return len(stack)
				}
			}
			if (of[0] == atom.P || of[0] == atom.A) && !isInline(stack[i]) {
				return len(stack)
			}
		}
		return len(stack)
	}
	switch a {
	case atom.Li:
		return ends(atom.Li)
	case atom.Dd, atom.Dt:
		return ends(atom.Dd, atom.Dt)
	case atom.Td, atom.Th:
		return ends(atom.Td, atom.Th)
	case atom.Tr:
		return ends(atom.Tr)
	case atom.Tbody, atom.Thead, atom.Tfoot:
		return ends(atom.Tbody, atom.Thead, atom.Tfoot)
	case atom.Option:
		return ends(atom.Option)
	case atom.A:
		return ends(atom.A)
	}
	if !isInline(a) {
		return ends(atom.P)
	}
	return len(stack)
}

func isVoid(a atom.Atom) bool {
	switch a {
	case atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta,
		atom.Param, atom.Source, atom.Track, atom.Wbr:
		return true
	}
	return false
}

// isRawText reports whether the content of an element is text only, which may look like tags.
func isRawText(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Title, atom.Textarea, atom.Iframe, atom.Noembed, atom.Noframes, atom.Xmp:
		return true
	}
	return false
}
