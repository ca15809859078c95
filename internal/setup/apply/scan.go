package apply

import (
	"bytes"
	"strings"
)

// token is a word of a configuration file.
type token struct {
	text   string // without quotes
	end    int    // offset of the first byte after the word
	line   int
	quoted bool
}

// scan splits a configuration into words. marks are the bytes that are separate words even without
// spaces around them. scan returns no syntax errors, because the program itself tests the syntax.
func scan(data []byte, marks string) []token {
	var out []token
	line := 1
	for i := 0; i < len(data); {
		c := data[i]
		switch {
		case c == '\n':
			line++
			i++
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case c == '#':
			i = end(data, i, "\n")
		case strings.IndexByte(marks, c) >= 0:
			i++
			out = append(out, token{text: string(c), end: i, line: line})
		case c == '"' || c == '\'' && marks != "" || c == '`' && marks == "":
			from, start := i+1, line
			for i++; i < len(data) && data[i] != c; i++ {
				if data[i] == '\\' && c != '`' {
					i++
				}
			}
			i = min(i, len(data))
			line += bytes.Count(data[from:i], []byte("\n"))
			out = append(out, token{string(data[from:i]), min(i+1, len(data)), start, true})
			i++
		default:
			from := i
			for i < len(data) && strings.IndexByte(" \t\r\n", data[i]) < 0 {
				if data[i] == '{' && i > from && data[i-1] == '$' { // ${variable}
					i = end(data, i, "}")
				} else if strings.IndexByte(marks, data[i]) >= 0 {
					break
				}
				i++
			}
			i = min(i, len(data))
			word := string(data[from:i])
			out = append(out, token{text: word, end: i, line: line})
			if name, ok := strings.CutPrefix(word, "<<"); ok && marks == "" && name != "" { // a here-document
				stop := end(data, i, "\n"+name)
				for stop < len(data) && strings.TrimSpace(string(data[bytes.LastIndexByte(data[:stop], '\n')+1:end(data, stop, "\n")])) != name {
					stop = end(data, stop+1, name)
				}
				line += bytes.Count(data[i:stop], []byte("\n"))
				i = end(data, stop, "\n")
			}
		}
	}
	return out
}

// end returns the offset of a text at or after an offset, or the length of the data.
func end(data []byte, at int, text string) int {
	if at >= len(data) {
		return len(data)
	}
	if i := bytes.Index(data[at:], []byte(text)); i >= 0 {
		return at + i
	}
	return len(data)
}

// block is a server block, with the position for a new line.
type block struct {
	file  string
	at    int // offset of the end of its opening brace
	rank  int // how well the block fits the site; the lowest rank fits best
	taken bool
}

// best returns the blocks that fit best.
func best(blocks []block) []block {
	var out []block
	for _, b := range blocks {
		if len(out) > 0 && b.rank < out[0].rank {
			out = out[:0]
		}
		if len(out) == 0 || b.rank == out[0].rank {
			out = append(out, b)
		}
	}
	return out
}

// nameRank returns how well a name of a server fits a host: 0 if they are equal, 1 if a wildcard
// matches, 2 if the name stands for any host, and -1 if it does not fit.
func nameRank(name, host string) int {
	name = strings.ToLower(name)
	switch rest, wild := strings.CutPrefix(name, "*."); {
	case name == host:
		return 0
	case wild && strings.HasSuffix(host, "."+rest):
		return 1
	case strings.HasPrefix(name, ".") && (host == name[1:] || strings.HasSuffix(host, name)):
		return 1
	case name == "" || name == "_":
		return 2
	}
	return -1
}
