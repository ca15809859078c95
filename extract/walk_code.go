package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// code is a pre element: its text byte for byte, without what highlighters
// put around it.
func (w *walker) code(n *html.Node) {
	text := codeText(n)
	if strings.TrimSpace(text) == "" {
		if find(n, func(c *html.Node) bool { return c.DataAtom == atom.Img || c.DataAtom == atom.Math }) != nil {
			w.flush()
			w.children(n)
		}
		return
	}
	w.emit(millrace.Block{Type: millrace.CodeBlock, Text: text, Language: codeLanguage(n)})
}

// isCodeBlock reports whether a code element without a pre is a block: it has
// several lines, and nothing else is in its line of text.
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

// codeText gives the text of a code block, without empty lines before it.
func codeText(n *html.Node) string {
	c := coder{lines: lineMarks(n)}
	c.children(n)
	return strings.TrimLeft(string(c.buf), "\n")
}

// lineMarks counts the elements that stand for one line each, if the block
// has no line ends of its own.
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
	buf   []byte
	lines bool // there are no line ends but between elements that stand for a line
	begun bool // the first of them was seen
}

func (c *coder) children(n *html.Node) {
	for e := n.FirstChild; e != nil; e = e.NextSibling {
		c.node(e)
	}
}

func (c *coder) node(n *html.Node) {
	switch n.Type {
	case html.TextNode:
		c.buf = append(c.buf, n.Data...)
		return
	case html.ElementNode:
	default:
		return
	}
	if n.DataAtom == atom.Br {
		c.buf = append(c.buf, '\n')
		return
	}
	if isNothing(n) || isGutter(n) || isCodeHead(n) {
		return
	}
	block := !isInline(n.DataAtom)
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

// isGutter reports whether an element of a code block holds line numbers, a
// copy button or the like.
func isGutter(n *html.Node) bool {
	if n.DataAtom == atom.Button || hasAttr(n, "data-pseudo-content") {
		return true
	}
	class := strings.ToLower(attr(n, "class"))
	for t := range strings.FieldsSeq(class) {
		switch t {
		case "lineno", "linenos", "line-number", "line-numbers", "linenumber", "linenumbers", "ln", "lnt", "gutter", "hljs-ln-numbers", "line-numbers-rows",
			"rouge-gutter", "blob-num", "linenodiv", "gl", "line-num", "code-line-number", "react-syntax-highlighter-line-number", "lntd-gutter",
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

// isNumber reports whether the text of an element is line numbers only.
func isNumber(n *html.Node) bool {
	t := plainText(n)
	return len(t) < 4000 && strings.Trim(t, "0123456789 ") == ""
}

// isCodeHead reports whether an element is the title bar that some sites put
// into the code element.
func isCodeHead(n *html.Node) bool {
	return n.DataAtom == atom.Div && findTag(n, atom.Button) != nil && !strings.Contains(plainText(n), "\n") && len(plainText(n)) < 40
}

// codeLanguage gives the language that the block or one of its nearest
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
	for i := range n.Attr {
		switch n.Attr[i].Key {
		case "data-lang", "data-language", "data-code-lang":
			if lang := cleanLanguage(n.Attr[i].Val); lang != "" {
				return lang
			}
		}
	}
	class := attr(n, "class")
	if class == "" || len(class) > 500 {
		return ""
	}
	if _, brush, ok := strings.Cut(class, "brush:"); ok {
		brush, _, _ = strings.Cut(strings.TrimSpace(brush), ";")
		brush, _, _ = strings.Cut(brush, " ")
		return cleanLanguage(brush)
	}
	bare := false
	for t := range strings.FieldsSeq(strings.ToLower(class)) {
		for _, prefix := range []string{"language-", "lang-", "highlight-source-", "highlight-text-", "highlight-", "src-", "brush-"} {
			if rest, ok := strings.CutPrefix(t, prefix); ok && (prefix != "src-" || n.DataAtom == atom.Pre) {
				if lang := cleanLanguage(rest); lang != "" && knownLanguage(prefix, lang) {
					return lang
				}
			}
		}
		switch t {
		case "sourcecode", "hljs", "highlight", "prettyprint", "src", "chroma", "codehilite", "prism", "shiki":
			bare = true
		}
	}
	if bare {
		for t := range strings.FieldsSeq(strings.ToLower(class)) {
			if languages[t] {
				return t
			}
		}
	}
	return ""
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

// knownLanguage reports whether what follows a prefix of a class is a
// language: "highlight-" starts other names, too.
func knownLanguage(prefix, lang string) bool {
	return prefix == "language-" || prefix == "lang-" || prefix == "highlight-source-" || languages[lang]
}

// languages are the names that are recognised without a prefix that says so.
var languages = func() map[string]bool {
	m := map[string]bool{}
	for l := range strings.FieldsSeq(`ada apache asm assembly awk bash bat batch c c# c++ clojure clj cmake cobol coffeescript console cpp cs csharp css
		csv cuda cython d dart diff docker dockerfile elixir elm erlang fish fortran fsharp gdscript git glsl go golang gradle graphql groovy
		haskell hcl hs html http ini java javascript js json json5 jsonc jsx julia kotlin kt latex less lisp lua make makefile markdown
		matlab md mermaid mysql nginx nim nix objc objective-c ocaml pascal perl pgsql php plpgsql powershell postgresql prolog
		properties protobuf ps1 puppet py pycon pytb python python3 r racket raku rb rego ruby rust rs sass scala scheme scss
		sh shell sol solidity sql sparql svelte swift tcl terraform tex toml ts tsx typescript vb verilog vhdl vim vue wasm xml yaml yml
		zig zsh`) {
		m[l] = true
	}
	return m
}()

// codeTable gives the code element of a table that a highlighter made, with
// the numbers in cells of their own; nil if the table is none.
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
				case hasClass(c, "blob-code", "hljs-ln-code", "code", "line-content"):
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
			w.emit(millrace.Block{Type: millrace.CodeBlock, Text: text, Language: lang})
		}
		return true
	case rows && gutters*2 >= cells-1 && code == nil:
		c := coder{}
		for tr := range rowsOf(n) {
			for td := range children(tr) {
				if !isGutter(td) {
					c.children(td)
				}
			}
			if len(c.buf) > 0 {
				c.buf = append(c.buf, '\n')
			}
		}
		if strings.TrimSpace(string(c.buf)) != "" {
			w.emit(millrace.Block{Type: millrace.CodeBlock, Text: string(c.buf), Language: codeLanguage(n)})
		}
		return true
	}
	return false
}
