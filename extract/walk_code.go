package extract

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

var tagPattern = regexp.MustCompile(`</?[a-z][^<>]*>`)

// code emits a pre element: its text byte for byte, without the additions of highlighters.
func (w *walker) code(n *html.Node) {
	text := codeText(n)
	for p, steps := n, 0; p != nil && steps < 4; p, steps = p.Parent, steps+1 {
		if hasClass(p, "termy") { // a script (termynal) animates the text, which is HTML
			text = html.UnescapeString(tagPattern.ReplaceAllString(text, ""))
		}
	}
	if strings.TrimSpace(text) == "" {
		if find(n, func(c *html.Node) bool { return c.DataAtom == atom.Img || c.DataAtom == atom.Math }) != nil {
			w.flush()
			w.children(n)
		}
		return
	}
	if next := sibling(n, true); next != nil && next.DataAtom == atom.Pre && len(counted(text)) > 0 {
		return // these are the line numbers of the next element
	}
	w.emitCode(n, text)
}

// emitCode adds a code block with its label. The language is the one that an element declares, else
// the one that the label names, else the one detected in the text.
func (w *walker) emitCode(n *html.Node, text string) {
	l := w.labels[n]
	if c := attr(n, "title"); l.caption == "" && fileLanguage(c) != "" {
		l.caption = c
	}
	language := codeLanguage(n)
	if language == "" && l.language != "text" {
		language = l.language
		for _, part := range strings.Split(l.caption, ": ") {
			if language == "" {
				language = cleanLanguage(spokenLanguage(part))
			}
			if language == "" {
				language = fileLanguage(part)
			}
		}
	}
	if language == "" && l.language == "" {
		language = textLanguage(text)
	}
	w.emit(millrace.Block{Type: millrace.CodeBlock, Text: text, Language: language, Caption: l.caption})
}

// listing emits a code element that is a block. Adjacent code elements and their output become one
// listing if nothing else is around them.
func (w *walker) listing(n *html.Node) {
	if sibling(n, false) != nil || !hasClass(n, "block") {
		w.code(n)
		return
	}
	run := []*html.Node{n}
	for c := n.NextSibling; c != nil; c = c.NextSibling {
		switch {
		case c.DataAtom == atom.Pre, c.DataAtom == atom.Code && attr(c, "class") == attr(n, "class"):
			run = append(run, c)
			continue
		case c.Type == html.TextNode && strings.TrimSpace(c.Data) == "", c.Type == html.CommentNode:
			continue
		}
		run = nil
		break
	}
	if len(run) < 2 {
		w.code(n)
		return
	}
	var b strings.Builder
	for _, c := range run {
		t := coder{}
		t.children(c)
		b.Write(t.buf)
		if !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		w.l.skip[c] = true
	}
	w.emitCode(n, strings.TrimLeft(b.String(), "\n"))
}

// isCodeBlock reports whether a code element without a pre is a block: it has several lines or the
// class "block", and there is no other text beside it.
func isCodeBlock(n *html.Node) bool {
	for _, next := range []bool{false, true} {
		if s := sibling(n, next); s != nil && isInline(s.DataAtom) && s.DataAtom != atom.Code {
			return false
		}
	}
	for _, s := range []*html.Node{n.PrevSibling, n.NextSibling} {
		if s != nil && s.Type == html.TextNode && strings.TrimSpace(s.Data) != "" {
			return false
		}
	}
	switch n.Parent.DataAtom {
	case atom.Div, atom.Section, atom.Article, atom.Main, atom.Figure:
	default:
		return false
	}
	return hasClass(n, "block") || strings.Contains(strings.Trim(codeText(n), "\n "), "\n") && (hasClass(n, "hljs") || namedLanguage(n) != "" || findTag(n, atom.Br) != nil)
}

// lines emits the code of a box without a pre whose children are the lines of a listing: the rows
// of a table, or elements of one kind. It reports whether n is such a box. The lines must look like
// code, and must be numbered or inside an element that names a language.
func (w *walker) lines(n *html.Node) bool {
	text, ok := w.listings[n]
	if ok {
		w.emitCode(n, text)
	}
	return ok
}

func linesText(n *html.Node) (string, bool) {
	if n.DataAtom == atom.Table {
		return tableText(n)
	}
	first := firstChild(n)
	second := first
	for range 3 { // the first children may be other elements, such as anchors
		if second == nil {
			return "", false
		}
		if first, second = second, sibling(second, true); isAlike(first, second) {
			break
		}
	}
	if !isAlike(first, second) || first.DataAtom != atom.Div && first.DataAtom != atom.Li && first.DataAtom != atom.Span || hasOwnText(n) {
		return "", false
	}
	if one, two := counted(leadText(first)), counted(leadText(second)); len(one) != 1 || len(two) != 1 || two[0] != one[0]+1 {
		if first.DataAtom == atom.Span || !isListed(n) {
			return "", false
		}
	}
	c := newCoder(n)
	for s := n.FirstChild; s != nil; s = s.NextSibling {
		if s.DataAtom != 0 && s.DataAtom != atom.A && !isExtra(s) && (!isAlike(first, s) || !isCodeLine(s)) {
			return "", false
		}
	}
	text := trimPadding(c.text())
	return text, len(c.gutter) > 0 && (isPreformatted(n) || looksLikeCode(text)) || isListed(n) && looksLikeCode(text)
}

// isListed reports whether lines without numbers may be a listing: the element or its parent names a
// language, or the lines are spans with no text outside of them.
func isListed(n *html.Node) bool {
	lines, spans := 0, 0
	for s := range children(n) {
		lines++
		for steps := 0; s != nil && steps < 3; steps++ {
			if hasOwnText(s) || s.DataAtom != atom.Div && s.DataAtom != atom.Span && s.DataAtom != atom.Li {
				break
			}
			if s = firstChild(s); s != nil && s.DataAtom == atom.Span {
				spans++
				break
			}
		}
		if spans < lines {
			break
		}
	}
	return hasClass(n, "fragment") || namedLanguage(n) != "" || n.Parent != nil && namedLanguage(n.Parent) != "" || spans == lines
}

// isCodeLine reports whether an element may be a line of code: it contains no line end, and only
// code elements and elements without a meaning.
func isCodeLine(n *html.Node) bool {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch c.DataAtom {
		case atom.Br, atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Img, atom.Picture, atom.Ul, atom.Ol, atom.Table, atom.Svg, atom.Button, atom.Iframe:
			return false
		}
		if c.Type == html.TextNode && strings.Contains(c.Data, "\n") && !(n.DataAtom == atom.Td && strings.TrimSpace(c.Data) == "") || !isCodeLine(c) {
			return false
		}
	}
	return true
}

// isPreformatted reports whether an element or its parent has a style for code, or names a
// language.
func isPreformatted(n *html.Node) bool {
	for steps := 0; n != nil && steps < 2; n, steps = n.Parent, steps+1 {
		if style := attr(n, "style"); strings.Contains(style, "monospace") || strings.Contains(style, "white-space") || namedLanguage(n) != "" {
			return true
		}
	}
	return false
}

// looksLikeCode reports whether some lines are indented, or many end like lines of code.
func looksLikeCode(text string) bool {
	lines, marked := 0, 0
	for line := range strings.SplitSeq(text, "\n") {
		end := strings.TrimSpace(line)
		if end == "" {
			continue
		}
		lines++
		if strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t") {
			return true
		}
		if strings.ContainsAny(end[len(end)-1:], ";{}") || strings.Contains(end, "()") || strings.Contains(end, " = ") {
			marked++
		}
	}
	return marked*2 > lines
}

// tableText returns the code of a table with line numbers in separate cells, and whether n is such
// a table. The table has one row per line, or a single row with all lines.
func tableText(n *html.Node) (string, bool) {
	rows, gutters, code := 0, 0, 0
	hint := false // something indicates code
	var last *html.Node
	for tr := range rowsOf(n) {
		rows++
		cells, numbers := 0, 0
		for td := range children(tr) {
			cells++
			switch {
			case isNumberCell(td):
				numbers++
			case findTag(td, atom.Pre) != nil || isOnly(td, atom.Code):
				hint = true
				code++
			case !isCodeLine(td):
				return "", false
			default:
				last = td
				hint = hint || hasWord(attr(td, "class"), "code", "line", "source")
			}
		}
		if cells > 1 && numbers > 0 {
			gutters++
		}
		if rows == 1 && cells < 2 {
			rows = 0
		} else if gutters < rows && rows < 3 || cells > 4 {
			return "", false
		}
	}
	if gutters == 0 || gutters*2 < rows {
		return "", false
	}
	c := newCoder(n)
	c.cells = rows > 1
	text := c.text()
	if rows == 1 {
		for tr := range rowsOf(n) {
			for td := range children(tr) {
				if isNumberCell(td) || code > 0 && findTag(td, atom.Pre) == nil || code == 0 && td != last {
					continue
				}
				in := td
				if code > 0 {
					in = findTag(td, atom.Pre)
				}
				if text = codeText(in); code == 0 {
					text = strings.TrimSuffix(trimPadding(text), "\n") + "\n"
				}
				return text, hint || strings.Count(text, "\n") > 1
			}
		}
		return "", false
	}
	text = trimPadding(text)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text, hint || isPreformatted(n) || looksLikeCode(text) && len(c.gutter) == 0
}

// isNumberCell reports whether a cell contains only line numbers, possibly in an attribute that a
// style shows.
func isNumberCell(n *html.Node) bool {
	if t := leadText(n); t != "" {
		return t[0] <= '9' && len(counted(plainLines(n))) > 0
	}
	if isLineNumber(attr(n, "data-line-number")) {
		return true
	}
	for i := range n.Attr {
		if strings.HasPrefix(n.Attr[i].Key, "data-") && isLineNumber(n.Attr[i].Val) {
			return true
		}
	}
	return false
}
