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
	maxYAML      = 2 << 20 // bytes of a list; its tree needs 60 times that
	maxYAMLDepth = 64      // nesting of lists and maps
	maxYAMLKeys  = 1000    // names in a map; the parser takes quadratic time
)

// fromYAML returns a list in YAML (E.3.3) as JSON. It refuses anchors, aliases, merges and
// tags: a list does not need them, and a few lines with them can expand to more than fits in
// memory.
//
// Errors are [*millrace.FormatError] with the line and the column, without the URL;
// ErrTooLarge; or those of the reader.
func fromYAML(r io.Reader) (list []byte, err error) {
	defer func() {
		if r := recover(); r != nil { // a bug in the parser
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

// parseYAML returns the tree of a document, or nil for an empty one.
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

// checkTokens returns an error for tokens that a list does not need, and for nesting too deep
// for the parser. A version without quotes becomes a string.
func checkTokens(tokens token.Tokens) error {
	depth, dashes, line := 0, 0, 0
	keys := map[int]int{} // names in the current maps, by column
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
			dashes++ // each dash opens one more level in block style
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

// firstPage matches the name of the pages and the start of the line of the first one, in block
// style.
var firstPage = regexp.MustCompile(`(?:^|\n)pages:[^\n]*(\n *- )`)

// completePages cuts the beginning of a list in YAML before its last page, which may be
// incomplete.
func completePages(text []byte) []byte {
	if m := firstPage.FindSubmatch(text); m != nil {
		return text[:bytes.LastIndex(text, m[1])+1]
	}
	return text
}

// yamlFailure converts an error of goccy to a FormatError.
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
