package arc

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
)

// kinds are the kinds of pages that the member page of a snapshot can express.
var kinds = []millrace.PageKind{
	millrace.Article, millrace.Documentation, millrace.Service, millrace.Forum, millrace.Product, millrace.Listing, millrace.Collection,
}

// carry returns the page that a reader gets from the entry of p, with its snapshot. If p has no
// entry, it returns nil.
func carry(site millrace.Site, p *millrace.Page) *millrace.Page {
	e := entryOf(p)
	if e == nil || !ofSite(site, e.URL) {
		return nil
	}
	return e.page()
}

// ofSite reports whether a page is on the origin of its site. Readers accept no other pages in a
// list.
func ofSite(site millrace.Site, page string) bool {
	return canon.Origin(page) == canon.Origin(site.Base)
}

// entryOf returns the entry of a page of a View, without checksum and priority. The entry includes
// the snapshot even if that is sensitive. For an archive, and for a page with an invalid URL,
// entryOf returns nil.
func entryOf(p *millrace.Page) *entry {
	if p.Kind == millrace.Archive {
		return nil
	}
	u, err := canon.URL(p.URL)
	if err != nil {
		return nil
	}
	snapshot, facts := snapshotOf(p)
	return &entry{
		URL:       u,
		Lastmod:   kit.FormatTime(p.Modified),
		Indexable: true,
		Summary:   summaryOf(p, facts.Summary),
		Tags:      tagsOf(p, facts.sensitive),
		Snapshot:  snapshot,
		Auth:      new(bool),
		Robots:    "index",
	}
}

// page returns the page of an entry. Without a snapshot, its title and content are unknown.
func (e *entry) page() *millrace.Page {
	p := &millrace.Page{
		URL:      e.URL,
		Summary:  cutSpace(e.Summary),
		Tags:     distinct(e.Tags),
		Modified: parseTime(e.Lastmod),
		Access:   millrace.Access{NoIndex: !e.Indexable, Auth: e.auth()},
		Known:    millrace.FieldSummary | millrace.FieldTags | millrace.FieldAccess,
	}
	if !p.Modified.IsZero() {
		p.Known |= millrace.FieldModified
	}
	if e.Snapshot == nil {
		return p
	}
	root := parseNode(e.Snapshot)
	if root == nil {
		return p
	}
	p.Extra = map[string]json.RawMessage{Name: e.Snapshot}
	p.Known |= millrace.FieldExtra | millrace.FieldContent
	p.Blocks = root.blocks(nil, 1)
	if title := root.text("title"); title != "" {
		p.Title = title
		p.Known |= millrace.FieldTitle
	}
	if kind := millrace.PageKind(root.text("page")); slices.Contains(kinds, kind) {
		p.Kind = kind
		p.Known |= millrace.FieldKind
	}
	return p
}

// sensitive reports whether the snapshot of a page marks parts as sensitive or personal (E.6). In
// that case, the page's HTML must not restore the parts that the snapshot omits.
func sensitive(p *millrace.Page) bool { return len(parseNode(p.Extra[Name]).sensitive()) > 0 }

// summaryOf returns the ai_summary of a page: the summary of the snapshot, else the page's
// description, else its summary, else the beginning of its text. It skips texts that contain an
// e-mail address.
func summaryOf(p *millrace.Page, declared string) string {
	for _, s := range []string{declared, p.Description, p.Summary} {
		if s = cutSpace(s); s != "" && !canon.HasEmail(s) {
			return s
		}
	}
	texts := func(yield func(string) bool) {
		for i := range p.Blocks {
			if b := &p.Blocks[i]; b.Type != millrace.HeadingBlock && b.Type != millrace.CodeBlock && !yield(millrace.Text(p.Blocks[i:i+1])) {
				return
			}
		}
	}
	return canon.Summary(texts, maxSentences, maxBeginning)
}

// tagsOf returns the ai_tags of a page: its tags, the type of its JSON-LD, and the words that mark
// it as sensitive (E.6).
func tagsOf(p *millrace.Page, sensitive []string) []string {
	tags := slices.Clone(p.Tags)
	if t := typeOf(p); t != "" {
		tags = append(tags, t)
	}
	return distinct(append(tags, sensitive...))
}

// distinct returns each tag once, in one line. Without tags, it returns nil.
func distinct(tags []string) []string {
	var out []string
	seen := make(map[string]bool, len(tags))
	for _, t := range tags {
		if t = cutSpace(t); t != "" && !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	return out
}

// parts lists the JSON-LD types that describe parts of a page, or its site, and not the page
// itself.
var parts = map[string]bool{
	"BreadcrumbList": true, "ListItem": true, "WebPage": true, "WebSite": true, "SiteNavigationElement": true, "SearchAction": true,
	"Organization": true, "Corporation": true, "LocalBusiness": true, "Person": true, "ImageObject": true, "WPHeader": true, "WPFooter": true,
}

// typeOf returns the type of the page's JSON-LD, or "" if none describes the page itself.
func typeOf(p *millrace.Page) string {
	for _, raw := range p.Schema {
		if !strings.Contains(string(raw), `"@type"`) {
			continue
		}
		var thing struct {
			Type  any `json:"@type"`
			Graph []struct {
				Type any `json:"@type"`
			} `json:"@graph"`
		}
		if json.Unmarshal(raw, &thing) != nil {
			continue
		}
		types := []any{thing.Type}
		for _, g := range thing.Graph {
			types = append(types, g.Type)
		}
		for _, t := range types {
			if list, ok := t.([]any); ok && len(list) > 0 {
				t = list[0]
			}
			s, _ := t.(string)
			s = cutSpace(s[strings.LastIndexAny(s, ":/#")+1:])
			if s != "" && !parts[s] {
				return s
			}
		}
	}
	return ""
}

// cutSpace returns a string in one line, with U+FFFD in place of invalid UTF-8.
func cutSpace(s string) string { return strings.Join(strings.Fields(canon.ValidUTF8(s)), " ") }

// Limits of a summary that is the beginning of a text.
const (
	maxSentences = 2
	maxBeginning = 300 // maximum number of characters
)

func sentences(text string) string { return canon.Sentences(text, maxSentences, maxBeginning) }

// slug derives a name from a heading: lower-case letters and digits, separated by hyphens.
func slug(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(canon.ValidUTF8(s)), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r)
	}), "-")
}

// nameOf returns a name for a page without a kind: the last segment of its path, "home" for the
// root, or "page" if the segment gives no name.
func nameOf(p *millrace.Page) string {
	u, err := url.Parse(p.URL)
	if err != nil {
		return "page"
	}
	path := strings.Trim(u.Path, "/")
	name := slug(strings.TrimSuffix(strings.TrimSuffix(path[strings.LastIndexByte(path, '/')+1:], ".html"), ".htm"))
	switch {
	case path == "":
		return "home"
	case name == "":
		return "page"
	}
	return name
}
