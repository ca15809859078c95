package extract

import (
	"bytes"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// codeText returns the text of a code block without leading empty lines.
func codeText(n *html.Node) string { return newCoder(n).text() }

// coder collects the text of a code block.
type coder struct {
	buf     []byte
	lines   *html.Node // element whose children are lines without line ends, or nil
	made    bool       // line ends are elements, so white space may come from the HTML source
	pre     bool
	cells   bool // each row of the table is one line
	numbers []number
	gutter  map[*html.Node]bool // elements with line numbers
}

// number is an element that contains only one number, or several consecutive ones.
type number struct {
	n          *html.Node
	start, end int // offsets in the text
	values     []int
}

// newCoder collects the text of a code block. If it contains line numbers, newCoder collects the
// text again without them.
func newCoder(n *html.Node) *coder {
	if n.DataAtom == atom.Pre {
		n = soleCode(n)
	}
	c := &coder{lines: unended(n), pre: n.DataAtom == atom.Pre || n.DataAtom == atom.Code}
	c.children(n)
	if c.gutter = c.findGutter(); c.gutter != nil {
		c.buf, c.made = c.buf[:0], false
		c.children(n)
	}
	return c
}

// soleCode returns the code element of a pre if only the white space of a template surrounds the
// element, or else the pre.
func soleCode(n *html.Node) *html.Node {
	c := firstChild(n)
	if c == nil || c.DataAtom != atom.Code || sibling(c, true) != nil || hasOwnText(n) {
		return n
	}
	if s := n.FirstChild; s == c || s.Type == html.TextNode && c.FirstChild != nil && strings.HasPrefix(c.FirstChild.Data, "\n") {
		return c
	}
	return n
}

// unended returns the element whose children are the lines of a block without line ends, or nil.
func unended(n *html.Node) *html.Node {
	for {
		first := firstChild(n)
		if first == nil || hasOwnText(n) {
			return nil
		}
		if second := sibling(first, true); second != nil && !(first.FirstChild == nil && !isAlike(first, second)) {
			break
		}
		if sibling(first, true) != nil {
			first = sibling(first, true)
		}
		n = first
	}
	first, nested, count := firstChild(n), false, 0
	for c := range children(n) {
		if count++; c.DataAtom != first.DataAtom || !isInline(c.DataAtom) || !isAlike(first, c) {
			return nil
		}
		nested = nested || firstChild(c) != nil
	}
	if count < 2 || !nested && first.DataAtom != atom.Code && !hasAttr(first, "data-line") && !hasWord(attr(first, "class"), "line", "row") {
		return nil
	}
	if hasLineEnd(n) {
		return nil
	}
	return n
}

// hasLineEnd reports whether an element contains a line end.
func hasLineEnd(n *html.Node) bool {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.DataAtom == atom.Br || c.Type == html.TextNode && strings.Contains(c.Data, "\n") || hasLineEnd(c) {
			return true
		}
	}
	return false
}

// text returns the code without leading empty lines. If the position of the end tag shows that a
// template has indented the code, text removes this indentation.
func (c *coder) text() string {
	s := strings.TrimLeft(string(c.buf), "\n")
	if c.made {
		s = strings.ReplaceAll(s, "\u00a0", " ")
	}
	end := strings.LastIndexByte(s, '\n') + 1
	if tag := s[end:]; c.pre && end > 0 && tag != "" && strings.Trim(tag, " \t") == "" {
		s = s[:end]
		if indent := indentation(s); len(indent) >= len(tag) {
			var b strings.Builder
			for line := range strings.Lines(s) {
				b.WriteString(strings.TrimPrefix(line, indent))
			}
			s = b.String()
		}
	}
	return s
}

// indentation returns the white space at the start of all lines that contain text.
func indentation(s string) string {
	indent, seen := "", false
	for line := range strings.SplitSeq(s, "\n") {
		text := strings.TrimLeft(line, " \t")
		if text == "" {
			continue
		}
		if at := line[:len(line)-len(text)]; !seen {
			indent, seen = at, true
		} else {
			for !strings.HasPrefix(at, indent) {
				indent = indent[:len(indent)-1]
			}
		}
	}
	return indent
}

// trimPadding removes the spaces that a template puts around every line.
func trimPadding(s string) string {
	before, after := 1, 2
	for line := range strings.SplitSeq(s, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		before = min(before, len(line)-len(strings.TrimLeft(line, " ")))
		after = min(after, len(line)-len(strings.TrimRight(line, " ")))
	}
	if after == 0 {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if len(line) >= before+after {
			lines[i] = line[before : len(line)-after]
		}
	}
	return strings.Join(lines, "\n")
}

func (c *coder) children(n *html.Node) {
	for e := n.FirstChild; e != nil; e = e.NextSibling {
		if n == c.lines && e.PrevSibling != nil && e.Type == html.ElementNode {
			c.buf = append(c.buf, '\n')
		}
		c.node(e)
	}
}

func (c *coder) node(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		if !isTemplateSpace(n) {
			c.buf = append(c.buf, n.Data...)
		}
		return
	case html.ElementNode:
	default:
		return
	}
	if n.DataAtom == atom.Br {
		c.buf, c.made = append(c.buf, '\n'), true
		return
	}
	if c.gutter[n] {
		return
	}
	if isExtra(n) {
		if v := counted(plainText(n)); c.gutter == nil && v != nil {
			for isOnly(n.Parent, n.DataAtom) {
				n = n.Parent
			}
			c.numbers = append(c.numbers, number{n, len(c.buf), len(c.buf), v})
		}
		return
	}
	block := !isInline(n.DataAtom)
	c.made = c.made || block
	block = block && n.DataAtom != atom.Td && !(c.cells && n.DataAtom == atom.Pre)
	if block && len(c.buf) > 0 && c.buf[len(c.buf)-1] != '\n' {
		c.buf = append(c.buf, '\n')
	}
	before := len(c.buf)
	c.children(n)
	if c.gutter == nil && len(c.buf)-before < 40_000 {
		if v := counted(string(c.buf[before:min(len(c.buf), before+8)])); v != nil {
			if v := counted(string(c.buf[before:])); v != nil {
				c.numbers = append(c.numbers, number{n, before, len(c.buf), v})
			}
		}
	}
	if block && sibling(n, true) != nil && (len(c.buf) == before || c.buf[len(c.buf)-1] != '\n') {
		c.buf = append(c.buf, '\n')
	}
}

// isTemplateSpace reports whether a text is the white space of a template between the lines of a
// listing: it is next to block elements and outside of a pre.
func isTemplateSpace(n *html.Node) bool {
	if strings.TrimSpace(n.Data) != "" || !strings.Contains(n.Data, "\n") {
		return false
	}
	adjacent := false
	for _, s := range []*html.Node{n.PrevSibling, n.NextSibling} {
		if s != nil && s.Type == html.ElementNode {
			if adjacent = true; isInline(s.DataAtom) && n.Parent.DataAtom != atom.Td {
				return false
			}
		}
	}
	return adjacent
}

// isExtra reports whether an element of a code block is not code: a control, a title, or a text that
// is hidden, cannot be selected, or appears only on hover.
func isExtra(n *html.Node) bool {
	if isNothing(n) || n.DataAtom == atom.Caption || n.DataAtom == atom.Tr && isTitleRow(n) || isHidden(n) != "" || hasAttr(n, "unselectable") || attr(n, "role") == "tooltip" {
		return true
	}
	if style := attr(n, "style"); strings.Contains(style, "user-select:none") || strings.Contains(style, "user-select: none") || strings.Contains(style, "visibility: hidden") {
		return true
	}
	class := attr(n, "class")
	if hasWord(class, "tooltip", "popup", "popover") && !hasWord(class, "trigger") || hasClass(n, "ttc", "boring", "hidden", "sr-only", "visually-hidden", "screen-reader-text") {
		return true
	}
	if n.DataAtom == atom.Div && findTag(n, atom.Button) != nil && !strings.Contains(plainText(n), "\n") && len(plainText(n)) < 40 {
		return true // a title bar inside the code element
	}
	return (n.DataAtom == atom.A && strings.HasPrefix(leadText(n), "[") || attr(n, "role") == "button" || hasAttr(n, "onclick") || hasWord(class, "copy", "btn", "button", "clipboard")) && isControl(plainText(n))
}

// isTitleRow reports whether a row is the title of a table: its only cell spans several columns.
func isTitleRow(n *html.Node) bool {
	td := firstChild(n)
	return td != nil && sibling(td, true) == nil && attr(td, "colspan") > "1"
}

// findGutter returns the elements that contain line numbers: they are of one kind, their numbers
// are consecutive, nothing precedes them on their lines, and every line with text has one.
func (c *coder) findGutter() map[*html.Node]bool {
	kinds := map[string][]number{}
	for _, m := range c.numbers {
		k := numberKind(m.n)
		kinds[k] = append(kinds[k], m)
	}
	var best []number
	count := 0
	for _, m := range c.numbers { // in document order; an outer element comes after its content
		k := numberKind(m.n)
		of := kinds[k]
		if of == nil {
			continue
		}
		delete(kinds, k)
		if values := c.numbersLines(of); values > 0 && values >= count {
			best, count = append(best[:0:0], of...), values
		}
	}
	if best == nil {
		return nil
	}
	gutter := map[*html.Node]bool{}
	for _, m := range best {
		gutter[m.n] = true
	}
	return gutter
}

// numberKind returns a key that is the same for all line numbers of a gutter.
func numberKind(n *html.Node) string {
	if n.DataAtom == atom.Td {
		return "td"
	}
	class, _, _ := strings.Cut(strings.TrimSpace(attr(n, "class")), " ")
	return n.Data + "." + strings.TrimRight(class, "0123456789")
}

// numbersLines returns how many line numbers the given elements contain, or 0 if they are not line
// numbers.
func (c *coder) numbersLines(of []number) int {
	rest := bytes.Clone(c.buf)
	count, last, spaced := 0, 0, true
	for _, m := range of {
		for _, v := range m.values {
			if count > 0 && (v < last || v == last && m.n.DataAtom != atom.Td) || v > last+1 && count > 0 && count < 2 {
				return 0
			}
			last = v
			count++
		}
		for i := m.start; i < m.end; i++ {
			if rest[i] != '\n' {
				rest[i] = ' '
			}
		}
		spaced = spaced && (m.end == len(rest) || rest[m.end] == ' ' || rest[m.end] == '\n')
	}
	for _, m := range of {
		start := bytes.LastIndexByte(rest[:m.start], '\n') + 1
		if len(bytes.TrimSpace(rest[start:m.start])) > 0 {
			return 0
		}
	}
	lines := 0
	for line := range bytes.SplitSeq(rest, []byte("\n")) {
		if len(bytes.TrimSpace(line)) > 0 {
			lines++
		}
	}
	first := of[0].n
	if lines == 0 || count < lines && (count*2 < lines || !isNumberPlace(first)) {
		return 0
	}
	if count == 1 || spaced {
		if !isNumberPlace(first) && (count < 2 || len(of) > 1 && of[0].end < len(c.buf) && c.buf[of[0].end] == ' ' && !strings.HasPrefix(plainLines(first), " ")) {
			return 0
		}
	}
	return count
}

// isNumberPlace reports whether an element is typical of a line number: it is a cell, refers to
// its line, or has a matching name.
func isNumberPlace(n *html.Node) bool {
	return n.DataAtom == atom.Td || hasAttr(n, "href") || hasAttr(n, "data-line-number") || hasAttr(n, "data-line") ||
		hasWord(attr(n, "class"), "lineno", "linenos", "linenumber", "ln", "lnt", "gutter", "num") || strings.Contains(strings.ToLower(attr(n, "class")), "line")
}

// counted returns the numbers of a text that consists of consecutive numbers, one per line, or nil.
// Spaces, periods, colons and bars may surround a number.
func counted(s string) []int {
	s = strings.Trim(s, " \n\t\u00a0")
	if s == "" || s[0] > '9' || s[0] < '0' {
		return nil
	}
	var values []int
	for line := range strings.SplitSeq(s, "\n") {
		line = strings.Trim(line, " \t\u00a0.:|│")
		if line == "" {
			continue
		}
		v, err := strconv.Atoi(line)
		if err != nil || len(line) > 6 || len(values) > 0 && v != values[len(values)-1]+1 {
			return nil
		}
		values = append(values, v)
	}
	return values
}

func isLineNumber(s string) bool { return s != "" && len(s) < 7 && strings.Trim(s, "0123456789") == "" }

// hasWord reports whether a class contains one of the words. Words end at hyphens, underscores,
// spaces and capital letters.
func hasWord(class string, words ...string) bool {
	if class == "" || len(class) > 500 {
		return false
	}
	for start := 0; start < len(class); {
		end := start + 1
		for end < len(class) && class[end] != '-' && class[end] != '_' && class[end] != ' ' && !(class[end] >= 'A' && class[end] <= 'Z' && class[end-1] >= 'a') {
			end++
		}
		for _, w := range words {
			if strings.EqualFold(strings.Trim(class[start:end], "-_ "), w) {
				return true
			}
		}
		start = end
	}
	return false
}

// firstChild returns the first child element of an element.
func firstChild(n *html.Node) *html.Node {
	if n.FirstChild == nil || n.FirstChild.Type == html.ElementNode {
		return n.FirstChild
	}
	return sibling(n.FirstChild, true)
}

// isOnly reports whether an element contains nothing but one element with the given tag.
func isOnly(n *html.Node, a atom.Atom) bool {
	c := firstChild(n)
	return c != nil && c.DataAtom == a && sibling(c, true) == nil && !hasOwnText(n)
}

// hasOwnText reports whether an element contains text outside of its child elements.
func hasOwnText(n *html.Node) bool {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.TextNode && strings.TrimSpace(c.Data) != "" {
			return true
		}
	}
	return false
}

// isAlike reports whether two elements have the same tag and, except for li and td, the same first
// class without a number at its end.
func isAlike(a, b *html.Node) bool {
	if a == nil || b == nil || a.DataAtom != b.DataAtom {
		return false
	}
	return a.DataAtom == atom.Li || numberKind(a) == numberKind(b)
}

// leadText returns the first non-empty text in an element.
func leadText(n *html.Node) string {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		t := strings.TrimSpace(c.Data)
		if c.Type != html.TextNode {
			t = leadText(c)
		}
		if t != "" {
			return t
		}
	}
	return ""
}

// plainLines returns the text of a column line by line.
func plainLines(n *html.Node) string {
	c := coder{gutter: map[*html.Node]bool{}}
	c.children(n)
	return string(c.buf)
}
