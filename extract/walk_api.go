package extract

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// api emits a block for an element that only API documentation tools use, or for a table built
// from other elements. It reports whether it did.
func (w *walker) api(n *html.Node) bool {
	switch attr(n, "role") {
	case "table", "grid", "treegrid":
		return w.grid(n, ariaRows(n))
	}
	class := attr(n, "class")
	switch {
	case class == "":
		return false
	case hasToken(class, "memproto"):
		return w.signature(n)
	case hasToken(class, "summary-table"), hasToken(class, "details-table"):
		return w.grid(n, columnRows(n))
	}
	return false
}

// signature emits a declaration in the form of Doxygen: lines, and tables that align its
// parameters.
func (w *walker) signature(n *html.Node) bool {
	var lines []string
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		for c := range children(n) {
			switch {
			case hasClass(c, "memtemplate"):
				lines = append(lines, plainText(c))
			case hasClass(c, "mlabels-right"): // labels such as "inline" and "static"
			case c.DataAtom == atom.Tr && hasClass(tableOf(c), "memname"):
				var cells []string
				for td := range children(c) {
					if t := plainText(td); t != "" {
						cells = append(cells, t)
					}
				}
				if len(cells) > 0 {
					lines = append(lines, strings.Join(cells, " "))
				}
			default:
				walk(c)
			}
		}
	}
	walk(n)
	if len(lines) == 0 {
		return false
	}
	w.flush()
	w.out = append(w.out, millrace.Block{Type: millrace.CodeBlock, Text: strings.Join(lines, "\n"), Language: codeLanguage(n)})
	return true
}

// gridCell is a cell of a table that is built from other elements.
type gridCell struct {
	n    *html.Node
	head bool
}

// ariaRows returns the cells of a table that is marked only by ARIA roles.
func ariaRows(n *html.Node) [][]gridCell {
	var rows [][]gridCell
	var walk func(*html.Node, int)
	walk = func(n *html.Node, depth int) {
		for c := range children(n) {
			switch role := attr(c, "role"); {
			case role == "row":
				rows = append(rows, nil)
				walk(c, depth)
			case role == "cell", role == "gridcell", role == "columnheader", role == "rowheader":
				if len(rows) > 0 {
					last := len(rows) - 1
					rows[last] = append(rows[last], gridCell{c, strings.HasSuffix(role, "header")})
				}
			case depth < 4:
				walk(c, depth+1)
			}
		}
	}
	walk(n, 0)
	return rows
}

// columnRows returns the cells of a table in the form of Javadoc since version 16: all cells
// in one element, the headers first.
func columnRows(n *html.Node) [][]gridCell {
	var rows [][]gridCell
	width, cells := 0, 0
	for c := range children(n) {
		head := hasClass(c, "table-header")
		if head && cells == width {
			width++
		}
		if width == 0 {
			return nil
		}
		if cells == 0 || cells >= width && cells%width == 0 {
			rows = append(rows, nil)
		}
		last := len(rows) - 1
		rows[last] = append(rows[last], gridCell{c, head})
		cells++
	}
	return rows
}

// grid emits a table of cells, if it is one: it needs at least two columns, and its cells must
// contain only what a table cell can.
func (w *walker) grid(n *html.Node, rows [][]gridCell) bool {
	b := millrace.Block{Type: millrace.TableBlock}
	width := 0
	for _, row := range rows {
		width = max(width, len(row))
		for _, c := range row {
			if cellForm(c.n)&(cellBlocks|cellTable) != 0 {
				return false
			}
		}
	}
	if width < 2 || len(rows) < 2 || width > maxColumns || w.l.skip[n] {
		return false
	}
	w.flush()
	for _, row := range rows {
		var cells []millrace.Cell
		text := false
		for _, c := range row {
			if w.l.skip[c.n] {
				continue
			}
			cell := millrace.Cell{Header: c.head}
			cell.Text, cell.Spans = w.line(func() { w.children(c.n) })
			text = text || cell.Text != ""
			cells = append(cells, cell)
		}
		if text {
			b.Rows = append(b.Rows, cells)
		}
	}
	if len(b.Rows) > 0 {
		w.out = append(w.out, b)
	}
	w.out = append(w.out, w.pending...)
	w.pending = w.pending[:0]
	return true
}

// tableOf returns the table that contains a row.
func tableOf(n *html.Node) *html.Node {
	for n != nil && n.DataAtom != atom.Table {
		n = n.Parent
	}
	return n
}
