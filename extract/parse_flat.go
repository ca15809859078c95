package extract

import (
	"bytes"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// flatten returns a document without the tags that nest too deeply. If all is set, it replaces the
// start tags of blocks with those of paragraphs, and drops all other tags except those of void and
// text-only elements; such a document always parses. The text is kept. While too many formatting
// tags are open, flatten drops further ones.
func flatten(text []byte, all bool) []byte {
	out := make([]byte, 0, len(text))
	z := html.NewTokenizer(bytes.NewReader(text))
	var stack []atom.Atom // open tags that need an end tag
	depth, formatting := 0, 0
	for {
		kind, raw, a := z.Next(), z.Raw(), atom.Atom(0)
		if kind == html.StartTagToken || kind == html.EndTagToken {
			name, _ := z.TagName()
			a = atom.Lookup(name)
		}
		if a == atom.Noscript && kind == html.StartTagToken {
			z.NextIsNotRawText() // without scripts, the content of noscript is markup
		}
		keep := depth+opens(a) <= maxDepth
		switch {
		case kind == html.ErrorToken:
			return out
		case kind != html.StartTagToken && kind != html.EndTagToken, isVoid(a), isRawText(a):
			keep = true
		case all:
			if keep = false; kind == html.StartTagToken && !isInline(a) {
				out = append(out, "<p>"...)
			}
		case kind == html.StartTagToken:
			if isFormatting(a) {
				if keep = keep && formatting < maxFormatting; keep {
					formatting++
				}
			}
			if opens(a) > 0 {
				stack, depth = append(stack, a), depth+opens(a)
			}
			if !keep && !isInline(a) {
				out = append(out, ' ') // separates words
			}
		case opens(a) > 0:
			at := nearest(stack, a)
			if at < 0 {
				keep = isFormatting(a) // the element may be open although its parent is closed
				break
			}
			for _, open := range stack[at:] {
				depth -= opens(open)
			}
			stack, keep = stack[:at], depth+opens(a) <= maxDepth
			if isFormatting(a) {
				formatting = max(formatting-1, 0)
			}
		}
		if keep {
			out = append(out, raw...)
		}
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

// opens returns the depth that a tag adds until its end tag. A table includes its rows and cells, a
// list an item. A tag that the next tag of its kind closes counts with its parent, and adds 0.
func opens(a atom.Atom) int {
	switch a {
	case atom.Table:
		return 5
	case atom.Ul, atom.Ol, atom.Menu, atom.Dir, atom.Dl, atom.Ruby, atom.Select:
		return 2
	case atom.A, atom.Li, atom.Dt, atom.Dd, atom.P, atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr, atom.Td, atom.Th, atom.Caption, atom.Colgroup, atom.Option,
		atom.Optgroup, atom.Rb, atom.Rt, atom.Rp, atom.Rtc, atom.Html, atom.Head, atom.Body:
		return 0
	}
	return 1
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
