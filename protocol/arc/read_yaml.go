package arc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/millrace/millrace"
)

const (
	maxYAML      = 2 << 20 // maximum size of a list in bytes; its tree needs 60 times as much memory
	maxYAMLDepth = 64      // maximum nesting depth of lists and maps
	maxYAMLKeys  = 1000    // maximum number of names in a map, because the parser takes quadratic time
)

// fromYAML converts a list in YAML (E.3.3) to JSON. It rejects anchors, aliases, merges and tags: a
// list does not need them, and a few lines with them can expand to more data than fits in memory.
//
// The error is ErrTooLarge, an error of r, or a [*millrace.FormatError]. The FormatError has the line
// and the column but no URL.
func fromYAML(r io.Reader) (list []byte, err error) {
	defer func() {
		if r := recover(); r != nil { // the parser has a bug
			err = yamlError(1, 1, fmt.Sprintf("cannot parse: %v", r))
		}
	}()
	text, err := io.ReadAll(io.LimitReader(r, maxYAML+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxYAML {
		return nil, fmt.Errorf("list in YAML exceeds %d bytes: %w", maxYAML, millrace.ErrTooLarge)
	}
	body, err := parseYAML(strings.TrimPrefix(string(text), "\uFEFF"))
	if err != nil {
		return nil, err
	}
	if body == nil {
		return []byte("{}"), nil
	}
	var value any
	if err := yaml.NodeToValue(body, &value); err != nil {
		return nil, yamlFailure(err)
	}
	if _, ok := value.(map[string]any); !ok {
		return nil, yamlError(1, 1, "not a mapping")
	}
	return json.Marshal(value)
}

// parseYAML returns the tree of a document, or nil if the document is empty.
func parseYAML(text string) (ast.Node, error) {
	tokens := lexer.Tokenize(text)
	if err := checkTokens(tokens); err != nil {
		return nil, err
	}
	f, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, yamlFailure(err)
	}
	var body ast.Node
	for _, doc := range f.Docs {
		if _, ok := doc.Body.(*ast.DirectiveNode); ok || doc.Body == nil {
			continue
		}
		if body != nil {
			return nil, yamlErrorAt(doc.Body.GetToken(), "more than one document")
		}
		body = doc.Body
	}
	return body, nil
}

// checkTokens returns an error for tokens that a list does not need, and for nesting that is too
// deep for the parser. It turns a version without quotes into a string.
func checkTokens(tokens token.Tokens) error {
	depth, dashes, line := 0, 0, 0
	keys := map[int]int{} // number of names in the current maps, by column
	for i, t := range tokens {
		if t.Position.Line != line {
			dashes, line = 0, t.Position.Line
			maps.DeleteFunc(keys, func(column, _ int) bool { return column > t.Position.Column })
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return yamlErrorAt(t, "anchors and aliases are not allowed")
		case token.TagType:
			return yamlErrorAt(t, "tags are not allowed")
		case token.InfinityType, token.NanType:
			return yamlErrorAt(t, "not a JSON number")
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth = max(depth-1, 0)
		case token.SequenceEntryType, token.MappingKeyType:
			dashes++ // in block style, each dash opens another level
		case token.MappingValueType:
			if keys[t.Prev.Position.Column]++; keys[t.Prev.Position.Column] > maxYAMLKeys {
				return yamlErrorAt(t, fmt.Sprintf("map has more than %d keys", maxYAMLKeys))
			}
		case token.FloatType, token.IntegerType:
			if i > 1 && tokens[i-2].Value == "arc_sitemap_version" && tokens[i-2].Position.Column == 1 {
				t.Type = token.StringType
			}
		}
		if depth > maxYAMLDepth || dashes > maxYAMLDepth {
			return yamlErrorAt(t, fmt.Sprintf("nested deeper than %d levels", maxYAMLDepth))
		}
	}
	return nil
}

// firstPage matches the member pages and the beginning of the line of its first element, in block
// style.
var firstPage = regexp.MustCompile(`(?:^|\n)pages:[^\n]*(\n *- )`)

// completePages cuts off the last page from the beginning of a list in YAML, because it may be
// incomplete.
func completePages(text []byte) []byte {
	if m := firstPage.FindSubmatch(text); m != nil {
		return text[:bytes.LastIndex(text, m[1])+1]
	}
	return text
}

// yamlFailure converts an error of the YAML parser to a FormatError.
func yamlFailure(err error) error {
	if e, ok := errors.AsType[yaml.Error](err); ok && e.GetToken() != nil {
		return yamlErrorAt(e.GetToken(), e.GetMessage())
	}
	reason, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return yamlError(1, 1, reason)
}

func yamlErrorAt(t *token.Token, reason string) error {
	return yamlError(t.Position.Line, t.Position.Column, reason)
}

func yamlError(line, column int, reason string) error {
	return &millrace.FormatError{
		Protocol: Name, Section: "E.3.3", Position: fmt.Sprintf("line %d, column %d", line, column), Reason: reason,
	}
}
