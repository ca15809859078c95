package extract

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
)

// maxColumns is the maximum number of columns of a row, including spans. HTML limits the span of a
// cell to the same number.
const maxColumns = 1000

// rowsOf yields the rows of a table without those of inner tables. The rows of tfoot come last,
// although HTML 4 required tfoot before tbody.
func rowsOf(n *html.Node) func(func(*html.Node) bool) {
	return func(yield func(*html.Node) bool) {
		var foot *html.Node
		for c := range children(n) {
			switch c.DataAtom {
			case atom.Tr:
				if !yield(c) {
					return
				}
			case atom.Tfoot:
				if foot == nil {
					foot = c
					continue
				}
				fallthrough
			case atom.Tbody, atom.Thead:
				if !yieldRows(c, yield) {
					return
				}
			}
		}
		if foot != nil {
			yieldRows(foot, yield)
		}
	}
}

func yieldRows(n *html.Node, yield func(*html.Node) bool) bool {
	for r := range children(n) {
		if r.DataAtom == atom.Tr && !yield(r) {
			return false
		}
	}
	return true
}

// isLayoutTable reports whether a table is used only for layout. A table with a header, a caption
// or the role of a table contains data.
func isLayoutTable(n *html.Node) bool {
	switch attr(n, "role") {
	case "presentation", "none":
		return true
	case "table", "grid", "treegrid":
		return false
	}
	if hasClass(n, "ltx_equation", "ltx_equationgroup", "ltx_eqn_table") {
		return true // LaTeXML: a formula with its number, between empty cells
	}
	rows, cells, widest, blocks, filled := 0, 0, 0, 0, 0
	for c := range children(n) {
		if c.DataAtom == atom.Caption || c.DataAtom == atom.Thead {
			return false
		}
	}
	for tr := range rowsOf(n) {
		if rows++; rows > 200 {
			return false
		}
		width := 0
		for c := range children(tr) {
			if c.DataAtom != atom.Td && c.DataAtom != atom.Th {
				continue
			}
			width++
			cells++
			f := cellForm(c)
			if c.DataAtom == atom.Th && f&cellBlocks == 0 && rows == 1 {
				return false
			}
			if f&cellTable != 0 {
				return true
			}
			if f&cellBlocks != 0 {
				blocks++
			}
			if f&cellText != 0 {
				filled++
			}
		}
		widest = max(widest, width)
	}
	return widest < 2 || filled < 2 || blocks > 0 && blocks*3 >= filled
}

type cellFlags uint8

const (
	cellText   cellFlags = 1 << iota // contains text
	cellBlocks                       // contains something that the text of a cell cannot express
	cellTable                        // contains a table
)

// cellForm returns the flags of a cell. It examines at most 400 nodes.
func cellForm(n *html.Node) cellFlags {
	var f cellFlags
	paragraphs, steps := 0, 0
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		for c := n.FirstChild; c != nil && steps < 400; c = c.NextSibling {
			steps++
			if c.Type == html.TextNode {
				if f&cellText == 0 && strings.TrimSpace(c.Data) != "" {
					f |= cellText
				}
				continue
			}
			if c.Type != html.ElementNode {
				continue
			}
			switch c.DataAtom {
			case atom.H1, atom.H2, atom.H3, atom.H4, atom.Blockquote, atom.Figure, atom.Form, atom.Iframe, atom.Video, atom.Article, atom.Section, atom.Dl:
				f |= cellBlocks
			case atom.Table:
				f |= cellTable
			case atom.P:
				if paragraphs++; paragraphs > 3 {
					f |= cellBlocks
				}
			case atom.Br:
				if s := sibling(c, true); s != nil && s.DataAtom == atom.Br {
					if paragraphs++; paragraphs > 3 {
						f |= cellBlocks
					}
				}
			}
			walk(c)
		}
	}
	walk(n)
	return f
}

func (w *walker) table(n *html.Node) {
	w.flush()
	if w.lines(n) {
		return
	}
	if isLayoutTable(n) {
		w.layout(n)
		return
	}
	b := millrace.Block{Type: millrace.TableBlock}
	for c := range children(n) {
		if c.DataAtom == atom.Caption && !w.l.skip[c] {
			b.Caption, _ = w.line(func() { w.children(c) })
		}
	}
	rows := 0
	for range rowsOf(n) {
		rows++
	}
	for tr := range rowsOf(n) {
		left := rows // remaining rows: no cell can span more
		rows--
		if w.l.skip[tr] {
			continue
		}
		head := tr.Parent.DataAtom == atom.Thead
		var row []millrace.Cell
		text, columns := false, 0
		for td := range children(tr) {
			if td.DataAtom != atom.Td && td.DataAtom != atom.Th || w.l.skip[td] {
				continue
			}
			cell := millrace.Cell{Header: head || td.DataAtom == atom.Th, Colspan: cellSpan(td, "colspan", maxColumns-columns), Rowspan: cellSpan(td, "rowspan", left)}
			columns += max(cell.Colspan, 1)
			cell.Text, cell.Spans = w.line(func() { w.children(td) })
			text = text || cell.Text != ""
			row = append(row, cell)
		}
		if text {
			b.Rows = append(b.Rows, row)
		}
	}
	if len(b.Rows) > 0 {
		w.out = append(w.out, b)
	} else if b.Caption != "" {
		w.out = append(w.out, millrace.Block{Type: millrace.TextBlock, Text: b.Caption})
	}
	w.out = append(w.out, w.pending...)
	w.pending = w.pending[:0]
}

// cellSpan returns the span of a cell, limited to most. For 1 and invalid values, it returns 0.
func cellSpan(n *html.Node, key string, most int) int {
	s := attr(n, key)
	if s == "" {
		return 0
	}
	v, err := strconv.Atoi(strings.TrimSpace(s))
	if v = min(v, most); err != nil || v <= 1 {
		return 0
	}
	return v
}

// layout walks a table that is used only for layout.
func (w *walker) layout(n *html.Node) {
	for c := range children(n) {
		switch c.DataAtom {
		case atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr:
			if !w.l.skip[c] {
				w.layout(c)
			}
		case atom.Col, atom.Colgroup:
		default:
			w.element(c)
			w.flush()
		}
	}
}
