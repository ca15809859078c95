package scp

import (
	"bytes"
	"encoding/json"
)

// Wrapper for several JSON-LD elements of a page.
const (
	graphStart = `{"@context":"https://schema.org","@graph":[`
	graphEnd   = `]}`
	graphDepth = 3 // depth of an element in a line: inside a page, an object and an array
)

// schemaOf returns JSON-LD elements as one object on one line. A single element is only compacted,
// and several elements become a graph. Elements that are not valid objects are dropped.
func schemaOf(list []json.RawMessage) []byte {
	if len(list) == 0 {
		return nil
	}
	p := parser{limits: new(OpenOptions).resolve()}
	var parts [][]byte
	for _, raw := range list {
		p.reset(raw, "", "")
		p.depth = graphDepth
		if p.peek() == '{' && p.value() && p.end() {
			parts = append(parts, compact(raw))
		}
	}
	switch len(parts) {
	case 0:
		return nil
	case 1:
		return parts[0]
	}
	b := append([]byte(graphStart), bytes.Join(parts, []byte(","))...)
	return append(b, graphEnd...)
}

// schemas returns the JSON-LD elements of a page. It splits a graph from schemaOf only if each
// element has its own context, because an element may depend on the context of the graph.
func schemas(schema []byte) []json.RawMessage {
	if len(schema) == 0 {
		return nil
	}
	single := []json.RawMessage{schema}
	if !bytes.HasPrefix(schema, []byte(graphStart)) || !bytes.HasSuffix(schema, []byte(graphEnd)) {
		return single
	}
	p := parser{limits: new(OpenOptions).resolve()}
	p.reset(schema, "", "")
	p.pos, p.depth = len(graphStart), graphDepth+1
	var out []json.RawMessage
	for more := p.element(true); more; more = p.element(false) {
		from := p.pos
		if !p.contextual() {
			return single
		}
		out = append(out, schema[from:p.pos:p.pos])
	}
	if p.failed || p.pos+1 != len(schema) || len(out) < 2 {
		return single
	}
	return out
}

// contextual parses an object and reports whether it has the member @context.
func (p *parser) contextual() bool {
	if p.peek() != '{' {
		return false
	}
	p.pos++
	found := false
	for name, more := p.member(true); more; name, more = p.member(false) {
		found = found || string(name) == "@context"
		if !p.value() {
			return false
		}
	}
	return found && !p.failed
}

// compact returns a copy of JSON without white space between tokens, or nil if it is not valid.
func compact(b []byte) []byte {
	var out bytes.Buffer
	out.Grow(len(b))
	if json.Compact(&out, b) != nil {
		return nil
	}
	return out.Bytes()
}
