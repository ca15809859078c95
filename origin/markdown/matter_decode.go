package markdown

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/pelletier/go-toml/v2"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/jsonio"
)

const (
	maxValues = 20_000 // maximum number of values in a document, with aliases expanded
	maxNested = 64     // maximum nesting depth of lists and maps
)

// position returns the line and the column in a file, given a position in its front matter. One
// line precedes the front matter.
func position(line, column int) string { return fmt.Sprintf("%d:%d", line+1, column) }

func decodeTOML(src []byte) (matter, error) {
	if err := shallow(src); err != nil {
		return nil, err
	}
	var v map[string]any
	if err := toml.Unmarshal(src, &v); err != nil {
		var de *toml.DecodeError
		if errors.As(err, &de) {
			row, column := de.Position()
			return nil, &millrace.FormatError{Position: position(row, column), Reason: strings.TrimPrefix(de.Error(), "toml: ")}
		}
		return nil, &millrace.FormatError{Position: position(1, 1), Reason: strings.TrimPrefix(err.Error(), "toml: ")}
	}
	plain(v)
	return lowered(v), nil
}

func decodeJSON(src []byte) (matter, error) {
	var v map[string]any
	if err := jsonio.Unmarshal(src, &jsonio.Limits{Depth: maxNested}, &v); err != nil {
		return nil, err
	}
	plain(v)
	return lowered(v), nil
}

// shallow returns an error if brackets are nested too deeply, because decoders are recursive.
func shallow(src []byte) error {
	depth, line := 0, 1
	for _, c := range src {
		switch c {
		case '\n':
			line++
		case '[', '{':
			if depth++; depth > maxNested {
				return &millrace.FormatError{Position: position(line, 1), Code: "front-matter-depth", Reason: fmt.Sprintf("more than %d levels deep", maxNested)}
			}
		case ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return nil
}

// decodeYAML decodes YAML. It ignores unknown tags, and limits the number of values that result
// from aliases.
func decodeYAML(src []byte) (matter, error) {
	if err := shallow(src); err != nil {
		return nil, err
	}
	if at := compact.FindIndex(src); at != nil {
		line := 1 + bytes.Count(src[:at[0]], []byte("\n"))
		return nil, &millrace.FormatError{Position: position(line, 1), Code: "front-matter-depth", Reason: fmt.Sprintf("more than %d levels deep", maxNested)}
	}
	f, err := parseYAML(tagged(src))
	if err != nil {
		var se *yaml.SyntaxError
		if errors.As(err, &se) && se.Token != nil {
			return nil, at(se.Token, se.Message)
		}
		return nil, &millrace.FormatError{Position: position(1, 1), Reason: firstLine(err.Error())}
	}
	d := yamlDecoder{anchors: map[string]ast.Node{}, left: maxValues}
	for _, doc := range f.Docs {
		v, err := d.value(doc.Body, 0)
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case map[string]any:
			return lowered(v), nil
		case nil:
			continue
		}
		return nil, at(doc.Body.GetToken(), "the front matter is not a map")
	}
	return matter{}, nil
}

// compact matches a line that contains too many nested lists. The time of the parser is quadratic
// in their number.
var compact = regexp.MustCompile(fmt.Sprintf(`(?m)^[ \t]*(?:[^-?\s]*:[ \t]+)?(?:[-?][ \t]+){%d}`, maxNested+1))

// parseYAML parses YAML. It converts a panic of the parser to an error, because some inputs cause
// one.
func parseYAML(src []byte) (f *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, err = nil, fmt.Errorf("the parser failed: %v", r)
		}
	}()
	return parser.ParseBytes(src, 0, parser.AllowDuplicateMapKey()) // if keys are equal, the last one applies, as in Ruby
}

var lastTag = regexp.MustCompile(`^(\s*)(?:.*[:-]\s+)?!\S*\s*$`)

// tagged adds an empty value to each tag without a value, because the parser would use the next
// line as the value.
func tagged(src []byte) []byte {
	if !bytes.Contains(src, []byte("!")) {
		return src
	}
	lines := bytes.Split(src, []byte("\n"))
	for i, l := range lines {
		m := lastTag.FindSubmatch(bytes.TrimRight(l, "\r"))
		if m == nil {
			continue
		}
		for _, next := range lines[i+1:] {
			rest := bytes.TrimLeft(next, " ")
			if len(bytes.TrimSpace(rest)) == 0 {
				continue
			}
			if indent := len(next) - len(rest); indent < len(m[1]) || indent == len(m[1]) && !bytes.HasPrefix(rest, []byte("- ")) {
				lines[i] = append(bytes.TrimRight(bytes.Clone(l), " \r"), " ''"...)
			}
			break
		}
	}
	return bytes.Join(lines, []byte("\n"))
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

func at(t *token.Token, reason string) error {
	line, column := 1, 1
	if t != nil && t.Position != nil {
		line, column = t.Position.Line, t.Position.Column
	}
	return &millrace.FormatError{Position: position(line, column), Reason: reason}
}

// yamlDecoder converts a parsed document to the values of a matter.
type yamlDecoder struct {
	anchors map[string]ast.Node
	left    int // number of values that may be added
}

func (d *yamlDecoder) value(n ast.Node, depth int) (any, error) {
	if n == nil {
		return nil, nil
	}
	if d.left--; d.left < 0 || depth > maxNested {
		return nil, at(n.GetToken(), fmt.Sprintf("more than %d values, or more than %d levels deep", maxValues, maxNested))
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return d.mapping(n.Values, depth)
	case *ast.MappingValueNode:
		return d.mapping([]*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		out := make([]any, 0, len(n.Values))
		for _, e := range n.Values {
			v, err := d.value(e, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case *ast.AnchorNode:
		if n.Name != nil {
			d.anchors[n.Name.GetToken().Value] = n.Value
		}
		return d.value(n.Value, depth+1)
	case *ast.AliasNode:
		if n.Value == nil {
			return nil, nil
		}
		target, ok := d.anchors[n.Value.GetToken().Value]
		if !ok {
			return nil, at(n.GetToken(), "undefined alias: "+n.Value.GetToken().Value)
		}
		return d.value(target, depth+1)
	case *ast.TagNode:
		return d.value(n.Value, depth+1)
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.BoolNode:
		return n.Value, nil
	case *ast.NullNode:
		return nil, nil
	}
	if t := n.GetToken(); t != nil {
		return t.Value, nil // numbers stay unchanged
	}
	return nil, nil
}

func (d *yamlDecoder) mapping(values []*ast.MappingValueNode, depth int) (any, error) {
	out := make(map[string]any, len(values))
	for _, kv := range values {
		v, err := d.value(kv.Value, depth+1)
		if err != nil {
			return nil, err
		}
		if _, ok := kv.Key.(*ast.MergeKeyNode); ok {
			if m, ok := v.(map[string]any); ok {
				for k, v := range m {
					if _, has := out[k]; !has {
						out[k] = v
					}
				}
			}
			continue
		}
		key := kv.Key.GetToken().Value
		if s, ok := kv.Key.(*ast.StringNode); ok {
			key = s.Value
		}
		out[key] = v
	}
	return out, nil
}
