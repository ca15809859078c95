package scp

import (
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"io"
	"strings"
)

// seenElement is an SCP element anywhere in the sitemap.
type seenElement struct {
	name   string
	space  string
	parent string            // name of the parent element
	attr   map[string]string // attributes without a namespace
	other  []string          // names of attributes with a namespace, except those of XML Schema instances
	text   string            // the element's text, up to about 2 kB
	filled bool              // whether the element has child elements
	line   int
}

// attributes returns the attributes that the schema requires of an element, or nil if the schema
// does not define the element.
func (e *seenElement) attributes() []string {
	switch e.name {
	case "version", "compression":
		return []string{}
	case "section":
		return []string{"name", "updateFreq", "pages"}
	case "collection":
		return []string{"section", "type", "url", "generated", "expires", "pages", "size"}
	case "delta":
		return []string{"section", "period", "url", "generated", "expires", "pages", "size", "since"}
	}
	return nil
}

// walk returns the elements of a sitemap whose namespace looks like that of SCP, even if it is
// misspelled. It omits elements inside another such element. It stops at the first XML error, at a
// nesting depth of 32, and after maxElements elements.
func walk(body []byte) (out []*seenElement) {
	in := io.Reader(bytes.NewReader(body))
	if codingOf(body[:min(4, len(body))]) == "gzip" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil
		}
		in = io.LimitReader(z, 64<<20)
	}
	d := xml.NewDecoder(in)
	d.Strict = false
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // the names of SCP elements are ASCII
	var stack []string
	var open *seenElement
	inside := 0 // depth of the open SCP element in the stack, or 0
	for {
		token, err := d.Token()
		if err != nil {
			return out
		}
		switch t := token.(type) {
		case xml.StartElement:
			switch {
			case len(stack) == 32 || len(out) == maxElements:
				return out
			case open != nil:
				open.filled = true
			case len(stack) > 0 && strings.Contains(strings.ToLower(t.Name.Space), "scp"):
				line, _ := d.InputPos()
				open = &seenElement{name: t.Name.Local, space: t.Name.Space, parent: stack[len(stack)-1], attr: map[string]string{}, line: line}
				inside = len(stack)
				for _, a := range t.Attr {
					switch {
					case a.Name.Space == "":
						open.attr[a.Name.Local] = a.Value
					case a.Name.Space != "xmlns" && !strings.HasSuffix(a.Name.Space, "XMLSchema-instance"):
						open.other = append(open.other, a.Name.Local)
					}
				}
				delete(open.attr, "xmlns")
				out = append(out, open)
			}
			stack = append(stack, t.Name.Local)
		case xml.EndElement:
			if len(stack) > 0 {
				stack = stack[:len(stack)-1]
			}
			if open != nil && len(stack) <= inside {
				open = nil
			}
		case xml.CharData:
			if open != nil && len(open.text) < 1024 {
				open.text += string(t[:min(len(t), 1024)])
			}
		}
	}
}
