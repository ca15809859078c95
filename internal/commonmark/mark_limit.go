package commonmark

import (
	"bytes"
	"regexp"
)

// The parser's time grows with the number of emphasis and link marks times the length of the
// paragraph, and similarly for tables and footnotes. Handwritten texts are far below these
// limits.
const (
	maxMarks     = 500_000_000 // maximum product of marks and bytes, summed over all paragraphs
	fewMarks     = 200         // number of marks that every paragraph may have
	maxFootnotes = 1000        // maximum number of footnotes
	maxPadding   = 50_000      // maximum number of missing cells that the parser adds to a table
)

var (
	footnoteLine = regexp.MustCompile(`^[\s>]*\[\^[^\]]+\]:`)
	delimiterRow = regexp.MustCompile(`^[\s>]*\|?\s*:?-+:?\s*(\|\s*:?-*:?\s*)*$`)
)

// escapeMarks escapes marks that would take the parser too long. It returns a text within the limits
// unchanged.
func escapeMarks(text []byte) []byte {
	if !exceedsLimits(text) {
		return text
	}
	var lengths []int // lengths of the paragraphs in bytes
	length, rows := 0, paragraphScanner{}
	eachLine(text, func(line []byte, code bool) {
		if rows.starts(line, code) {
			lengths, length = append(lengths, length), 0
		}
		if length += len(line); rows.ends(line, code) {
			lengths, length = append(lengths, length), 0
		}
	})
	lengths = append(lengths, length)
	out := make([]byte, 0, len(text)+len(text)/4)
	budget := maxMarks
	marks, notes, columns, cells, pipes := 0, 0, 0, 0, 0
	rows = paragraphScanner{}
	end := func(allowed int) {
		budget -= min(marks, allowed) * lengths[0]
		lengths, marks = lengths[1:], 0
	}
	eachLine(text, func(line []byte, code bool) {
		if rows.starts(line, code) {
			end(max(fewMarks, budget/max(lengths[0], 1)))
		}
		if code {
			out = append(append(out, line...), '\n')
		} else if len(bytes.TrimSpace(line)) == 0 {
			columns = 0
		}
		allowed := max(fewMarks, budget/max(lengths[0], 1))
		if rows.ends(line, code) {
			defer end(allowed)
		}
		if code {
			return
		}
		if delimiterRow.Match(line) && bytes.IndexByte(line, '|') >= 0 {
			columns, cells, pipes = bytes.Count(line, []byte("|")), 0, 0
		}
		if columns > 0 {
			cells += columns
			if pipes += bytes.Count(line, []byte("|")); cells-pipes > maxPadding {
				out = append(out, '\n')
				columns = 0
			}
		}
		if footnoteLine.Match(line) {
			if notes++; notes > maxFootnotes {
				line = bytes.Replace(line, []byte("["), []byte(`\[`), 1)
			}
		}
		for i, c := range line {
			if isMark(c) && (i == 0 || line[i-1] != '\\') {
				if marks++; marks > allowed {
					out = append(out, '\\')
				}
			}
			out = append(out, c)
		}
		out = append(out, '\n')
	})
	return out
}

func isMark(c byte) bool { return c == '*' || c == '_' || c == '[' || c == ']' || c == '~' }

// paragraphScanner detects the ends of paragraphs and table rows, because marks do not interact across
// them.
type paragraphScanner struct {
	above []byte // the previous line
	table bool
	items []int // columns at which the text of the enclosing list items begins
}

// starts reports whether a line is an item of a bullet list, which always starts a new paragraph. A
// line indented by four columns or more is an item only if the lines above it are items, too;
// otherwise, it may continue a paragraph.
func (r *paragraphScanner) starts(line []byte, code bool) bool {
	text := bytes.TrimLeft(line, " ")
	at, left, items := len(line)-len(text), 0, r.items
	r.items = nil
	// A line of bullets alone is an empty item or a thematic break.
	if code || r.table || len(text) < 3 || bytes.IndexByte([]byte("-*+"), text[0]) < 0 || text[1] != ' ' || len(bytes.Trim(text, " "+string(text[:1]))) == 0 {
		return false
	}
	for left == 0 && len(items) > 0 {
		if last := len(items) - 1; items[last] <= at {
			left = items[last]
		} else {
			items = items[:last]
		}
	}
	if at-left > 3 {
		return false
	}
	spaces := len(text[1:]) - len(bytes.TrimLeft(text[1:], " "))
	if spaces > 4 { // the item begins with code
		spaces = 1
	}
	items = append(items, at+1+spaces)
	r.items = items
	return true
}

// ends reports whether a line ends its paragraph or row.
func (r *paragraphScanner) ends(line []byte, code bool) bool {
	above := r.above
	r.above = line
	if code || len(bytes.TrimSpace(line)) == 0 {
		*r = paragraphScanner{}
		return true
	}
	if !r.table && len(above) > 0 && delimiterRow.Match(line) && columnsOf(above) == columnsOf(line) {
		r.table = true
	}
	return r.table
}

// columnsOf counts the cells of a row.
func columnsOf(line []byte) int {
	line = bytes.Trim(bytes.TrimLeft(line, " \t>"), " \t")
	line = bytes.TrimPrefix(line, []byte("|"))
	if !bytes.HasSuffix(line, []byte(`\|`)) {
		line = bytes.TrimSuffix(line, []byte("|"))
	}
	return bytes.Count(line, []byte("|")) - bytes.Count(line, []byte(`\|`)) + 1
}

// exceedsLimits reports whether a text may exceed the limits.
func exceedsLimits(text []byte) bool {
	budget, marks, length, notes, columns, padding := maxMarks, 0, 0, 0, 0, 0
	rows := paragraphScanner{}
	eachLine(text, func(line []byte, code bool) {
		if rows.starts(line, code) {
			budget -= marks * length
			marks, length = 0, 0
		}
		length += len(line)
		for _, c := range line {
			if isMark(c) && !code {
				marks++
			}
		}
		if rows.ends(line, code) {
			budget -= marks * length
			marks, length = 0, 0
			if !rows.table {
				columns, padding = 0, 0
				return
			}
		}
		if pipes := bytes.Count(line, []byte("|")); pipes > 0 || columns > 0 {
			columns = max(columns, pipes)
			padding += columns - pipes
		}
		if padding > maxPadding {
			budget = -1
		}
		if bytes.Contains(line, []byte("[^")) {
			if notes++; notes > maxFootnotes {
				budget = -1
			}
		}
	})
	return budget-marks*length < 0
}

// eachLine calls use for each line. code reports whether the line belongs to a fenced code block.
func eachLine(text []byte, use func(line []byte, code bool)) {
	fence := ""
	for line := range bytes.SplitSeq(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		switch {
		case fence != "":
			if Closes(line, fence) {
				fence = ""
			}
			use(line, true)
			continue
		case bytes.Contains(line, []byte("```")) || bytes.Contains(line, []byte("~~~")):
			if fence = Fence(line); fence != "" {
				use(line, true)
				continue
			}
		}
		use(line, false)
	}
}
