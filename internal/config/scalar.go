package config

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// setScalar returns YAML text with the value below a path of keys set to a scalar in YAML form. If
// value is "", it removes the key, and keys above it that become empty. It keeps all other lines.
func setScalar(data []byte, path []string, value string) ([]byte, error) {
	text := string(data)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		return nil, err
	}
	lines := slices.Collect(strings.Lines(text))
	var at ast.MapNode
	for _, doc := range file.Docs {
		if m, ok := doc.Body.(ast.MapNode); ok {
			at = m
		}
	}
	indent, end := "", len(lines) // indentation of the keys of at, and the line before which a new key is inserted
	first := -1                   // first line to remove: that of the key, or of a key above it that becomes empty
	for i, key := range path {
		kv, alone, column := child(at, key)
		if column > 0 {
			indent = strings.Repeat(" ", column-1)
		}
		if kv == nil {
			if value == "" {
				return data, nil
			}
			return []byte(strings.Join(slices.Insert(lines, end, nested(path[i:], indent, value)), "")), nil
		}
		line := kv.Key.GetToken().Position.Line - 1
		if m := keyLine.FindStringSubmatch(lines[line]); m == nil || strings.Trim(m[2], `'"`) != key {
			return nil, errForm // such as {a: 1, b: 2}
		}
		if !alone || first < 0 {
			first = line
		}
		if i < len(path)-1 {
			if kv.Value == nil {
				return nil, errForm
			}
			m, ok := kv.Value.(ast.MapNode)
			if !ok {
				return nil, errForm
			}
			at, indent, end = m, indent+"  ", line+1
			continue
		}
		if _, ok := kv.Value.(ast.ScalarNode); !ok || kv.Value.Type() == ast.LiteralType || kv.Value.GetToken().Position.Line-1 != line {
			return nil, errForm
		}
		if value == "" {
			return []byte(strings.Join(slices.Delete(lines, first, line+1), "")), nil
		}
		head := keyLine.FindString(lines[line])
		rest := lines[line][len(head):]
		note := ""
		if notes := comments(rest); len(notes) > 0 {
			note = "  " + notes[0]
		}
		eol := rest[len(strings.TrimRight(rest, "\r\n")):]
		lines[line] = head + " " + value + note + eol
	}
	return []byte(strings.Join(lines, "")), nil
}

// child finds a key of a map. alone reports whether it is the only key. column is the column of the
// keys, or 0 if there are none.
func child(m ast.MapNode, key string) (kv *ast.MappingValueNode, alone bool, column int) {
	if m == nil {
		return nil, false, 0
	}
	n := 0
	for it := m.MapRange(); it.Next(); n++ {
		t := it.KeyValue().Key.GetToken()
		column = t.Position.Column
		if t.Value == key {
			kv = it.KeyValue()
		}
	}
	return kv, n == 1, column
}

// nested returns the lines of nested keys with a value.
func nested(keys []string, indent, value string) string {
	var b strings.Builder
	for i, key := range keys {
		b.WriteString(indent + strings.Repeat("  ", i) + key + ":")
		if i == len(keys)-1 {
			b.WriteString(" " + value)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
