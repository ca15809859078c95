package extract

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// mathElement handles a formula in MathML, in an image, or in the markup of KaTeX or MathJax, and
// reports whether n is a formula.
func (w *walker) mathElement(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Img:
		if tex := imageMath(n); tex != "" { // the image may be hidden, next to a MathML alternative
			w.math(tex, "tex", hasClass(n, "mwe-math-fallback-image-display"))
			return true
		}
		return false
	case atom.Math:
		tex, display := annotation(n), attr(n, "display") == "block" || inDisplay(n)
		if tex != "" {
			w.math(tex, "tex", display)
			return true
		}
		if display {
			var b strings.Builder
			if html.Render(&b, n) == nil {
				w.math(b.String(), "mathml", true)
				return true
			}
		}
		w.math(mathTeX(n, 0), "tex", false)
		return true
	case atom.Script:
		t := strings.ToLower(attr(n, "type"))
		if strings.HasPrefix(t, "math/tex") && n.FirstChild != nil {
			w.math(n.FirstChild.Data, "tex", strings.Contains(t, "display"))
			return true
		}
		return false
	case atom.Span, atom.Div, atom.P, 0:
		if tex := wrappedMath(n); tex != "" {
			w.math(tex, "tex", attr(sole(n), "display") == "block")
			return true
		}
		if n.DataAtom == atom.P {
			return false
		}
		class := attr(n, "class")
		if class == "" && len(n.Attr) == 0 {
			return false
		}
		if tex := attr(n, "data-math"); tex != "" {
			w.math(tex, "tex", n.DataAtom == atom.Div || hasToken(class, "math-block"))
			return true
		}
		switch {
		case hasToken(class, "katex-html"):
			s := sibling(n, false)
			return s != nil && hasClass(s, "katex-mathml")
		case hasToken(class, "MathJax_Preview"), hasToken(class, "MathJax"), hasToken(class, "MathJax_SVG"), hasToken(class, "MathJax_Display"):
			// A script with the TeX source is next to the rendered formula.
			return texScript(n)
		}
	}
	return false
}

// texScript reports whether one of the next elements is the source of a formula.
func texScript(n *html.Node) bool {
	for range 3 {
		if n = sibling(n, true); n == nil {
			return false
		}
		if n.DataAtom == atom.Script {
			return strings.HasPrefix(attr(n, "type"), "math/")
		}
	}
	return false
}

// annotation returns the TeX source of a MathML element.
func annotation(n *html.Node) string {
	if a := find(n, func(c *html.Node) bool {
		return c.Data == "annotation" && strings.Contains(strings.ToLower(attr(c, "encoding")), "tex")
	}); a != nil && a.FirstChild != nil {
		return a.FirstChild.Data
	}
	if tex := attr(n, "alttext"); tex != "" {
		return tex
	}
	return attr(n, "data-latex")
}

// wrappedMath returns the TeX of an element whose only content is MathML generated from the TeX.
func wrappedMath(n *html.Node) string {
	if c := sole(n); c == nil || c.DataAtom != atom.Math {
		return ""
	}
	for i := range n.Attr {
		switch n.Attr[i].Key {
		case "data-entry", "data-tex", "data-latex", "data-math", "data-formula", "data-expr", "data-source":
			return n.Attr[i].Val
		}
	}
	return ""
}

// sole returns the only child of an element.
func sole(n *html.Node) *html.Node {
	if c := n.FirstChild; c != nil && c.NextSibling == nil {
		return c
	}
	return nil
}

func inDisplay(n *html.Node) bool {
	for p, steps := n.Parent, 0; p != nil && steps < 4; p, steps = p.Parent, steps+1 {
		if hasClass(p, "katex-display", "MathJax_Display", "math-block", "mwe-math-fallback-image-display") ||
			p.Data == "mjx-container" && attr(p, "display") == "true" {
			return true
		}
	}
	return false
}

// math adds a formula: as a block if it is a display formula and blocks are allowed, else as a part
// of the line.
func (w *walker) math(source, language string, display bool) {
	source = strings.TrimSpace(source)
	for _, style := range []string{`{\displaystyle `, `{\textstyle `} { // MediaWiki wraps every formula like this
		if s, ok := strings.CutPrefix(source, style); ok && strings.HasSuffix(s, "}") {
			source = strings.TrimSpace(s[:len(s)-1])
		}
	}
	if source == "" {
		return
	}
	if display && w.flat == 0 {
		w.emit(millrace.Block{Type: millrace.MathBlock, Text: source, Language: language})
		return
	}
	if w.in.start(millrace.MathSpan, "") {
		w.in.text(source)
		w.in.end()
	}
}

// imageMath returns the TeX of an image that shows a formula.
func imageMath(img *html.Node) string {
	if hasClass(img, "tex", "latex", "mwe-math-fallback-image-inline", "mwe-math-fallback-image-display") {
		return attr(img, "alt")
	}
	src := attr(img, "src")
	if i := strings.Index(src, "latex.codecogs.com/"); i >= 0 {
		if _, query, ok := strings.Cut(src[i:], "?"); ok {
			if tex, err := url.PathUnescape(query); err == nil {
				return tex
			}
		}
	}
	return ""
}
