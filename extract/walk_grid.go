package extract

import (
	"strings"

	"golang.org/x/net/html"

	"github.com/millrace/millrace"
)

// gridCell is a cell of a table that only ARIA roles mark as a table.
type gridCell struct {
	n    *html.Node
	head bool
}

// ariaRows returns the cells of a table that only ARIA roles mark as a table.
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

// grid emits a table that only ARIA roles mark as a table, and reports whether n is one. It must
// have at least two columns, and its cells must contain only what a table cell can contain.
func (w *walker) grid(n *html.Node) bool {
	switch attr(n, "role") {
	case "table", "grid", "treegrid":
	default:
		return false
	}
	rows := ariaRows(n)
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
