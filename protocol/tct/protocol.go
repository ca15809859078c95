package tct

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/docname"
	"github.com/millrace/millrace/protocol"
)

// What all drafts have in common.
const (
	mediaType    = "application/json"                // of lists and documents
	contentType  = "application/json; charset=utf-8" // of lists and documents
	cacheControl = "max-age=0, must-revalidate"      // of lists and documents
	profileName  = "tct-1"                           // of lists and documents
	hashPrefix   = "sha256-"                         // of ETags
)

// draft is what one draft of TCT has of its own. A publisher, a reader and a
// checker of any draft are made of it.
type draft struct {
	Name  string        // the protocol's name, such as "tct-00"
	Names docname.Names // of the M-URLs
	Vary  string        // the Vary field of lists and documents

	// Encode returns a document as it is served, and its hash member.
	Encode func(d *document) (body []byte, hash string)
	// AppendItem appends an item of a list as JSON.
	AppendItem func(dst []byte, it *listItem) []byte
	// Holds reports whether a hash member is that of a document, and of its bytes.
	Holds    func(d *document, body []byte, hash string) bool
	BareHash bool // the hash member has no "sha256-"
	// Content returns the content of a document from its title and its text, and
	// Text the text from title and content. If nil, the content is the text.
	Content, Text func(title, content string) string

	// Lists returns where the lists of a site may be, and what it costs to know.
	Lists   func(ctx context.Context, r *tctReader) ([]listState, protocol.Cost, error)
	OneList bool // a site has one list: the first of them that is there
	// Begin is called before the lists of a site are looked for, and Listed with the
	// response of each list that has changed; nil = there is nothing to do.
	Begin  func(ctx context.Context, r *tctReader) error
	Listed func(ctx context.Context, r *tctReader, resp *http.Response) error

	Handshake       bool // pages lead to their documents: see [protocol.ReaderOptions]
	VersionOptional bool // a list needs no version
	HTMLFirst       bool // links of a page's HTML are looked at before its Link fields
	Rules           ruleNames
}

// ruleNames are the rules of a draft that a reader names in errors and notes, by
// section and word, such as "4.2/strong-etag".
type ruleNames struct {
	Items  string // of lists
	Parity string // a list and a document have one validator, on one origin

	Object, CanonicalURL string // of documents
	Alternate            string // a page and its document are on one origin
	CanonicalLink        string
	ContentType          string
	StrongETag           string
	HashEqualsETag, Hash string
	NotModified          string
}

// section returns the section of a rule.
func section(rule string) string {
	s, _, _ := strings.Cut(rule, "/")
	return s
}

// Document returns the document of a page of a View of site, nil for a page that
// has no document.
func (d *draft) Document(site millrace.Site, p *millrace.Page) *document {
	doc := documentOf(site, p)
	if doc != nil && d.Content != nil {
		doc.Content = d.Content(doc.Title, doc.Content)
	}
	return doc
}

// Page returns what a document says.
func (d *draft) Page(doc *document) *millrace.Page {
	if d.Text != nil {
		plain := *doc
		plain.Content = d.Text(doc.Title, doc.Content)
		doc = &plain
	}
	return doc.page()
}

// Carry returns what a reader makes of the page's document, nil for a page that
// has no document.
func (d *draft) Carry(site millrace.Site, p *millrace.Page) *millrace.Page {
	doc := d.Document(site, p)
	if doc == nil {
		return nil
	}
	return d.Page(doc)
}

// Tagger computes the ETags of the pages' documents, without their quotes.
func (d *draft) Tagger() millrace.Tagger {
	return millrace.Tagger{Protocol: d.Name, Format: 2, Rivals: d.Names.Rivals, Tag: func(site millrace.Site, p *millrace.Page) (string, error) {
		doc := d.Document(site, p)
		if doc == nil {
			return "", nil
		}
		return d.tag(doc), nil
	}}
}

// tag returns the ETag of a document, without quotes.
func (d *draft) tag(doc *document) string {
	_, hash := d.Encode(doc)
	return tagOf(hash)
}

// Decode reads a document, and returns its hash member as it is. Errors are
// [*millrace.FormatError] without the URL, or ErrTooLarge.
func (d *draft) Decode(body []byte) (doc *document, hash string, err error) {
	doc, hash, err = decode(body)
	rule := d.Rules.Object
	if errors.Is(err, errRequired) {
		rule = d.Rules.CanonicalURL
	}
	return doc, hash, d.FormatError(err, "", section(rule))
}

// FormatError fills in the protocol, the URL and the section of a
// [*millrace.FormatError]. Other errors are returned as they are.
func (d *draft) FormatError(err error, url, section string) error {
	if f, ok := errors.AsType[*millrace.FormatError](err); ok {
		f.Protocol, f.URL, f.Section = d.Name, url, section
	}
	return err
}

// shortened cuts the string of a remote site to what fits in a message.
func shortened(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}
