package commonmark

import (
	"bytes"
	"fmt"
	"regexp"

	"github.com/millrace/millrace"
)

const (
	maxLines      = 1_000_000 // maximum number of lines
	maxCost       = 4_000_000 // maximum product of lines and depth of containers, which limits the parser's memory
	maxContainers = 32        // maximum number of containers opened in one line, or by indentation
)

// MaxDepth is the maximum depth of nested blocks; deeper blocks become siblings.
const MaxDepth = 40

// Containers returns the number of quotes and lists that one line may open in a text with the given
// number of lines. If there are too many lines, the error is [millrace.ErrTooLarge].
func Containers(lines int) (int, error) {
	if lines > maxLines {
		return 0, fmt.Errorf("%w: %d lines, limit %d", millrace.ErrTooLarge, lines, maxLines)
	}
	return min(maxContainers, max(4, maxCost/max(lines, 1))), nil
}

// Bounded returns an untrusted text in a form that [Blocks] accepts: no line opens more quotes
// and lists than [Containers] allows, and every line ends in a line feed. If the text has too
// many lines, it returns [millrace.ErrTooLarge].
func Bounded(text []byte) ([]byte, error) {
	lines := bytes.Split(lineEnds(text), []byte("\n"))
	inside, err := Containers(len(lines))
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(text)+1)
	fence := ""
	for _, line := range lines {
		line = Shallower(line, inside, fence == "")
		if fence == "" {
			fence = Fence(line)
		} else if Closes(line, fence) {
			fence = ""
		}
		out = append(append(out, line...), '\n')
	}
	return out, nil
}

// lineEnds converts every line end to a line feed.
func lineEnds(text []byte) []byte {
	if bytes.IndexByte(text, '\r') < 0 {
		return text
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
}

var fenceLine = regexp.MustCompile("^([\\s>]*(?:(?:[-*+]|\\d{1,9}[.)])[ \t]+)*)(`{3,}|~{3,})([^\n]*)$")

// Fence returns the fence of a line that opens a code block, or "".
func Fence(line []byte) string {
	m := fenceLine.FindSubmatch(line)
	if m == nil || m[2][0] == '`' && bytes.IndexByte(m[3], '`') >= 0 {
		return ""
	}
	return string(m[2])
}

// Closes reports whether a line ends a fenced code block.
func Closes(line []byte, fence string) bool {
	line = bytes.TrimLeft(line, " \t>")
	rest := bytes.TrimLeft(line, fence[:1])
	return len(line)-len(rest) >= len(fence) && len(bytes.TrimSpace(rest)) == 0
}

// Shallower removes markers of quotes and lists from the start of a line that would open more than
// inside nested containers, because a parser stores all of them. If indents is set, it also limits
// the indentation.
func Shallower(line []byte, inside int, indents bool) []byte {
	var out []byte
	depth, columns, from := 0, 0, 0
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == ' ' || c == '\t':
			if columns++; c == '\t' {
				columns += 3
			}
			if columns > 4*inside && indents {
				out = append(out, line[from:i]...)
				from = i + 1
			}
			continue
		case c == '>', (c == '-' || c == '*' || c == '+') && (i+1 == len(line) || line[i+1] == ' ' || line[i+1] == '\t'):
			if depth++; depth > inside {
				out = append(out, line[from:i]...)
				from = i + 1
			}
			continue
		case c >= '0' && c <= '9':
			j := i
			for j < len(line) && j < i+9 && line[j] >= '0' && line[j] <= '9' {
				j++
			}
			if j+1 < len(line) && (line[j] == '.' || line[j] == ')') && (line[j+1] == ' ' || line[j+1] == '\t') {
				if depth++; depth > inside {
					out = append(out, line[from:i]...)
					from = j + 1
				}
				i = j
				continue
			}
		}
		break
	}
	if from == 0 {
		return line
	}
	return append(out, line[from:]...)
}
