package web

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"

	gofeed "github.com/mmcdole/gofeed/atom"

	"github.com/millrace/millrace"
)

// Namespaces of Atom (RFC 4287), of tombstones (RFC 6721), and of the page's modification time,
// which may be long before the time of the entry.
const (
	atomSpace      = "http://www.w3.org/2005/Atom"
	tombstoneSpace = "http://purl.org/atompub/tombstones/1.0"
	termsSpace     = "http://purl.org/dc/terms/" // Dublin Core
)

// decodeAtom parses an Atom feed. It first parses the XML tree with limits, because the parser of
// gofeed has no limits and needs a kilobyte per element.
func decodeAtom(body []byte, at *url.URL) (*feedDoc, error) {
	root, err := parseXML(body, maxFeedNodes)
	if root != nil && !root.is(atomSpace, "feed") {
		return nil, xmlError(root.line, "xml-root", fmt.Sprintf("root element <%.40s> in namespace %.80q, want Atom's feed", root.name.Local, root.name.Space), nil)
	}
	if err != nil {
		return nil, err
	}
	feed, err := new(gofeed.Parser).Parse(bytes.NewReader(body))
	if err != nil {
		return nil, feedError("", "", "Atom", err)
	}
	doc := &feedDoc{Updated: feedTime(feed.Updated)}
	for _, a := range root.attrs {
		doc.Tombstones = doc.Tombstones || a.Value == tombstoneSpace && (a.Name.Space == "xmlns" || a.Name.Local == "xmlns")
	}
	for _, l := range feed.Links {
		if strings.EqualFold(l.Rel, "next") && doc.Next == "" {
			doc.Next = resolved(at, l.Href)
		}
	}
	for _, in := range feed.Entries {
		e := feedEntry{ID: in.ID, Updated: feedTime(in.Updated)}
		for _, m := range in.Extensions["dcterms"]["modified"] {
			e.Modified = feedTime(m.Value)
		}
		for _, l := range in.Links {
			e.link(l.Rel, l.Type, resolved(at, l.Href))
		}
		doc.Entries = append(doc.Entries, e)
	}
	for _, names := range feed.Extensions {
		for _, in := range names["deleted-entry"] { // RFC 6721
			doc.Tombstones = true
			e := feedEntry{ID: strings.TrimSpace(in.Attrs["ref"]), Updated: feedTime(in.Attrs["when"]), Gone: true}
			for _, l := range in.Children["link"] {
				e.link(l.Attrs["rel"], l.Attrs["type"], resolved(at, l.Attrs["href"]))
			}
			doc.Entries = append(doc.Entries, e)
		}
	}
	if len(doc.Entries) > maxFeedEntries {
		return nil, fmt.Errorf("%s: a feed of more than %d entries: %w", Name, maxFeedEntries, millrace.ErrTooLarge)
	}
	for i := range doc.Entries {
		if e := &doc.Entries[i]; e.URL == "" {
			e.URL = resolved(nil, e.ID)
		}
	}
	return doc, nil
}

// link adds a link of an entry (RFC 4287, section 4.2.7).
func (e *feedEntry) link(rel, typ, to string) {
	typ = strings.ToLower(typ)
	switch {
	case to == "", rel != "" && !strings.EqualFold(rel, "alternate"):
	case isMarkdownType(typ):
		e.Alternate = to
	case (typ == "" || typ == "text/html" || typ == "application/xhtml+xml") && e.URL == "":
		e.URL = to
	}
}

// isMarkdownType reports whether a media type is Markdown, with or without parameters.
func isMarkdownType(s string) bool {
	mt, _, _ := strings.Cut(strings.ToLower(s), ";")
	mt = strings.TrimSpace(mt)
	return mt == "text/markdown" || mt == "text/x-markdown"
}
