package extract

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// mathElement handles an element that is a formula, in the forms that
// browsers, KaTeX and MathJax give it, and reports whether it was one.
func (w *walker) mathElement(n *html.Node) bool {
	switch n.DataAtom {
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
		w.children(n)
		return true
	case atom.Script:
		t := strings.ToLower(attr(n, "type"))
		if strings.HasPrefix(t, "math/tex") && n.FirstChild != nil {
			w.math(n.FirstChild.Data, "tex", strings.Contains(t, "display"))
			return true
		}
		return false
	case atom.Span, atom.Div, 0:
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
			// A script with the TeX stands beside what was made of it.
			return texScript(n)
		}
	}
	return false
}

// texScript reports whether one of the next elements is a formula's source.
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

func annotation(n *html.Node) string {
	if a := find(n, func(c *html.Node) bool {
		return c.Data == "annotation" && strings.Contains(attr(c, "encoding"), "tex")
	}); a != nil && a.FirstChild != nil {
		return a.FirstChild.Data
	}
	return attr(n, "alttext")
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

// math adds a formula: a block if it is displayed and stands alone, else a
// part of the line.
func (w *walker) math(source, language string, display bool) {
	source = strings.TrimSpace(source)
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

// imageMath gives the TeX of an image that shows a formula.
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
