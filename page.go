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

// Page is what a page says, without how it looks. The zero value of a field
// means that the page does not say it; [Page.Known] tells whether the source
// speaks for that field at all.
type Page struct {
	// URL is the page's C-URL. Sources and views give it absolute, or as an
	// identity: the path under the site's base, with the query, starting
	// with "/". A canonical URL on another host stays absolute.
	URL string `json:"url"`

	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"` // description of the page, such as its meta description
	Summary     string            `json:"summary,omitempty"`     // summary in one to three sentences
	Author      string            `json:"author,omitempty"`      // display name of the author, never an e-mail address
	Published   time.Time         `json:"published,omitzero"`    // when it was published, in UTC and whole seconds
	Modified    time.Time         `json:"modified,omitzero"`     // when it was last modified, in UTC and whole seconds
	Language    string            `json:"language,omitempty"`    // BCP 47 language tag
	Section     string            `json:"section,omitempty"`     // part of the site
	Tags        []string          `json:"tags,omitempty"`        // tags or keywords
	Kind        PageKind          `json:"kind,omitempty"`        // kind of the page, such as article
	Schema      []json.RawMessage `json:"schema,omitempty"`      // JSON-LD objects
	Access      Access            `json:"access,omitzero"`       // what keeps the page out of public documents
	Blocks      []Block           `json:"blocks,omitempty"`      // content of the page

	Extra map[string]json.RawMessage `json:"extra,omitempty"` // data of single protocols, by the name of the protocol, such as "arc"

	Known  Fields `json:"known"`            // fields that the source knows
	Detail Detail `json:"detail,omitempty"` // how rich the blocks are
	// Unconfirmed: the content came with a hash of itself that it does not match.
	// It belongs to FieldContent, and no protocol publishes it.
	Unconfirmed bool `json:"unconfirmed,omitempty"`

	// Version is the source's own validator of the page, verbatim. It is
	// about the transfer, not about the page: no part of [Page.Revision].
	Version string `json:"-"`
	// Original is what the source made the page of, so that it can make the page
	// again without the network. Only the source can interpret it. It has at most
	// [MaxOriginal] bytes; nil for none. A [Sink] that is an [OriginalStore] stores
	// it. Views do not return it, and it is no part of [Page.Revision].
	Original []byte `json:"-"`
	// HTMLSize is the size of the HTML that the source made the page of. A sink may
	// store it. Views do not return it, and it is no part of [Page.Revision].
	HTMLSize HTMLSize `json:"-"`
}

// HTMLSize is the size of a page's HTML in bytes: what a client downloads to read
// the page as HTML. If zero, a number is unknown.
type HTMLSize struct {
	Bytes    int64 // without content coding
	Received int64 // of the body as it came over the wire, without header fields
}

// Or returns w, with the numbers that w does not know taken from the size held of
// the same page. Received is taken only if Bytes is the same.
func (w HTMLSize) Or(held HTMLSize) HTMLSize {
	switch {
	case w.Bytes <= 0:
		return held
	case w.Received <= 0 && w.Bytes == held.Bytes:
		w.Received = held.Received
	}
	w.Received = max(w.Received, 0)
	return w
}

// PageKind is what kind of page it is, by its content.
type PageKind string

// The kinds of pages. The first seven have content of their own; an Archive
// (tag, category, author and date lists, search results, paged lists) only
// points at other pages, and no protocol publishes it.
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

// Access is what a page itself says about who may have it.
type Access struct {
	NoIndex bool `json:"noindex,omitempty"` // robots meta or X-Robots-Tag has noindex
	Auth    bool `json:"auth,omitempty"`    // the page needs authentication
}

// Fields is a set of page fields.
type Fields uint32

// The fields of a page that a source may or may not speak for. FieldContent
// stands for Blocks and Detail.
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

// Detail is how rich the content of a page is.
type Detail uint8

// The levels of detail, thin to rich.
const (
	DetailSummary Detail = iota // fields only
	DetailText                  // text blocks made from plain text
	DetailBlocks                // blocks with their structure
)

// Clone returns a copy that shares nothing that Clone's caller may change: the
// slices and the map are new, the values that they hold are shared.
func (p *Page) Clone() *Page {
	c := *p
	c.Tags = slices.Clone(p.Tags)
	c.Schema = slices.Clone(p.Schema)
	c.Blocks = slices.Clone(p.Blocks)
	c.Extra = maps.Clone(p.Extra)
	return &c
}

// Canonical returns the page's canonical bytes: JSON in a fixed member order
// with everything the page says. Version is not part of it, and neither is a
// Modified that the source does not speak for. Equal bytes mean equal pages.
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
		// Only a json.RawMessage that is no JSON gets here: it was never
		// valid, so the page is the same page without it.
		c.Schema = slices.DeleteFunc(slices.Clone(c.Schema), func(m json.RawMessage) bool { return !json.Valid(m) })
		c.Extra = maps.Clone(c.Extra)
		maps.DeleteFunc(c.Extra, func(_ string, m json.RawMessage) bool { return !json.Valid(m) })
		b.Reset()
		if err := e.Encode(&c); err != nil {
			panic("millrace: a page of plain values does not encode: " + err.Error())
		}
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Revision returns the lower-case hex SHA-256 of [Page.Canonical]: it moves
// with any change of what the page says.
func (p *Page) Revision() string {
	sum := sha256.Sum256(p.Canonical())
	return hex.EncodeToString(sum[:])
}

// Text returns the page's content as plain text; see [Text].
func (p *Page) Text() string { return Text(p.Blocks) }

// Markdown returns the page's content as Markdown; see [Markdown].
func (p *Page) Markdown() string { return Markdown(p.Blocks) }

// second cuts a time to what a page keeps of it: UTC and whole seconds. A year
// that has not four digits cannot be written (RFC 3339), and is none.
func second(t time.Time) time.Time {
	if t = t.UTC().Truncate(time.Second); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// Merge returns what is held of a page once in has arrived, and whether that
// differs from held. A field that in does not speak for is kept. Content that
// is thinner than what is held and says the same text keeps the richer form;
// thinner content that says something else is newer and replaces it. held may
// be nil. Neither argument is changed.
func Merge(held, in *Page) (*Page, bool) {
	if held == nil {
		c := in.Clone()
		c.Published, c.Modified = second(c.Published), second(c.Modified)
		return c, true
	}
	out := held.Clone()
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
		thin := in.Detail < held.Detail && held.Known.Has(FieldContent)
		if !thin || in.Detail == DetailText && in.Text() != held.Text() {
			out.Blocks, out.Detail = in.Blocks, in.Detail
		}
	}
	if !in.Known.Has(FieldModified) && !in.Modified.IsZero() && !held.Known.Has(FieldModified) {
		out.Modified = second(in.Modified)
	}
	out.Known |= in.Known
	out.URL = held.URL
	changed := !bytes.Equal(out.Canonical(), held.Canonical())
	return out, changed
}

// cutSpace trims a string and folds its white space, as one-line fields want.
func cutSpace(s string) string { return strings.Join(strings.Fields(s), " ") }
