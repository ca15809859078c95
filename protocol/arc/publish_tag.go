package arc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// tagFormat increases when tag returns different values for the same page.
const tagFormat = 1

// Forms of a tag, distinguished by the first character.
const (
	tagPublic   = '{' // first character of the public entry itself
	tagWithheld = '+' // followed by the public entry without its snapshot; the keyed entry is built from the page
	tagLarge    = '=' // the entry is built from the page
)

// maxTag is the maximum size of an entry in a tag, in bytes.
const maxTag = 32 << 10

// tag returns the page's entry as in the list, so lists can be written without reading pages. For a
// page without an entry, it returns "".
func tag(site millrace.Site, p *millrace.Page) (string, error) {
	if len(p.URL) > 0 && p.URL[0] == '/' {
		c := *p
		c.URL = canon.Absolute(site.Base, p.URL)
		p = &c
	}
	e := listed(p)
	if e == nil || !ofSite(site, e.URL) {
		return "", nil
	}
	form := ""
	if isSensitive(e.Snapshot) {
		e.Snapshot, form = nil, string(tagWithheld)
	}
	value := form + string(e.append(make([]byte, 0, 1024)))
	if len(value) > maxTag {
		return string(tagLarge), nil
	}
	return value, nil
}

// listed returns the entry of a page with its snapshot and checksum, or nil if the page is not
// listed.
func listed(p *millrace.Page) *entry {
	e := entryOf(p)
	if e == nil {
		return nil
	}
	revision := p.Version
	if revision == "" {
		revision = p.Revision()
	}
	e.Checksum = checksumPrefix + revision
	return e
}

// isSensitive reports whether a snapshot contains a sensitive or personal node.
func isSensitive(snapshot json.RawMessage) bool {
	if !bytes.Contains(snapshot, []byte(`context"`)) {
		return false
	}
	root := parseNode(snapshot)
	return root != nil && len(root.sensitive()) > 0
}

// entryOfTag appends the entry of a tag to dst. If keyed is set, the entry includes its snapshot
// even if that is sensitive.
func entryOfTag(ctx context.Context, v millrace.View, t millrace.Tag, keyed bool, dst []byte) ([]byte, error) {
	switch {
	case t.Value == "":
		return nil, fmt.Errorf("the tag of %s is empty: %w", t.URL, millrace.ErrInvalid)
	case t.Value[0] == tagPublic:
		return append(dst, t.Value...), nil
	case t.Value[0] == tagWithheld && !keyed:
		return append(dst, t.Value[1:]...), nil
	}
	page, err := v.Page(ctx, millrace.Ref{URL: t.URL})
	if err != nil {
		return nil, fmt.Errorf("entry of %s: %w", t.URL, err)
	}
	e := listed(page)
	if e == nil {
		return nil, fmt.Errorf("entry of %s: the page has no entry: %w", t.URL, millrace.ErrInvalid)
	}
	if !keyed && isSensitive(e.Snapshot) {
		e.Snapshot = nil
	}
	return e.append(dst), nil
}
