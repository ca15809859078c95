package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// mathTeX converts MathML without a source to TeX, as far as presentation markup allows:
// superscripts and subscripts, fractions, roots and matrices.
func mathTeX(n *html.Node) string {
	var b strings.Builder
	texChildren(&b, n, 0)
	return folded(b.String())
}

func texChildren(b *strings.Builder, n *html.Node, depth int) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		tex(b, c, depth+1)
	}
}

func tex(b *strings.Builder, n *html.Node, depth int) {
	if n.Type == html.TextNode {
		b.WriteString(strings.TrimSpace(n.Data))
		return
	}
	if n.Type != html.ElementNode || depth > 50 || b.Len() > 1<<16 {
		return
	}
	var of []*html.Node
	for c := range children(n) {
		of = append(of, c)
	}
	group := func(i int) {
		if i == 0 && len(of) > 1 && n.Data[0] == 'm' && (n.Data[1] == 's' || n.Data[1] == 'u') {
			if t := plainText(of[0]); len(t) == 1 { // a letter needs no braces
				b.WriteString(t)
				return
			}
		}
		b.WriteByte('{')
		if i < len(of) {
			tex(b, of[i], depth+1)
		}
		b.WriteByte('}')
	}
	switch n.Data {
	case "annotation", "annotation-xml", "mphantom":
	case "mtext", "ms":
		b.WriteString(`\text{` + plainText(n) + "}")
	case "mi":
		if t := plainText(n); len(t) > 1 && t[0] < 0x80 { // a name such as sin
			b.WriteString(`\mathrm{` + t + "}")
			return
		}
		texChildren(b, n, depth)
	case "msup", "mover":
		group(0)
		b.WriteByte('^')
		group(1)
	case "msub", "munder":
		group(0)
		b.WriteByte('_')
		group(1)
	case "msubsup", "munderover":
		group(0)
		b.WriteByte('_')
		group(1)
		b.WriteByte('^')
		group(2)
	case "mfrac":
		b.WriteString(`\frac`)
		group(0)
		group(1)
	case "msqrt":
		b.WriteString(`\sqrt{`)
		texChildren(b, n, depth)
		b.WriteByte('}')
	case "mroot":
		if len(of) == 2 {
			b.WriteString(`\sqrt[`)
			tex(b, of[1], depth+1)
			b.WriteByte(']')
			group(0)
		}
	case "mtable":
		b.WriteString(`\begin{matrix}`)
		texChildren(b, n, depth)
		b.WriteString(`\end{matrix}`)
	case "mtr":
		for i := range of {
			if i > 0 {
				b.WriteString(" & ")
			}
			tex(b, of[i], depth+1)
		}
		if sibling(n, true) != nil {
			b.WriteString(` \\ `)
		}
	default:
		texChildren(b, n, depth)
	}
}

// textNode adds a text. If a script renders the page's formulas, the text between formula
// delimiters is a formula.
func (w *walker) textNode(s string) {
	if w.in.pre || strings.IndexByte(s, '\\') < 0 && !strings.Contains(s, "$$") || w.inCode() || !w.texPage() {
		w.in.text(s)
		return
	}
	ends := map[string]int{} // next position of each delimiter, so that a text is searched once for each
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
