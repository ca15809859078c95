package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// texForms are the TeX forms of MathML elements. A digit stands for a child, 0 for all children.
var texForms = map[string]string{
	"msup": "{1}^{2}", "mover": "{1}^{2}", "msub": "{1}_{2}", "munder": "{1}_{2}", "msubsup": "{1}_{2}^{3}", "munderover": "{1}_{2}^{3}",
	"mfrac": `\frac{1}{2}`, "msqrt": `\sqrt{0}`, "mroot": `\sqrt[2]{1}`, "mtext": `\text{0}`, "ms": `\text{0}`,
	"mtable": `\begin{matrix}0\end{matrix}`, "mtr": `0\\`, "annotation": " ", "annotation-xml": " ", "mphantom": " ",
}

// mathTeX converts MathML without a TeX source to TeX, as far as presentation markup allows.
func mathTeX(n *html.Node, depth int) string {
	if n.Type == html.TextNode {
		return folded(n.Data)
	}
	var of []string
	for c := n.FirstChild; c != nil && depth < 50; c = c.NextSibling {
		if t := mathTeX(c, depth+1); c.Type == html.ElementNode || t != "" {
			of = append(of, t)
		}
	}
	sep := ""
	if n.Data == "mtr" {
		sep = " & "
	}
	all := strings.Join(of, sep)
	form := texForms[n.Data]
	if form == "" || strings.Contains(form, "{2}") && len(of) < 2 || strings.Contains(form, "{3}") && len(of) < 3 {
		return all
	}
	var b strings.Builder
	for _, r := range form {
		switch i := int(r - '1'); {
		case r == '0':
			b.WriteString(all)
		case i >= 0 && i < len(of):
			b.WriteString(of[i])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// textNode adds a text. If a script renders the formulas of the page, the text between formula
// delimiters becomes a formula.
func (w *walker) textNode(s string) {
	if w.in.pre || strings.IndexByte(s, '\\') < 0 && !strings.Contains(s, "$$") || w.inCode() || !w.texPage() {
		w.in.text(s)
		return
	}
	ends := map[string]int{} // next position of each delimiter, so that each is searched only once
	done, total := 0, len(s)
	for at := 0; at+1 < total; at++ {
		if s[at] != '\\' && s[at] != '$' {
			continue
		}
		var end string
		switch s[at : at+2] {
		case `\(`:
			end = `\)`
		case `\[`:
			end = `\]`
		case "$$":
			end = "$$"
		default:
			continue
		}
		found, known := ends[end]
		if !known || found >= 0 && found < at+2 {
			if found = strings.Index(s[at+2:], end); found >= 0 {
				found += at + 2
			}
			ends[end] = found
		}
		if found < 0 {
			continue
		}
		w.in.text(s[done:at])
		w.math(s[at+2:found], "tex", end != `\)`)
		done = found + 2
		at = done - 1
	}
	w.in.text(s[done:])
}

func (w *walker) inCode() bool {
	for _, i := range w.in.open {
		if w.in.spans[i].Type == millrace.CodeSpan {
			return true
		}
	}
	return false
}

// texPage reports whether the page loads a script that renders TeX.
func (w *walker) texPage() bool {
	if w.texScripts == 0 {
		w.texScripts = -1
		if w.c.html != nil && find(w.c.html, func(n *html.Node) bool {
			src := strings.ToLower(attr(n, "src"))
			return n.DataAtom == atom.Script && (strings.Contains(src, "mathjax") || strings.Contains(src, "katex"))
		}) != nil {
			w.texScripts = 1
		}
	}
	return w.texScripts > 0
}
