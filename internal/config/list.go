package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// errForm is the error for a YAML form that setList does not support.
var errForm = errors.New("the YAML form of the value cannot be edited")

// extent is the position of a key and its value in a file.
type extent struct {
	from, to int   // lines, from 0, excluding to
	items    []int // first line of each item of a list. If nil, the items do not start on separate lines.
	values   []string
}

// setList returns YAML text with a key set to a list. It keeps all other lines, the comments within
// the list, and the lines of items that remain.
func setList(data []byte, key string, items []string) ([]byte, error) {
	at, indent, err := findKey(data, key)
	if err != nil {
		return nil, err
	}
	text := string(data)
	eol := "\n"
	if first, _, ok := strings.Cut(text, "\n"); ok && strings.HasSuffix(first, "\r") {
		eol = "\r\n"
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += eol
	}
	lines := slices.Collect(strings.Lines(text))
	var b strings.Builder
	if at == nil {
		if len(items) == 0 {
			return data, nil
		}
		b.WriteString(text)
		if len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) != "" {
			b.WriteString(eol)
		}
		writeList(&b, indent+key+":", indent, items, eol)
		return []byte(b.String()), nil
	}
	for at.to > at.from+1 && isBlank(lines[at.to-1]) {
		at.to-- // lines between two keys belong to the next one
	}
	for _, line := range lines[:at.from] {
		b.WriteString(line)
	}
	m := keyLine.FindStringSubmatch(lines[at.from])
	if m == nil || m[2] != key && m[2] != `"`+key+`"` && m[2] != "'"+key+"'" {
		return nil, errForm
	}
	if at.items != nil {
		at.rewrite(&b, lines, m, items, eol)
	} else {
		rest := strings.TrimPrefix(lines[at.from], m[0]) + strings.Join(lines[at.from+1:at.to], "")
		notes := comments(rest)
		head := m[0]
		if len(items) == 0 {
			head += " []"
		}
		if len(notes) > 0 {
			head += "  " + notes[0]
			for i, note := range notes[1:] {
				notes[i+1] = m[1] + "  " + note + eol
			}
			notes = notes[1:]
		}
		b.WriteString(head + eol + strings.Join(notes, ""))
		writeItems(&b, m[1]+"  ", items, eol)
	}
	for _, line := range lines[at.to:] {
		b.WriteString(line)
	}
	return []byte(b.String()), nil
}

// keyLine matches the beginning of a line with a key: the text before it, and the key.
var keyLine = regexp.MustCompile(`^(\s*)([\w-]+|"[\w-]+"|'[\w-]+')\s*:`)

// rewrite writes the new items of a list whose old items are on separate lines of the file.
func (at *extent) rewrite(b *strings.Builder, lines, head []string, items []string, eol string) {
	key := lines[at.from]
	if len(items) == 0 {
		key = head[0] + " []" + strings.TrimPrefix(key, head[0])
	}
	b.WriteString(key)
	// Comments above an item move with the item. Comments above a removed item stay in place.
	above, own := make([][]string, len(at.items)), make([][]string, len(at.items))
	start := at.from + 1
	for i, line := range at.items {
		above[i] = lines[start:line]
		end := at.to
		if i+1 < len(at.items) {
			end = at.items[i+1]
		}
		start = line + 1
		for n := line + 1; n < end; n++ {
			if !isBlank(lines[n]) {
				start = n + 1
			}
		}
		own[i] = lines[line:start]
	}
	first := lines[at.items[0]]
	indent := first[:len(first)-len(strings.TrimLeft(first, " "))]
	done := 0 // number of old items whose comments are written
	for _, item := range items {
		i := slices.Index(at.values[done:], item)
		if i < 0 {
			writeItems(b, indent, []string{item}, eol)
			continue
		}
		for ; i >= 0; i-- {
			b.WriteString(strings.Join(above[done], ""))
			done++
		}
		b.WriteString(strings.Join(own[done-1], ""))
	}
	for ; done < len(above); done++ {
		b.WriteString(strings.Join(above[done], ""))
	}
}

// writeList writes a key with a list.
func writeList(b *strings.Builder, head, indent string, items []string, eol string) {
	b.WriteString(head + eol)
	writeItems(b, indent+"  ", items, eol)
}

func writeItems(b *strings.Builder, indent string, items []string, eol string) {
	for _, item := range items {
		text, err := Quote(item)
		if err != nil {
			panic("config: encode string as JSON: " + err.Error())
		}
		b.WriteString(indent + "- " + text + eol)
	}
}

// isBlank reports whether a line is empty, a comment, or a document marker.
func isBlank(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || line[0] == '#' || line == "---" || line == "..."
}

// findKey returns the position of a key of the file, or nil if absent, and the indentation of
// the keys.
func findKey(data []byte, key string) (at *extent, indent string, err error) {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, "", err
	}
	end := strings.Count(string(data), "\n") + 1
	if strings.HasSuffix(string(data), "\n") {
		end--
	}
	for _, doc := range file.Docs {
		m, ok := doc.Body.(ast.MapNode)
		if !ok {
			continue
		}
		for it := m.MapRange(); it.Next(); {
			kv := it.KeyValue()
			pos := kv.Key.GetToken().Position
			indent = strings.Repeat(" ", pos.Column-1)
			if at != nil {
				at.to = min(at.to, pos.Line-1)
				return at, indent, nil
			}
			if kv.Key.GetToken().Value != key {
				continue
			}
			at = &extent{from: pos.Line - 1, to: end}
			if err := at.list(kv.Value); err != nil {
				return nil, "", err
			}
		}
		if at != nil && doc.End != nil {
			at.to = min(at.to, doc.End.Position.Line-1)
		}
	}
	return at, indent, nil
}

// list finds the items of a list, if they are on separate lines.
func (at *extent) list(n ast.Node) error {
	seq, ok := n.(*ast.SequenceNode)
	if !ok || seq.IsFlowStyle || len(seq.Entries) == 0 || len(seq.Entries) != len(seq.Values) {
		return nil
	}
	for i, e := range seq.Entries {
		line := e.Start.Position.Line - 1
		var v any
		if err := yaml.NodeToValue(seq.Values[i], &v); err != nil {
			return err
		}
		text, ok := v.(string)
		if !ok || line <= at.from || i > 0 && line <= at.items[i-1] {
			at.items, at.values = nil, nil
			return nil
		}
		at.items, at.values = append(at.items, line), append(at.values, text)
	}
	return nil
}

// comments returns the comments of a value.
func comments(value string) (out []string) {
	quote, before := byte(0), byte(' ')
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case quote == '"' && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && strings.IndexByte(" \t\n[,-", before) >= 0:
			quote = c
		case c == '#' && strings.IndexByte(" \t\n", before) >= 0:
			note, _, _ := strings.Cut(value[i:], "\n")
			out = append(out, strings.TrimRight(note, " \t\r"))
			i += len(note) - 1
		}
		before = c
	}
	return out
}

// Quote returns s as a double-quoted YAML scalar, in the syntax of JSON.
func Quote(s string) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return strings.TrimSpace(b.String()), err
}
