package arc

import (
	"fmt"
	"math"

	"github.com/goccy/go-yaml/ast"

	"github.com/millrace/millrace/internal/canon"
)

// yamlEncoder writes a tree as JSON.
type yamlEncoder struct {
	part *part
	top  bool // the tree is what is beside the pages
}

func (d *yamlEncoder) append(dst []byte, n ast.Node, depth int) ([]byte, error) {
	if depth > maxYAMLDepth {
		return nil, d.deep(n)
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return d.mapping(dst, n.Values, depth)
	case *ast.MappingValueNode:
		return d.mapping(dst, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		dst = append(dst, '[')
		for i, e := range n.Values {
			if i > 0 {
				dst = append(dst, ',')
			}
			var err error
			if dst, err = d.append(dst, e, depth+1); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case *ast.StringNode:
		return canon.AppendString(dst, n.Value), nil
	case *ast.LiteralNode:
		return canon.AppendString(dst, n.Value.Value), nil
	case *ast.BoolNode:
		return fmt.Append(dst, n.Value), nil
	case *ast.NullNode, nil:
		return append(dst, "null"...), nil
	case *ast.IntegerNode:
		return fmt.Append(dst, n.Value), nil
	case *ast.FloatNode:
		if !math.IsNaN(n.Value) && !math.IsInf(n.Value, 0) {
			return canon.AppendNumber(dst, n.Value), nil
		}
		return nil, d.wrong(n, "JSON has no such number")
	case *ast.InfinityNode, *ast.NanNode:
		return nil, d.wrong(n, "JSON has no such number")
	case *ast.AnchorNode, *ast.AliasNode:
		return nil, d.wrong(n, "anchors and aliases are refused")
	case *ast.TagNode:
		return nil, d.wrong(n, "tags are refused")
	}
	return nil, d.wrong(n, "a list has no such value")
}

func (d *yamlEncoder) mapping(dst []byte, values []*ast.MappingValueNode, depth int) ([]byte, error) {
	dst = append(dst, '{')
	for i, kv := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		var key string
		switch k := kv.Key.(type) {
		case *ast.StringNode:
			key = k.Value
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
			key = k.GetToken().Value
		default:
			return nil, d.wrong(kv.Key, "a name is plain text")
		}
		dst = append(canon.AppendString(dst, key), ':')
		// Without quotes, a version looks like a number.
		if number := isNumber(kv.Value); d.top && depth == 0 && key == "arc_sitemap_version" && number {
			dst = canon.AppendString(dst, kv.Value.GetToken().Value)
			continue
		}
		var err error
		if dst, err = d.append(dst, kv.Value, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func isNumber(n ast.Node) bool {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return true
	}
	return false
}

func (d *yamlEncoder) deep(n ast.Node) error { return yamlDeep(d.place(n)) }

func (d *yamlEncoder) wrong(n ast.Node, reason string) error {
	line, column := d.place(n)
	return yamlError(line, column, reason)
}

func (d *yamlEncoder) place(n ast.Node) (line, column int) {
	if n != nil {
		if t := n.GetToken(); t != nil && t.Position != nil {
			return d.part.number(t.Position.Line), t.Position.Column
		}
	}
	return d.part.number(1), 1
}
