package web

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/millrace/millrace"
)

// node is an XML element.
type node struct {
	name  xml.Name
	attrs []xml.Attr
	text  string // the element's own text, without surrounding white space
	nodes []*node
	line  int
}

// Limits for XML that is parsed as a tree.
const (
	maxNodes     = 2_000_000
	maxNodeDepth = 64
)

// parseXML parses a document as a tree. elements is the maximum number of elements. On an error, it
// also returns the part of the tree that was parsed.
func parseXML(body []byte, elements int) (*node, error) {
	d := xml.NewDecoder(bytes.NewReader(body))
	d.CharsetReader = func(label string, _ io.Reader) (io.Reader, error) {
		return nil, millrace.Coded("charset", fmt.Errorf("character set is %.40q, want UTF-8", label))
	}
	var root *node
	var open []*node
	texts := []*strings.Builder{}
	for n := 0; ; {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			line, _ := d.InputPos()
			return root, xmlError(line, "", "XML", err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			line, _ := d.InputPos()
			e := &node{name: t.Name, attrs: t.Copy().Attr, line: line}
			if n++; n > elements || len(open) == maxNodeDepth {
				return root, xmlError(line, "xml-depth", "too many or too deeply nested elements", nil)
			}
			switch {
			case len(open) > 0:
				parent := open[len(open)-1]
				parent.nodes = append(parent.nodes, e)
			case root != nil:
				return root, xmlError(line, "xml-root", "more than one root element", nil)
			default:
				root = e
			}
			open, texts = append(open, e), append(texts, &strings.Builder{})
		case xml.EndElement:
			last := len(open) - 1
			open[last].text = strings.TrimSpace(texts[last].String())
			open, texts = open[:last], texts[:last]
		case xml.CharData:
			if len(open) > 0 {
				texts[len(texts)-1].Write(t)
			}
		}
	}
	if root == nil {
		line, _ := d.InputPos()
		return nil, xmlError(line, "empty", "empty XML document", nil)
	}
	return root, nil
}

func xmlError(line int, code, reason string, err error) error {
	return feedError(fmt.Sprintf("line %d", line), code, reason, err)
}

// is reports whether the element has the given namespace and local name.
func (n *node) is(space, local string) bool { return n.name.Space == space && n.name.Local == local }

// all returns the children with the given name.
func (n *node) all(space, local string) (out []*node) {
	for _, c := range n.nodes {
		if c.is(space, local) {
			out = append(out, c)
		}
	}
	return out
}

// attr returns the value of an attribute without a namespace, and whether the attribute is present.
func (n *node) attr(name string) (string, bool) {
	for _, a := range n.attrs {
		if a.Name.Space == "" && a.Name.Local == name {
			return a.Value, true
		}
	}
	return "", false
}
