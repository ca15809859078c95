package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// code emits a pre element: its text byte for byte, without what highlighters add.
func (w *walker) code(n *html.Node) {
	text := codeText(n)
	if isPlayed(n) {
		text = playedText(text)
	}
	if strings.TrimSpace(text) == "" {
		if find(n, func(c *html.Node) bool { return c.DataAtom == atom.Img || c.DataAtom == atom.Math }) != nil {
			w.flush()
			w.children(n)
		}
		return
	}
	w.emitCode(n, text, codeLanguage(n))
}

// isPlayed reports whether a script plays a code block as a terminal session: termynal, as
// FastAPI and related tools use it. The script treats the text of the block as HTML with
// terminal colours.
func isPlayed(n *html.Node) bool {
	for steps := 0; n != nil && steps < 4; n, steps = n.Parent, steps+1 {
		if hasClass(n, "termy") {
			return true
		}
	}
	return false
}

// playedText returns the text of HTML with its white space unchanged.
func playedText(s string) string {
	if !strings.ContainsAny(s, "<&") {
		return s
	}
	var b strings.Builder
	for z := html.NewTokenizer(strings.NewReader(s)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			b.Write(z.Text())
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken, html.CommentToken, html.DoctypeToken:
		}
	}
}

// emitCode adds a code block with its label.
func (w *walker) emitCode(n *html.Node, text, language string) {
	l := w.labels[n]
	if language == "" && l.language != "text" {
		language = l.language
	}
	w.emit(millrace.Block{Type: millrace.CodeBlock, Text: text, Language: language, Caption: l.caption})
}

// listing emits a code element that is a block. Adjacent code elements, and their output, form
// one listing if nothing else is around them.
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
	w.emitCode(n, strings.TrimLeft(b.String(), "\n"), codeLanguage(n))
}

// isFragment reports whether a div is a listing by lines in the form of Doxygen.
func isFragment(n *html.Node) bool {
	if !hasClass(n, "fragment") {
		return false
	}
	lines := 0
	for c := range children(n) {
		switch {
		case c.DataAtom == atom.Div && hasClass(c, "ttc"): // tooltip of a name
		case c.DataAtom == atom.Div && hasClass(c, "line"):
			lines++
		case c.DataAtom != atom.A || c.FirstChild != nil: // an anchor
			return false
		}
	}
	return lines > 0
}

// isCodeBlock reports whether a code element without a pre is a block: it has several lines,
// and its line contains nothing else.
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

// codeText returns the text of a code block without leading empty lines.
func codeText(n *html.Node) string {
	c := coder{lines: lineMarks(n), between: n.DataAtom == atom.Div}
	c.children(n)
	return c.text()
}

// lineMarks reports whether the block consists of elements for one line each and has no line
// ends of its own.
func lineMarks(n *html.Node) bool {
	count, ends := 0, false
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		for c := n.FirstChild; c != nil && !ends; c = c.NextSibling {
			switch {
			case c.Type == html.TextNode:
				ends = strings.Contains(c.Data, "\n")
			case c.DataAtom == atom.Br:
				ends = true
			case c.Type == html.ElementNode:
				if isLine(c) {
					count++
				}
				walk(c)
			}
		}
	}
	walk(n)
	return count > 1 && !ends
}

func isLine(n *html.Node) bool {
	return hasAttr(n, "data-line") || isCodeLine(n) || hasClass(n, "line", "code-line", "view-line", "cl", "token-line")
}

// isCodeLine reports whether an element is one of several code elements of a
// pre.
func isCodeLine(n *html.Node) bool {
	is := func(s *html.Node) bool { return s != nil && s.DataAtom == atom.Code }
	return is(n) && n.Parent.DataAtom == atom.Pre && (is(sibling(n, true)) || is(sibling(n, false)))
}

// coder collects the text of a code block.
type coder struct {
	buf     []byte
	lines   bool // line ends are only between elements for one line each
	begun   bool // the first of these elements was seen
	between bool // white space between these elements is not code
	made    bool // line ends are elements, so white space may be that of HTML
}

// text returns the code without leading empty lines.
func (c *coder) text() string {
	s := strings.TrimLeft(string(c.buf), "\n")
	if c.made {
		s = strings.ReplaceAll(s, "\u00a0", " ")
	}
	return s
}

func (c *coder) children(n *html.Node) {
	for e := n.FirstChild; e != nil; e = e.NextSibling {
		c.node(e)
	}
}

func (c *coder) node(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		if !c.between || strings.TrimSpace(n.Data) != "" || !hasClass(n.Parent, "fragment") {
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
	if isNothing(n) || isGutter(n) || isCodeHead(n) {
		return
	}
	block := !isInline(n.DataAtom)
	c.made = c.made || block
	if block && n.DataAtom != atom.Td && len(c.buf) > 0 && c.buf[len(c.buf)-1] != '\n' {
		c.buf = append(c.buf, '\n')
	}
	if c.lines && isLine(n) && !block {
		if c.begun {
			c.buf = append(c.buf, '\n')
		}
		c.begun = true
	}
	before := len(c.buf)
	c.children(n)
	if block && n.DataAtom != atom.Td && n.NextSibling != nil && (len(c.buf) == before || c.buf[len(c.buf)-1] != '\n') {
		c.buf = append(c.buf, '\n')
	}
}

// isGutter reports whether an element of a code block contains line numbers, a copy button or
// the like.
func isGutter(n *html.Node) bool {
	if n.DataAtom == atom.Button || hasAttr(n, "data-pseudo-content") || hasClass(n, "viewcode-back", "viewcode-link") {
		return true
	}
	class := strings.ToLower(attr(n, "class"))
	for t := range strings.FieldsSeq(class) {
		switch t {
		case "lineno", "linenos", "line-number", "line-numbers", "linenumber", "linenumbers", "ln", "lnt", "gutter", "hljs-ln-numbers", "line-numbers-rows",
			"rouge-gutter", "blob-num", "linenodiv", "gl", "line-num", "code-line-number", "react-syntax-highlighter-line-number", "lntd-gutter",
			"crayon-nums", "crayon-num", "ttc",
			"copy", "copy-button", "copy-btn", "copybtn", "code-copy", "copy-code-button":
			if t == "line-numbers" && (n.DataAtom == atom.Pre || n.DataAtom == atom.Code) {
				continue
			}
			return true
		}
	}
	style := attr(n, "style")
	if hasAttr(n, "data-line-number") || hasAttr(n, "unselectable") || attr(n, "aria-hidden") == "true" ||
		strings.Contains(style, "user-select:none") || strings.Contains(style, "user-select: none") {
		return isNumber(n)
	}
	return false
}

// isNumber reports whether the text of an element consists of line numbers.
func isNumber(n *html.Node) bool {
	t := plainText(n)
	return len(t) < 4000 && strings.Trim(t, "0123456789 ") == ""
}

// isCodeHead reports whether an element is a title bar inside the code element, as some sites
// have it.
func isCodeHead(n *html.Node) bool {
	return n.DataAtom == atom.Div && findTag(n, atom.Button) != nil && !strings.Contains(plainText(n), "\n") && len(plainText(n)) < 40
}

// codeLanguage returns the language that the block or one of its nearest
// ancestors names.
func codeLanguage(n *html.Node) string {
	if c := findTag(n, atom.Code); c != nil {
		if lang := namedLanguage(c); lang != "" {
			return lang
		}
	}
	for steps := 0; n != nil && n.Type == html.ElementNode && steps < 5; n, steps = n.Parent, steps+1 {
		if lang := namedLanguage(n); lang != "" {
			return lang
		}
	}
	return ""
}

func namedLanguage(n *html.Node) string {
	isCode := n.DataAtom == atom.Pre || n.DataAtom == atom.Code
	for i := range n.Attr {
		v := n.Attr[i].Val
		switch key := n.Attr[i].Key; {
		case key == "data-lang" || key == "data-language" || key == "data-code-lang":
			if lang := cleanLanguage(v); lang != "" {
				return lang
			}
		case key == "data-syntaxhighlighter-params":
			if lang := brush(v); lang != "" {
				return lang
			}
		case key == "lang" && isCode && v != "cs", // "cs" is also the language tag of Czech
			strings.HasPrefix(key, "data-") && (strings.HasSuffix(key, "-lang") || strings.HasSuffix(key, "-language")):
			if lang := cleanLanguage(v); languages[lang] {
				return lang
			}
		}
	}
	class := attr(n, "class")
	if class == "" || len(class) > 500 {
		return ""
	}
	if strings.Contains(class, "brush:") {
		return brush(class)
	}
	highlighted, words := false, 0
	for t := range strings.FieldsSeq(strings.ToLower(class)) {
		words++
		for _, prefix := range []string{"language-", "lang-", "mw-highlight-lang-", "highlight-source-", "highlight-text-", "highlight-", "src-", "brush-"} {
			if rest, ok := strings.CutPrefix(t, prefix); ok && (prefix != "src-" || n.DataAtom == atom.Pre) {
				if lang := cleanLanguage(rest); lang != "" && knownLanguage(prefix, lang) {
					return lang
				}
			}
		}
		switch t {
		case "sourcecode", "hljs", "highlight", "prettyprint", "src", "chroma", "codehilite", "prism", "shiki", "syntaxhighlighter", "hl":
			highlighted = true
		}
	}
	if highlighted || isCode && words <= 3 {
		for t := range strings.FieldsSeq(strings.ToLower(class)) {
			if languages[t] && (highlighted || words == 1 || len(t) > 1) {
				return t
			}
		}
	}
	return ""
}

// brush parses the parameters of SyntaxHighlighter, such as "brush: js; gutter: true".
func brush(s string) string {
	_, s, _ = strings.Cut(s, "brush:")
	s, _, _ = strings.Cut(strings.TrimSpace(s), ";")
	s, _, _ = strings.Cut(s, " ")
	return cleanLanguage(s)
}

func cleanLanguage(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	switch s {
	case "", "none", "plain", "plaintext", "text", "txt", "nohighlight", "no-highlight", "default", "auto", "undefined", "null":
		return ""
	}
	for i := range len(s) {
		if c := s[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '#' || c == '-' || c == '_' || c == '.') {
			return ""
		}
	}
	if len(s) > 30 {
		return ""
	}
	return s
}

// knownLanguage reports whether the text after a class prefix is a language: "highlight-" is
// also the prefix of other names.
func knownLanguage(prefix, lang string) bool {
	return prefix == "language-" || prefix == "lang-" || prefix == "mw-highlight-lang-" || prefix == "highlight-source-" || languages[lang]
}

// languages are the names that are recognised without a prefix.
var languages = func() map[string]bool {
	m := map[string]bool{}
	for l := range strings.FieldsSeq(`ada agda apache applescript asciidoc asm assembly awk bash basic bat batch c c# c++ clojure clj cmake cobol coffeescript
		console coq cpp crystal cs csharp css csv cuda cython d dart diff docker dockerfile elixir elm emacs-lisp erlang fish forth fortran fsharp
		gdscript git glsl go golang gradle graphql groovy handlebars haskell haxe hcl hs html http idris ini ipython ipython3 java javascript jinja
		js json json5 jsonc jsx julia kotlin kt latex lean lean4 less liquid lisp llvm lua make makefile markdown mathematica matlab md mermaid
		mysql nginx nim nix objc objective-c ocaml octave pascal perl pgsql php plpgsql postgresql powershell prolog properties protobuf ps1 puppet
		purescript py pycon pytb python python3 qml r racket raku rb rego rst ruby rust rs sas sass scala scheme scss sh shell shell-session smalltalk
		sml sol solidity sparql sql stata svelte swift tcl terraform tex toml ts tsx twig typescript typst vb vbnet verilog vhdl vim vue wasm
		wgsl xml xquery yaml yml zig zsh`) {
		m[l] = true
	}
	return m
}()

// codeTable emits the code of a highlighter's table, which has line numbers in separate cells.
// It reports whether n is such a table.
func (w *walker) codeTable(n *html.Node) bool {
	cells := 0
	var code *html.Node
	rows := false
	gutters := 0
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		for c := range children(n) {
			switch c.DataAtom {
			case atom.Td, atom.Th:
				cells++
				pre := findTag(c, atom.Pre)
				switch {
				case isGutter(c) || pre != nil && isNumber(pre) || hasClass(c, "lntd") && isNumber(c):
					gutters++
				case pre != nil && code == nil:
					code = pre
				case hasClass(c, "blob-code", "hljs-ln-code", "code", "line-content", "crayon-code"):
					rows = true
				}
			case atom.Tbody, atom.Thead, atom.Tr, atom.Tfoot:
				if cells < 20 {
					walk(c)
				}
			}
		}
	}
	walk(n)
	switch {
	case gutters == 0:
		return false
	case code != nil && cells <= 3:
		if text := codeText(code); strings.TrimSpace(text) != "" {
			lang := codeLanguage(code)
			if lang == "" {
				lang = codeLanguage(n)
			}
			w.emitCode(code, text, lang)
		}
		return true
	case rows && gutters*2 >= cells-1 && code == nil:
		if text := codeRows(n); strings.TrimSpace(text) != "" {
			w.emitCode(n, text, codeLanguage(n))
		}
		return true
	}
	return false
}

// codeRows returns the code of a table with a row for each line.
func codeRows(n *html.Node) string {
	var lines []string
	padded := true
	for tr := range rowsOf(n) {
		c := coder{}
		for td := range children(tr) {
			if !isGutter(td) {
				c.children(td)
			}
		}
		if len(c.buf) == 0 && tr.FirstChild == nil {
			continue
		}
		l := strings.ReplaceAll(string(c.buf), "\u00a0", " ")
		padded = padded && strings.HasPrefix(l, " ") && strings.HasSuffix(l, " ")
		lines = append(lines, l)
	}
	for i, l := range lines {
		if padded { // the template added the padding
			l = strings.TrimSuffix(l[1:], " ")
		}
		lines[i] = strings.TrimSuffix(l, "\n") + "\n"
	}
	return strings.Join(lines, "")
}
