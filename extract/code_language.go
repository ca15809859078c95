package extract

import (
	"encoding/json"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// codeLanguage returns the language that a block, a code element inside it, or one of its nearest
// ancestors declares, or "".
func codeLanguage(n *html.Node) string {
	box := n
	if c := find(n, func(c *html.Node) bool {
		return (c.DataAtom == atom.Code || c.DataAtom == atom.Pre) && namedLanguage(c) != ""
	}); c != nil {
		return namedLanguage(c)
	}
	for steps := 0; n != nil && n.Type == html.ElementNode && steps < 5; n, steps = n.Parent, steps+1 {
		if lang := namedLanguage(n); lang != "" {
			return lang
		}
	}
	for t := range strings.FieldsSeq(strings.ToLower(attr(box, "class"))) { // for example "listing-js"
		if name := t[strings.LastIndexAny(t, "-_")+1:]; len(name) > 1 && len(name) < len(t) && languages[name] {
			return name
		}
	}
	return ""
}

// textLanguage returns the language of a text if the first line or the whole text makes it certain,
// or else "".
func textLanguage(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if command, ok := strings.CutPrefix(line, "#!"); ok {
		for word := range strings.FieldsSeq(command) {
			name := strings.TrimRight(word[strings.LastIndexByte(word, '/')+1:], "0123456789.")
			if name == "node" {
				name = "javascript"
			}
			if languages[name] {
				return name
			}
		}
		return ""
	}
	switch start := strings.ToLower(line); {
	case strings.HasPrefix(start, "<?php"):
		return "php"
	case strings.HasPrefix(start, "<?xml "):
		return "xml"
	case strings.HasPrefix(start, "<!doctype html"):
		return "html"
	case strings.HasPrefix(start, "diff --git "), strings.HasPrefix(start, "--- ") && strings.Contains(text, "\n+++ "):
		return "diff"
	case strings.HasPrefix(start, ">>> "):
		return "pycon"
	case strings.HasPrefix(start, "{") && strings.Contains(text, `":`) && len(text) < 100_000 && json.Valid([]byte(text)):
		return "json"
	}
	return ""
}

// fileLanguage returns the language for a file name, or "".
func fileLanguage(name string) string {
	i := strings.LastIndexByte(name, '.')
	if i < 0 || strings.ContainsAny(name, " \t\n") {
		return ""
	}
	ext := strings.ToLower(name[i+1:])
	if lang := extensions[ext]; lang != "" {
		return lang
	}
	if languages[ext] {
		return ext
	}
	return ""
}

// extensions maps file extensions to languages with a different name.
var extensions = map[string]string{
	"py": "python", "rb": "ruby", "rs": "rust", "js": "javascript", "mjs": "javascript", "ts": "typescript", "kt": "kotlin", "hs": "haskell", "pl": "perl",
	"ps1": "powershell", "md": "markdown", "yml": "yaml", "h": "c", "hpp": "cpp", "cc": "cpp", "ex": "elixir", "exs": "elixir", "tf": "hcl", "htm": "html",
}

func namedLanguage(n *html.Node) string {
	isCode := n.DataAtom == atom.Pre || n.DataAtom == atom.Code || hasClass(n, "code")
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
	if i := strings.LastIndexByte(s, '/'); i > 0 { // a media type such as text/x-go
		s = strings.TrimPrefix(s[i+1:], "x-")
	}
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

// knownLanguage reports whether the text after a class prefix is a language, because "highlight-"
// is also the prefix of other names.
func knownLanguage(prefix, lang string) bool {
	return prefix == "language-" || prefix == "lang-" || prefix == "mw-highlight-lang-" || prefix == "highlight-source-" || languages[lang]
}

// languages are the names that are recognized without a reliable prefix.
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
