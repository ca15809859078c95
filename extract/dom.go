package extract

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// attr returns an attribute's value, or "" if it is absent. n may be nil.
func attr(n *html.Node, key string) string {
	v, _ := lookupAttr(n, key)
	return v
}

func lookupAttr(n *html.Node, key string) (string, bool) {
	if n != nil {
		for i := range n.Attr {
			if n.Attr[i].Key == key && n.Attr[i].Namespace == "" {
				return n.Attr[i].Val, true
			}
		}
	}
	return "", false
}

func hasAttr(n *html.Node, key string) bool {
	_, ok := lookupAttr(n, key)
	return ok
}

// hasToken reports whether a list of words separated by white space, such as a class or a rel,
// contains a word, ignoring case.
func hasToken(list, word string) bool {
	for i := 0; i+len(word) <= len(list); i++ {
		start := i
		for i < len(list) && list[i] > ' ' {
			i++
		}
		if i-start == len(word) && strings.EqualFold(list[start:i], word) {
			return true
		}
	}
	return false
}

func hasClass(n *html.Node, words ...string) bool {
	class := attr(n, "class")
	if class == "" {
		return false
	}
	for _, w := range words {
		if hasToken(class, w) {
			return true
		}
	}
	return false
}

// isInline reports whether an element is part of a line of text. Unknown elements count as inline.
func isInline(a atom.Atom) bool {
	switch a {
	case 0, atom.A, atom.Abbr, atom.Acronym, atom.B, atom.Bdi, atom.Bdo, atom.Big, atom.Br, atom.Cite, atom.Code, atom.Data,
		atom.Del, atom.Dfn, atom.Em, atom.Font, atom.I, atom.Img, atom.Ins, atom.Kbd, atom.Label, atom.Map, atom.Mark,
		atom.Math, atom.Meter, atom.Nobr, atom.Output, atom.Picture, atom.Q, atom.Rb, atom.Rp, atom.Rt, atom.Ruby, atom.S,
		atom.Samp, atom.Small, atom.Span, atom.Strike, atom.Strong, atom.Sub, atom.Sup, atom.Svg, atom.Time, atom.Tt,
		atom.U, atom.Var, atom.Wbr, atom.Button, atom.Input, atom.Noscript, atom.Slot, atom.Progress, atom.Source,
		atom.Script, atom.Style, atom.Template, atom.Canvas, atom.Object, atom.Param, atom.Link, atom.Meta, atom.Area,
		atom.Mi, atom.Mn, atom.Mo, atom.Ms, atom.Mtext, atom.Annotation, atom.AnnotationXml:
		return true
	}
	return false
}

// isNothing reports whether an element never contains text of the page.
func isNothing(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Head, atom.Title, atom.Svg, atom.Canvas, atom.Input, atom.Select, atom.Option, atom.Optgroup,
		atom.Textarea, atom.Datalist, atom.Iframe, atom.Noframes, atom.Noembed, atom.Frameset, atom.Applet, atom.Progress, atom.Meter:
		return true
	case atom.Template:
		return !hasAttr(n, "shadowrootmode")
	case atom.Button:
		return !inControlText(n)
	case atom.Label:
		return !within(n, 3, atom.Li)
	case atom.Annotation, atom.AnnotationXml:
		return true
	}
	return false
}

// inControlText reports whether a button contains the text of a heading or a term, as in
// accordions. A button next to the text is only a control.
func inControlText(n *html.Node) bool {
	for p, steps := n.Parent, 3; p != nil && steps > 0; p, steps = p.Parent, steps-1 {
		switch p.DataAtom {
		case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Dt, atom.Summary:
			return true
		}
	}
	return false
}

// within reports whether one of the ancestors, up to steps levels above n, has one of the given tags.
func within(n *html.Node, steps int, of ...atom.Atom) bool {
	for p := n.Parent; p != nil && steps > 0; p, steps = p.Parent, steps-1 {
		for _, a := range of {
			if p.DataAtom == a {
				return true
			}
		}
	}
	return false
}

// isHidden returns how an element is marked as hidden, or "" if it is visible.
func isHidden(n *html.Node) string {
	for i := range n.Attr {
		switch v := n.Attr[i].Val; n.Attr[i].Key {
		case "hidden":
			if v != "until-found" && attr(n, "role") != "tabpanel" {
				return "hidden"
			}
		case "aria-hidden":
			if strings.EqualFold(v, "true") && attr(n, "role") != "tabpanel" {
				return "aria-hidden"
			}
		case "style":
			if len(v) >= 12 && strings.Contains(v, "none") && strings.Contains(strings.ReplaceAll(strings.ToLower(v), " ", ""), "display:none") &&
				attr(n, "role") != "tabpanel" {
				return "display: none"
			}
		}
	}
	return ""
}

func headingLevel(n *html.Node) int { return tagLevel(n.DataAtom) }

// tagLevel returns the rank of a heading tag, or 0 for other tags.
func tagLevel(a atom.Atom) int {
	if s := a.String(); len(s) == 2 && s[0] == 'h' && s[1] >= '1' && s[1] <= '6' {
		return int(s[1] - '0')
	}
	return 0
}

// wordCount counts the words of a text. In scripts without spaces between words, two characters
// count as one word.
func wordCount(s string) int32 {
	var n, wide int32
	for i := 0; i < len(s); {
		c := s[i]
		i++
		switch {
		case isWideByte(c):
			wide++
			continue
		case c|0x20 >= 'a' && c|0x20 <= 'z', c >= '0' && c <= '9', c >= 0xC3 && c != 0xE2:
			n++
		default:
			continue
		}
		for i < len(s) && s[i] > ' ' && !isWideByte(s[i]) {
			i++ // skip the rest of the word
		}
	}
	return n + (wide+1)/2
}

// isWideByte reports whether c is the first byte of a character of a script without spaces.
func isWideByte(c byte) bool { return c >= 0xE3 && c <= 0xED }

// plainText returns the text of a subtree in one line, without elements that never contain text. It
// stops after about 4,000 bytes.
func plainText(n *html.Node) string {
	if n.Type == html.ElementNode && !isNothing(n) {
		// Most elements contain only one text, which needs no copy.
		if c := n.FirstChild; c == nil {
			return ""
		} else if c.NextSibling == nil && c.Type == html.TextNode && len(c.Data) <= 4000 {
			return folded(c.Data)
		}
	}
	var buf [256]byte
	return folded(string(bytes.TrimSpace(appendPlain(buf[:0], n))))
}

// folded returns a text with its white space collapsed.
func folded(s string) string {
	s = strings.TrimSpace(s)
	before := byte('x')
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c >= utf8.RuneSelf || c == ' ' && before == ' ' {
			return string(appendFolded(make([]byte, 0, len(s)), s))
		}
		before = c
	}
	return s
}

// appendFolded appends a text with its white space collapsed.
func appendFolded(b []byte, s string) []byte {
	word, space := -1, false // start of the current word, and whether a word has ended
	for i := 0; i < len(s); {
		n := 0
		if s[i]-'!' >= utf8.RuneSelf-'!' {
			n = spaceLen(s[i:])
		}
		switch {
		case n > 0 && word >= 0:
			b, word, space = append(b, s[word:i]...), -1, true
		case n == 0 && word < 0:
			if word = i; space {
				b = append(b, ' ')
			}
		}
		i += max(n, 1)
	}
	if word >= 0 {
		b = append(b, s[word:]...)
	}
	return b
}

// spaceLen returns the length in bytes of a white space character at the beginning of a text, or 0.
func spaceLen(s string) int {
	switch c := s[0]; {
	case isSpace(c), c == '\v':
		return 1
	case c == 0xC2, c >= 0xE1 && c <= 0xE3:
		if r, n := utf8.DecodeRuneInString(s); unicode.IsSpace(r) {
			return n
		}
	}
	return 0
}

func appendPlain(b []byte, n *html.Node) []byte {
	if len(b) > 4000 {
		return b
	}
	switch n.Type {
	case html.TextNode:
		return append(b, n.Data[:min(len(n.Data), 4000)]...)
	case html.ElementNode:
		if n.DataAtom == atom.Br || !isInline(n.DataAtom) {
			b = append(b, ' ')
		}
		if isNothing(n) {
			return b
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b = appendPlain(b, c)
	}
	if n.Type == html.ElementNode && !isInline(n.DataAtom) {
		b = append(b, ' ')
	}
	return b
}

// children yields the child elements.
func children(n *html.Node) func(func(*html.Node) bool) {
	return func(yield func(*html.Node) bool) {
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			if c.Type == html.ElementNode && !yield(c) {
				return
			}
		}
	}
}

// find returns the first descendant, in document order, for which ok is true.
func find(n *html.Node, ok func(*html.Node) bool) *html.Node {
	for c := range children(n) {
		if ok(c) {
			return c
		}
		if f := find(c, ok); f != nil {
			return f
		}
	}
	return nil
}

func findTag(n *html.Node, a atom.Atom) *html.Node {
	return find(n, func(c *html.Node) bool { return c.DataAtom == a })
}

// plainName reports whether a text is a short name of ASCII letters, digits, hyphens and
// underscores that does not start with a digit.
func plainName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !(c|0x20 >= 'a' && c|0x20 <= 'z' || c == '-' || c == '_' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != "" && len(s) < 80
}
