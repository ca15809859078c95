package mcp

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace"
)

// budget limits the Markdown of one part of a page.
type budget struct {
	characters int // code points
	bytes      int // If zero, unlimited.
}

func (b budget) holds(markdown string) bool {
	return utf8.RuneCountInString(markdown) <= b.characters && (b.bytes == 0 || len(markdown) <= b.bytes)
}

// blockPath is a position in a page. Its first element is the number of a block. The next ones are
// the numbers of items, rows or blocks inside that block. The last may be a byte offset in a text.
// Where a part starts, nil means the start of the page. As the position of the rest, nil means the
// end of the page.
type blockPath []int

// part returns the Markdown of as many blocks after a position as the budget allows, and the
// position of the rest. It cuts between blocks. It splits a block that is too large between
// its items, rows, lines or sentences; each piece is a whole block. If the position is not in
// the page, part returns ErrInvalid.
func part(blocks []millrace.Block, at blockPath, most budget) (markdown string, rest blockPath, err error) {
	limit := most.characters
	if most.bytes > 0 {
		limit = min(limit, most.bytes)
	}
	for {
		out, rest, err := takeBlocks(blocks, at, limit)
		if err != nil {
			return "", nil, err
		}
		if s := millrace.Markdown(out); most.holds(s) || limit <= 1 {
			return s, rest, nil
		}
		// The Markdown is larger than estimated, so try again with less.
		limit = limit * 3 / 4
	}
}

func errBlockPath(at blockPath) error {
	return fmt.Errorf("%w: position %v not found", millrace.ErrInvalid, []int(at))
}

// from returns the first number of the position and the rest of the position. The number must
// be below n.
func (p blockPath) from(n int) (i int, sub blockPath, err error) {
	if len(p) == 0 {
		return 0, nil, nil
	}
	if p[0] < 0 || p[0] >= max(n, 1) {
		return 0, nil, errBlockPath(p)
	}
	return p[0], p[1:], nil
}

// below returns the position inside the block, item or row i.
func (p blockPath) below(i int) blockPath { return append(blockPath{i}, p...) }

// size returns the number of characters of blocks as Markdown, with separators.
func size(blocks ...millrace.Block) int { return utf8.RuneCountInString(millrace.Markdown(blocks)) + 1 }

// listGap is the size of the separator between two lists, with the blank line after it.
const listGap = len("<!-- -->") + 2

func takeBlocks(blocks []millrace.Block, at blockPath, limit int) (out []millrace.Block, rest blockPath, err error) {
	i, sub, err := at.from(len(blocks))
	if err != nil {
		return nil, nil, err
	}
	full := limit
	for ; i < len(blocks); i, sub = i+1, nil {
		b := blocks[i]
		if len(sub) == 0 {
			n := size(b)
			if b.Type == millrace.ListBlock && len(out) > 0 && out[len(out)-1].Type == millrace.ListBlock {
				n += listGap
			}
			if n <= limit {
				out, limit = append(out, b), limit-n
				continue
			}
			if len(out) > 0 && (n <= full || limit < full/2) {
				return back(out, i)
			}
		}
		head, left, err := takeBlock(b, sub, limit)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, head)
		if left != nil {
			return out, left.below(i), nil
		}
		limit = max(0, limit-size(head))
	}
	return out, nil, nil
}

// back ends a part before block i, and before the headings directly above it, which belong to the
// next part.
func back(out []millrace.Block, i int) ([]millrace.Block, blockPath, error) {
	n := len(out)
	for n > 0 && out[n-1].Type == millrace.HeadingBlock {
		n--
	}
	if n == 0 {
		n = len(out) // out contains only headings
	}
	return out[:n], blockPath{i - (len(out) - n)}, nil
}

// takeBlock returns the first part of a large block after a position, and the position of the rest.
func takeBlock(b millrace.Block, at blockPath, limit int) (head millrace.Block, rest blockPath, err error) {
	if oversized(b) {
		return takeText(plain(b), at, limit, false)
	}
	switch b.Type {
	case millrace.CodeBlock:
		return takeText(b, at, limit-len(b.Language)-10, true)
	case millrace.TextBlock:
		return takeText(b, at, limit, false)
	case millrace.ListBlock, millrace.DefinitionsBlock:
		return takeItems(b, at, limit)
	case millrace.TableBlock:
		return takeRows(b, at, limit)
	case millrace.QuoteBlock, millrace.CalloutBlock, millrace.FootnoteBlock:
		inner := b.Blocks
		if b.Type != millrace.FootnoteBlock && b.Text != "" {
			inner = append([]millrace.Block{{Type: millrace.TextBlock, Text: b.Text, Spans: b.Spans}}, inner...)
			b.Text, b.Spans = "", nil
		}
		b.Blocks, rest, err = takeBlocks(inner, at, limit-utf8.RuneCountInString(b.Title)-6)
		if rest != nil {
			b.Cite = ""
		}
		return b, rest, err
	case millrace.MathBlock:
		return takeText(millrace.Block{Type: millrace.CodeBlock, Text: b.Text, Language: b.Language}, at, limit-20, true)
	}
	return takeText(plain(b), at, limit, false)
}

// plain returns a block reduced to its text.
func plain(b millrace.Block) millrace.Block {
	return millrace.Block{Type: millrace.TextBlock, Text: millrace.Text([]millrace.Block{b})}
}

// maxAround is the maximum size in bytes of the markup around a text in a part: marks, titles,
// labels, terms of items. Even if all of it is escaped, it fits into the smallest budget.
const maxAround = 200

// oversized reports whether the markup around a block's text is too large for a part. Such a block
// is reduced to its text. The result does not depend on the budget, so positions stay valid if the
// budget changes.
func oversized(b millrace.Block) bool { return around(b) > maxAround }

// around returns the size in bytes of the markup around the innermost text of a block. Inner blocks
// that are oversized count as text.
func around(b millrace.Block) int {
	n := len(b.Title) + len(b.Kind) + len(b.Language) + len(b.Caption) + len(b.Cite) + 6
	if b.Type == millrace.FootnoteBlock {
		n += len(b.Text)
	}
	most := aroundOf(b.Blocks)
	for _, it := range b.Items {
		if inner := aroundItem(it); inner <= maxAround {
			most = max(most, inner)
		}
	}
	return n + most
}

func aroundItem(it millrace.Item) int { return len(it.Term) + 6 + aroundOf(it.Blocks) }

func aroundOf(blocks []millrace.Block) (most int) {
	for _, b := range blocks {
		if n := around(b); n <= maxAround {
			most = max(most, n)
		}
	}
	return most
}

// takeItems returns the first items of a list. It returns an item with too much markup as
// text.
func takeItems(b millrace.Block, at blockPath, limit int) (head millrace.Block, rest blockPath, err error) {
	i, sub, err := at.from(len(b.Items))
	if err != nil {
		return b, nil, err
	}
	items := b.Items
	if b.Ordered && i > 0 {
		b.Start = b.Number(i)
	} else if b.Reversed {
		b.Start = b.Number(0)
	}
	b.Items = nil
	for ; i < len(items); i, sub = i+1, nil {
		one := b
		if len(sub) == 0 {
			one.Items = items[i : i+1]
			if n := size(one); n <= limit {
				b.Items, limit = append(b.Items, items[i]), limit-n
				continue
			}
			if len(b.Items) > 0 {
				return b, blockPath{i}, nil
			}
		}
		it := items[i]
		if aroundItem(it) > maxAround {
			one.Items = items[i : i+1]
			return takeOne(one, sub, limit, i, len(items))
		}
		inner := it.Blocks
		text := it.Text != ""
		if text {
			inner = append([]millrace.Block{{Type: millrace.TextBlock, Text: it.Text, Spans: it.Spans}}, inner...)
		}
		taken, left, err := takeBlocks(inner, sub, limit-utf8.RuneCountInString(it.Term)-12)
		if err != nil {
			return b, nil, err
		}
		it.Text, it.Spans, it.Blocks = "", nil, taken
		if text && len(taken) > 0 && (len(sub) == 0 || sub[0] == 0) {
			it.Text, it.Spans, it.Blocks = taken[0].Text, taken[0].Spans, taken[1:]
		}
		b.Items = append(b.Items, it)
		if left != nil {
			return b, left.below(i), nil
		}
		one.Items = []millrace.Item{it}
		limit = max(0, limit-size(one))
	}
	return b, nil, nil
}

// takeRows returns the first rows of a table, with its header. It returns a row that is too
// large as text.
func takeRows(b millrace.Block, at blockPath, limit int) (head millrace.Block, rest blockPath, err error) {
	i, sub, err := at.from(len(b.Rows))
	if err != nil {
		return b, nil, err
	}
	rows, full := b.Rows, limit
	if i > 0 {
		b.Caption = ""
	}
	var header []millrace.Cell
	if len(rows) > 0 && !slices.ContainsFunc(rows[0], func(c millrace.Cell) bool { return !c.Header }) {
		header = rows[0]
	}
	b.Rows = nil
	if i > 0 && header != nil {
		b.Rows = [][]millrace.Cell{header}
	}
	begin := len(b.Rows)
	limit -= size(b)
	for ; i < len(rows) && len(sub) == 0; i++ {
		n := rowSize(rows[i])
		if n > limit {
			if len(b.Rows) > begin {
				return b, blockPath{i}, nil
			}
			break
		}
		b.Rows, limit = append(b.Rows, rows[i]), limit-n
	}
	if i == len(rows) {
		return b, nil, nil
	}
	row := millrace.Block{Type: millrace.TableBlock, Rows: rows[i : i+1]}
	return takeOne(row, sub, max(limit, full/2), i, len(rows))
}

// rowSize returns the number of characters of a row as Markdown: the last line of a table
// with only this row.
func rowSize(row []millrace.Cell) int {
	s := millrace.Markdown([]millrace.Block{{Type: millrace.TableBlock, Rows: [][]millrace.Cell{row}}})
	s = strings.TrimSuffix(s, "\n")
	return utf8.RuneCountInString(s[strings.LastIndexByte(s, '\n')+1:]) + 1
}
