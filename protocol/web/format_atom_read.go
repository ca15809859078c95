package web

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
)

// Namespaces of Atom (RFC 4287), of its tombstones (RFC 6721), and of when a page
// itself was modified, which may be long before its feed tells of it.
const (
	atomSpace      = "http://www.w3.org/2005/Atom"
	tombstoneSpace = "http://purl.org/atompub/tombstones/1.0"
	termsSpace     = "http://purl.org/dc/terms/" // of Dublin Core
)

// maxAtomDepth is how many elements may stand inside each other, and
// maxAtomText how many bytes of one text count.
const (
	maxAtomDepth = 64
	maxAtomText  = 16 << 10
)

// atomReader is one Atom document being read.
type atomReader struct {
	d    *xml.Decoder
	doc  *feedDoc
	base []*url.URL // of the elements that are open (xml:base)
	self feedEntry  // the entry that is open
	text strings.Builder
	kept bool     // text collects the innermost element's
	path []string // local names of the elements that are open, "" for those of other namespaces
	seen int      // elements
}

// decodeAtom reads an Atom feed. Elements of other namespaces than Atom's and
// the tombstones' are passed over, with what is in them.
func decodeAtom(body []byte, at *url.URL) (*feedDoc, error) {
	a := &atomReader{d: xml.NewDecoder(bytes.NewReader(body)), doc: &feedDoc{}, base: []*url.URL{at}}
	a.d.CharsetReader = func(label string, in io.Reader) (io.Reader, error) {
		return nil, millrace.Coded("charset", fmt.Errorf("its character set is %.40q, and not UTF-8", label))
	}
	for {
		t, err := a.d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, a.fail("", "Atom", err)
		}
		switch t := t.(type) {
		case xml.StartElement:
			err = a.start(t)
		case xml.EndElement:
			a.end()
		case xml.CharData:
			if a.kept && a.text.Len() < maxAtomText {
				a.text.Write(t)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if a.seen == 0 {
		return nil, a.fail("empty", "it is empty", nil)
	}
	return a.doc, nil
}

func (a *atomReader) fail(code, reason string, err error) error {
	line, _ := a.d.InputPos()
	return feedError(fmt.Sprintf("line %d", line), code, reason, err)
}

func (a *atomReader) start(t xml.StartElement) error {
	if len(a.path) == maxAtomDepth {
		return a.fail("xml-depth", fmt.Sprintf("elements nest deeper than %d", maxAtomDepth), nil)
	}
	name := ""
	switch t.Name.Space {
	case atomSpace:
		name = t.Name.Local
	case tombstoneSpace:
		name = "at:" + t.Name.Local
	case termsSpace:
		name = "dcterms:" + t.Name.Local
	}
	if len(a.path) == 0 && name != "feed" {
		return a.fail("xml-root", fmt.Sprintf("its root is <%.40s> of the namespace %.80q, and not Atom's feed", t.Name.Local, t.Name.Space), nil)
	}
	base := a.base[len(a.base)-1]
	for _, attr := range t.Attr {
		switch {
		case attr.Name.Space == "http://www.w3.org/XML/1998/namespace" && attr.Name.Local == "base" || attr.Name.Space == "xml" && attr.Name.Local == "base":
			if u, err := url.Parse(resolved(base, attr.Value)); err == nil && u.Host != "" {
				base = u
			}
		case len(a.path) == 0 && attr.Value == tombstoneSpace && (attr.Name.Space == "xmlns" || attr.Name.Local == "xmlns"):
			a.doc.Tombstones = true
		}
	}
	a.base, a.path = append(a.base, base), append(a.path, name)
	a.kept = false
	a.seen++
	switch parent, depth := a.parent(), len(a.path); {
	case depth == 2 && (name == "entry" || name == "at:deleted-entry"):
		if len(a.doc.Entries) == maxFeedEntries {
			return fmt.Errorf("%s: a feed of more than %d entries: %w", Name, maxFeedEntries, millrace.ErrTooLarge)
		}
		a.self = feedEntry{Gone: name != "entry"}
		if a.self.Gone {
			a.doc.Tombstones = true
			a.self.ID, a.self.Updated = strings.TrimSpace(attribute(t, "ref")), feedTime(attribute(t, "when"))
		}
	case name == "link" && (depth == 2 || depth == 3 && isEntry(parent)):
		a.link(t, base, depth == 2)
	case (name == "id" || name == "updated" || name == "dcterms:modified") && (depth == 2 || depth == 3 && parent == "entry"):
		a.kept = true
		a.text.Reset()
	}
	return nil
}

func isEntry(name string) bool { return name == "entry" || name == "at:deleted-entry" }

// parent gives the name of the element around the innermost one.
func (a *atomReader) parent() string {
	if len(a.path) < 2 {
		return ""
	}
	return a.path[len(a.path)-2]
}

// link takes in a link of the feed or of an entry (RFC 4287, section 4.2.7).
func (a *atomReader) link(t xml.StartElement, base *url.URL, ofFeed bool) {
	rel, typ := strings.ToLower(attribute(t, "rel")), strings.ToLower(attribute(t, "type"))
	to := resolved(base, attribute(t, "href"))
	switch {
	case to == "":
	case ofFeed:
		if rel == "next" && a.doc.Next == "" {
			a.doc.Next = to
		}
	case rel != "" && rel != "alternate":
	case isMarkdownType(typ):
		a.self.Twin = to
	case (typ == "" || typ == "text/html" || typ == "application/xhtml+xml") && a.self.URL == "":
		a.self.URL = to
	}
}

func (a *atomReader) end() {
	name, depth := a.path[len(a.path)-1], len(a.path)
	value := strings.TrimSpace(a.text.String())
	switch {
	case a.kept && depth == 3 && name == "id":
		a.self.ID = value
	case a.kept && depth == 3 && name == "dcterms:modified":
		a.self.Modified = feedTime(value)
	case a.kept && depth == 3:
		a.self.Updated = feedTime(value)
	case a.kept && depth == 2 && name == "updated":
		a.doc.Updated = feedTime(value)
	case depth == 2 && isEntry(name):
		if a.self.URL == "" {
			a.self.URL = resolved(nil, a.self.ID)
		}
		a.doc.Entries = append(a.doc.Entries, a.self)
	}
	a.kept = false
	a.base, a.path = a.base[:len(a.base)-1], a.path[:len(a.path)-1]
}

// attribute gives an attribute without a namespace.
func attribute(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Space == "" && a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// isMarkdownType reports whether a media type is Markdown's, with or without
// parameters.
func isMarkdownType(s string) bool {
	mt, _, _ := strings.Cut(strings.ToLower(s), ";")
	mt = strings.TrimSpace(mt)
	return mt == "text/markdown" || mt == "text/x-markdown"
}
