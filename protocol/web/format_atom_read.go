package web

import (
	"fmt"
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
	xmlSpace       = "http://www.w3.org/XML/1998/namespace"
)

// decodeAtom reads an Atom feed. Elements of other namespaces than Atom's and
// the tombstones' are passed over, with what is in them.
func decodeAtom(body []byte, at *url.URL) (*feedDoc, error) {
	root, err := parseXML(body)
	if root != nil && !root.is(atomSpace, "feed") {
		return nil, xmlError(root.line, "xml-root", fmt.Sprintf("its root is <%.40s> of the namespace %.80q, and not Atom's feed", root.name.Local, root.name.Space), nil)
	}
	if err != nil {
		return nil, err
	}
	doc, base := &feedDoc{}, root.base(at)
	for _, a := range root.attrs {
		doc.Tombstones = doc.Tombstones || a.Value == tombstoneSpace && (a.Name.Space == "xmlns" || a.Name.Local == "xmlns")
	}
	for _, n := range root.nodes {
		switch {
		case n.is(atomSpace, "updated"):
			doc.Updated = feedTime(n.text)
		case n.is(atomSpace, "link"):
			if rel, _ := n.attr("rel"); strings.EqualFold(rel, "next") && doc.Next == "" {
				doc.Next = n.href(base)
			}
		case n.is(atomSpace, "entry"), n.is(tombstoneSpace, "deleted-entry"):
			if len(doc.Entries) == maxFeedEntries {
				return nil, fmt.Errorf("%s: a feed of more than %d entries: %w", Name, maxFeedEntries, millrace.ErrTooLarge)
			}
			e := atomEntry(n, base)
			doc.Tombstones = doc.Tombstones || e.Gone
			doc.Entries = append(doc.Entries, e)
		}
	}
	return doc, nil
}

// atomEntry reads an entry of a feed, or a tombstone.
func atomEntry(entry *node, base *url.URL) (e feedEntry) {
	base = entry.base(base)
	if e.Gone = entry.name.Local != "entry"; e.Gone {
		ref, _ := entry.attr("ref")
		when, _ := entry.attr("when")
		e.ID, e.Updated = strings.TrimSpace(ref), feedTime(when)
	}
	for _, n := range entry.nodes {
		switch {
		case n.is(atomSpace, "link"):
			e.link(n, base)
		case e.Gone:
		case n.is(atomSpace, "id"):
			e.ID = n.text
		case n.is(atomSpace, "updated"):
			e.Updated = feedTime(n.text)
		case n.is(termsSpace, "modified"):
			e.Modified = feedTime(n.text)
		}
	}
	if e.URL == "" {
		e.URL = resolved(nil, e.ID)
	}
	return e
}

// link reads a link of an entry (RFC 4287, section 4.2.7).
func (e *feedEntry) link(n *node, base *url.URL) {
	rel, _ := n.attr("rel")
	typ, _ := n.attr("type")
	to, typ := n.href(base), strings.ToLower(typ)
	switch {
	case to == "", rel != "" && !strings.EqualFold(rel, "alternate"):
	case isMarkdownType(typ):
		e.Twin = to
	case (typ == "" || typ == "text/html" || typ == "application/xhtml+xml") && e.URL == "":
		e.URL = to
	}
}

// href returns the target of a link, "" if it has none.
func (n *node) href(base *url.URL) string {
	to, _ := n.attr("href")
	return resolved(n.base(base), to)
}

// base returns the base URL of an element (XML Base) in one with a base URL.
func (n *node) base(outer *url.URL) *url.URL {
	for _, a := range n.attrs {
		if a.Name.Local == "base" && (a.Name.Space == xmlSpace || a.Name.Space == "xml") {
			if u, err := url.Parse(resolved(outer, a.Value)); err == nil && u.Host != "" {
				return u
			}
		}
	}
	return outer
}

// isMarkdownType reports whether a media type is Markdown's, with or without
// parameters.
func isMarkdownType(s string) bool {
	mt, _, _ := strings.Cut(strings.ToLower(s), ";")
	mt = strings.TrimSpace(mt)
	return mt == "text/markdown" || mt == "text/x-markdown"
}
