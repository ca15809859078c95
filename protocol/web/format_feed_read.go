package web

import (
	"bytes"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/jsonio"
)

// Media types of feeds.
const (
	atomType     = "application/atom+xml"
	jsonFeedType = "application/feed+json"
)

// feedDoc is one document of a feed in any format.
type feedDoc struct {
	Updated    time.Time // zero = absent
	Tombstones bool      // whether the feed lists deletions, or declares that it would
	Entries    []feedEntry
	Next       string // URL of the document with older entries. If empty, this document has the oldest.
}

// feedEntry is the entry of one page in a feed.
type feedEntry struct {
	ID        string
	URL       string // absolute URL of the page, or "" if absent
	Alternate string // URL of the page's Markdown
	Updated   time.Time
	Modified  time.Time // modification time of the page; zero = absent
	Gone      bool
}

// decodeFeed parses an Atom feed or a JSON Feed. It distinguishes them by the first character. at
// is the URL of the document.
func decodeFeed(body []byte, at *url.URL) (*feedDoc, error) {
	body = bytes.TrimPrefix(body, []byte("\uFEFF"))
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		return decodeJSONFeed(body, at)
	}
	return decodeAtom(body, at)
}

// wireJSONFeed contains the members of a JSON Feed that the reader uses.
type wireJSONFeed struct {
	Version string         `json:"version"`
	Next    string         `json:"next_url"`
	Items   []wireJSONItem `json:"items"`
	Deleted jsonio.Raw     `json:"_deleted"`
}

type wireJSONItem struct {
	ID        jsonio.Raw `json:"id"` // a string; numbers are treated as strings (section Items)
	URL       string     `json:"url"`
	Modified  string     `json:"date_modified"`
	Published string     `json:"date_published"`
	Files     []struct {
		URL  string `json:"url"`
		Type string `json:"mime_type"`
	} `json:"attachments"`
}

// wireJSONGone is millrace's extension for deletions, which JSON Feed does not define.
type wireJSONGone struct {
	ID      string `json:"id"`
	URL     string `json:"url"`
	Deleted string `json:"date_deleted"`
}

// feedLimits are the limits for parsing a JSON Feed.
var feedLimits = jsonio.Limits{Size: maxFeed, Depth: 64}

// decodeJSONFeed parses a JSON Feed 1.0 or 1.1.
func decodeJSONFeed(body []byte, at *url.URL) (*feedDoc, error) {
	var w wireJSONFeed
	if err := jsonio.Unmarshal(body, &feedLimits, &w); err != nil {
		return nil, feedError("", "", "JSON Feed", err)
	}
	if !strings.HasPrefix(w.Version, "https://jsonfeed.org/version/1") && !strings.HasPrefix(w.Version, "http://jsonfeed.org/version/1") {
		return nil, feedError("/version", "unknown-version", "not a JSON Feed of version 1", nil)
	}
	var gone struct {
		Items *[]wireJSONGone `json:"items"`
	}
	if w.Deleted != nil && jsonio.Unmarshal(w.Deleted, &feedLimits, &gone) != nil {
		gone.Items = nil // the extension belongs to another program
	}
	doc := &feedDoc{Tombstones: gone.Items != nil, Next: resolved(at, w.Next)}
	for _, it := range w.Items {
		e := feedEntry{ID: strings.Trim(string(it.ID), `"`), Updated: feedTime(it.Modified)}
		if e.Updated.IsZero() {
			e.Updated = feedTime(it.Published)
		}
		if e.URL = resolved(at, it.URL); e.URL == "" {
			e.URL = resolved(nil, e.ID)
		}
		for _, f := range it.Files {
			if isMarkdownType(f.Type) {
				e.Alternate = resolved(at, f.URL)
			}
		}
		doc.Entries = append(doc.Entries, e)
	}
	if gone.Items != nil {
		for _, g := range *gone.Items {
			e := feedEntry{ID: g.ID, Updated: feedTime(g.Deleted), Gone: true}
			if e.URL = resolved(at, g.URL); e.URL == "" {
				e.URL = resolved(nil, g.ID)
			}
			doc.Entries = append(doc.Entries, e)
		}
	}
	for _, e := range doc.Entries {
		if doc.Updated.Before(e.Updated) {
			doc.Updated = e.Updated
		}
	}
	return doc, nil
}

// resolved returns the absolute canonical URL of ref, or "" if ref is not a URL.
func resolved(at *url.URL, ref string) string {
	if strings.TrimSpace(ref) == "" {
		return ""
	}
	u, err := canon.Resolve(at, ref)
	if err != nil {
		return ""
	}
	return u
}

// feedTime parses a date and time of RFC 3339. For any other text, it returns the zero time.
func feedTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339, strings.TrimSpace(s))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

func feedError(position, code, reason string, err error) error {
	return &millrace.FormatError{Protocol: Name, Position: position, Code: code, Reason: reason, Err: err}
}
