package millrace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// Page is the content and metadata of a page, without its layout. [Page.Known] is the set of fields
// that the source provides. A field that is known and zero is absent on the page.
type Page struct {
	// URL is the canonical URL of the page (C-URL). Sources and views return it as an absolute URL
	// or as an identity: the path under the site's base, with the query, starting with "/". A
	// canonical URL on another host is always absolute.
	URL string `json:"url"`

	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"` // description of the page, such as its meta description
	Summary     string            `json:"summary,omitempty"`     // summary in one to three sentences
	Author      string            `json:"author,omitempty"`      // display name of the author, never an e-mail address
	Published   time.Time         `json:"published,omitzero"`    // publication time in UTC, in whole seconds
	Modified    time.Time         `json:"modified,omitzero"`     // time of the last modification in UTC, in whole seconds
	Language    string            `json:"language,omitempty"`    // BCP 47 language tag
	Section     string            `json:"section,omitempty"`     // part of the site, such as a category
	Tags        []string          `json:"tags,omitempty"`        // tags or keywords
	Kind        PageKind          `json:"kind,omitempty"`        // kind of the page, such as article
	Schema      []json.RawMessage `json:"schema,omitempty"`      // JSON-LD objects
	Access      Access            `json:"access,omitzero"`       // access restrictions of the page
	Blocks      []Block           `json:"blocks,omitempty"`      // content of the page

	Extra map[string]json.RawMessage `json:"extra,omitempty"` // data of individual protocols, by protocol name, such as "arc"

	Known  Fields `json:"known"`            // fields that the source provides
	Detail Detail `json:"detail,omitempty"` // level of detail of Blocks
	// Unconfirmed reports whether the content fails to match the hash that the source sent with it.
	// It is part of FieldContent. No protocol publishes it.
	Unconfirmed bool `json:"unconfirmed,omitempty"`

	// Version is the source's validator of the page, verbatim. It belongs to the transfer, not to
	// the page, and is not part of [Page.Revision].
	Version string `json:"-"`
	// Original is the data from which the source built the page. From it, the source can rebuild
	// the page without the network; only the source can interpret it. Original has at most
	// [MaxOriginal] bytes; nil means none. A [Sink] that is an [OriginalStore] stores it. Views do
	// not return it, and it is not part of [Page.Revision].
	Original []byte `json:"-"`
	// HTMLSize is the size of the page's HTML. A sink may store it. Views do not return it,
	// and it is not part of [Page.Revision].
	HTMLSize HTMLSize `json:"-"`
}

// HTMLSize is the size of a page's HTML in bytes. A zero field is unknown.
type HTMLSize struct {
	Bytes    int64 // size without content coding
	Received int64 // size of the body as transferred, without header fields
}

// Or fills unknown fields of w from old, an earlier size of the same page. If w.Bytes is unknown,
// Or returns old. It takes Received alone from old only if Bytes is equal in both.
func (w HTMLSize) Or(old HTMLSize) HTMLSize {
	switch {
	case w.Bytes <= 0:
		return old
	case w.Received <= 0 && w.Bytes == old.Bytes:
		w.Received = old.Received
	}
	w.Received = max(w.Received, 0)
	return w
}

// PageKind is the kind of a page's content.
type PageKind string

// The kinds of pages. An archive only links to other pages: a list by tag, category, author or date,
// a paged list, or search results. Most protocols do not publish archives. The other kinds have
// content of their own.
const (
	Article       PageKind = "article"
	Documentation PageKind = "documentation"
	Service       PageKind = "service"
	Forum         PageKind = "forum"
	Product       PageKind = "product"
	Listing       PageKind = "listing"
	Collection    PageKind = "collection"
	Archive       PageKind = "archive"
)

// Access is the set of access restrictions that a page declares.
type Access struct {
	NoIndex bool `json:"noindex,omitempty"` // a robots meta element or X-Robots-Tag has noindex
	Auth    bool `json:"auth,omitempty"`    // the page requires authentication
}

// Fields is a set of page fields.
type Fields uint32

// The fields of a page. FieldContent covers Blocks, Detail and Unconfirmed.
const (
	FieldTitle Fields = 1 << iota
	FieldDescription
	FieldSummary
	FieldAuthor
	FieldPublished
	FieldModified
	FieldLanguage
	FieldSection
	FieldTags
	FieldKind
	FieldSchema
	FieldAccess
	FieldContent
	FieldExtra

	AllFields = FieldExtra<<1 - 1
)

// Has reports whether every field of g is in f.
func (f Fields) Has(g Fields) bool { return f&g == g }

// Detail is the level of detail of a page's content.
type Detail uint8

// The levels of detail, lowest first.
const (
	DetailSummary Detail = iota // metadata only, without blocks
	DetailText                  // text blocks from plain text
	DetailBlocks                // structured blocks
)

// Clone returns a shallow copy of p with new slices and a new map. Their elements are shared, and
// callers must not change them.
func (p *Page) Clone() *Page {
	c := *p
	c.Tags = slices.Clone(p.Tags)
	c.Schema = slices.Clone(p.Schema)
	c.Blocks = slices.Clone(p.Blocks)
	c.Extra = maps.Clone(p.Extra)
	return &c
}

// Canonical returns the canonical bytes of the page: JSON in a fixed member order. It omits
// Version, Original and HTMLSize, and also Modified if the source does not provide it. Two pages
// are equal if and only if their canonical bytes are equal.
func (p *Page) Canonical() []byte {
	c := *p
	if !c.Known.Has(FieldModified) {
		c.Modified = time.Time{}
	}
	c.Published, c.Modified = second(c.Published), second(c.Modified)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(&c); err != nil {
		// Drop invalid JSON: it was never part of the page.
		c.Schema = slices.DeleteFunc(slices.Clone(c.Schema), func(m json.RawMessage) bool { return !json.Valid(m) })
		c.Extra = maps.Clone(c.Extra)
		maps.DeleteFunc(c.Extra, func(_ string, m json.RawMessage) bool { return !json.Valid(m) })
		b.Reset()
		if err := e.Encode(&c); err != nil {
			panic("millrace: cannot encode page: " + err.Error())
		}
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Revision returns the lower-case hex SHA-256 of [Page.Canonical]. It changes whenever the
// canonical bytes change.
func (p *Page) Revision() string {
	sum := sha256.Sum256(p.Canonical())
	return hex.EncodeToString(sum[:])
}

// Text returns the page's content as plain text; see [Text].
func (p *Page) Text() string { return Text(p.Blocks) }

// Markdown returns the page's content as Markdown; see [Markdown].
func (p *Page) Markdown() string { return Markdown(p.Blocks) }

// second truncates a time to whole seconds in UTC. For a year outside 1 to 9999, it returns the
// zero time, because RFC 3339 has four digits for the year.
func second(t time.Time) time.Time {
	if t = t.UTC().Truncate(time.Second); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// Merge returns the stored page updated by in, and reports whether the result differs from stored.
// It keeps the fields that in does not provide. If neither page provides Modified, Merge takes a
// non-zero Modified from in. If the content of in has a lower level of detail, Merge keeps the
// stored content, unless in has [DetailText] and its text differs. stored may be nil. Merge changes
// neither argument.
func Merge(stored, in *Page) (*Page, bool) {
	if stored == nil {
		c := in.Clone()
		c.Published, c.Modified = second(c.Published), second(c.Modified)
		return c, true
	}
	out := stored.Clone()
	for _, f := range []struct {
		field Fields
		copy  func()
	}{
		{FieldTitle, func() { out.Title = in.Title }},
		{FieldDescription, func() { out.Description = in.Description }},
		{FieldSummary, func() { out.Summary = in.Summary }},
		{FieldAuthor, func() { out.Author = in.Author }},
		{FieldPublished, func() { out.Published = second(in.Published) }},
		{FieldModified, func() { out.Modified = second(in.Modified) }},
		{FieldLanguage, func() { out.Language = in.Language }},
		{FieldSection, func() { out.Section = in.Section }},
		{FieldTags, func() { out.Tags = in.Tags }},
		{FieldKind, func() { out.Kind = in.Kind }},
		{FieldSchema, func() { out.Schema = in.Schema }},
		{FieldAccess, func() { out.Access = in.Access }},
		{FieldExtra, func() { out.Extra = in.Extra }},
	} {
		if in.Known.Has(f.field) {
			f.copy()
		}
	}
	if in.Known.Has(FieldContent) {
		out.Unconfirmed = in.Unconfirmed
		partial := in.Detail < stored.Detail && stored.Known.Has(FieldContent)
		if !partial || in.Detail == DetailText && in.Text() != stored.Text() {
			out.Blocks, out.Detail = in.Blocks, in.Detail
		}
	}
	if !in.Known.Has(FieldModified) && !in.Modified.IsZero() && !stored.Known.Has(FieldModified) {
		out.Modified = second(in.Modified)
	}
	out.Known |= in.Known
	out.URL = stored.URL
	changed := !bytes.Equal(out.Canonical(), stored.Canonical())
	return out, changed
}

// cutSpace trims a string and collapses its white space into single spaces.
func cutSpace(s string) string { return strings.Join(strings.Fields(s), " ") }
