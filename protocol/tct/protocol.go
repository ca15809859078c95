package tct

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/docname"
	"github.com/millrace/millrace/protocol"
)

// Values that all drafts share.
const (
	mediaType    = "application/json"                // of lists and documents
	contentType  = "application/json; charset=utf-8" // of lists and documents, before draft-03
	cacheControl = "max-age=0, must-revalidate"
	profileName  = "tct-1"   // of lists and documents, before draft-03
	hashPrefix   = "sha256-" // of ETags
)

// The text around the items of a list before draft-03.
const (
	listHead = `{"version":1,"profile":"` + profileName + `","items":[`
	listTail = "]}"
)

// draft describes one draft of TCT. The publisher, reader and checker of each draft are built
// from it.
type draft struct {
	Number string // of the draft, such as "00"
	Title  string // only if it differs from that of the other drafts
	Date   string // date of its text, YYYY-MM-DD; "" if it has none
	Name   string // the protocol's name, such as "tct-00"

	// URLs.

	Names     docname.Names // of the M-URLs
	List      string        // path of the list, without ".json"
	ListItems int           // maximum number of items in one list
	// OneList reports that a site has one list of all pages, which begins with the home page, at a
	// fixed path. If false, the root links to the lists.
	OneList bool
	// AbsoluteURL reports that the root's link to a list is absolute, and RootHTML that this link
	// may also be in the HTML of the root.
	AbsoluteURL, RootHTML bool
	PageLink              millrace.Link // form of a page's link to its M-URL
	OnRequest             bool          // see [protocol.Protocol]

	// Responses.

	MediaType, CacheControl, Vary string // fields of lists and documents
	Exact                         bool   // see Exact of [millrace.Document]

	// Documents.

	Profile string   // the draft's name or URI
	Members []member // in the order of the document
	// Hash returns the hash of a document; body returns its bytes without their hash member.
	// If nil, the ETag does not depend on the bytes.
	Hash func(doc *document, body func() []byte) string
	// Holds reports whether a hash member matches a document and its bytes. If nil, documents
	// have no such member.
	Holds     func(doc *document, body []byte, hash string) bool
	PlainHash bool // the hash member has no "sha256-"
	// Content returns the content of a document from the blocks of the page. The title of the
	// document is already set. Blocks returns the blocks of a document. If nil, the content is
	// plain text.
	Content     func(doc *document, blocks []millrace.Block) string
	Blocks      func(doc *document) ([]millrace.Block, millrace.Detail)
	ContentType string              // media type of the content, if documents have that member
	Prepare     func(doc *document) // drops members that the draft does not allow; may be nil

	// Lists.

	Items              []string // members of the items, in the order of the list
	TagMember          string   // the member that has the ETag
	ListVersion        int
	VersionOptional    bool   // a list needs no version
	ListProfile        string // if it differs from Profile
	ListHead, ListTail string // around the items
	ListBreak          string // before each item
	IndexProfile       string // of a list of lists

	// Once returns the site-wide documents other than lists; policy is the owner's, or nil.
	// Public are the paths of all such documents, PolicyPath is that of the policy descriptor,
	// to which the list links.
	Once       func(d *draft, site millrace.Site, policy *millrace.Policy) []*millrace.Document
	Public     []string
	PolicyPath string

	// Reading and checking.

	Also      *draft // an earlier draft that the reader also accepts
	Handshake bool   // pages link to their documents: see [protocol.ReaderOptions]
	HTMLFirst bool   // links in a page's HTML come before its Link fields
	RuleNames ruleNames
	// Rules returns the rules of the draft, in the order of its sections.
	Rules func(rule newRule) []check.Rule
	// Own reports whether the document that a page links to is an M-URL of this draft. JSON
	// alternates may be other documents.
	Own func(p *seenPage) bool
}

// ruleNames are the rules of a draft that a reader names in errors and notes, by section and
// word, such as "4.2/strong-etag".
type ruleNames struct {
	Items  string // of lists
	HTTPS  string // a list of an https site is on https; "" = no rule
	Parity string // a list and a document have the same validator and origin

	Object, CanonicalURL string // of documents
	Alternate            string // a page and its document have the same origin
	CanonicalLink        string
	ContentType          string
	StrongETag           string
	HashEqualsETag, Hash string
	NotModified          string
}

// Source returns the URL of the draft.
func (d *draft) Source() string {
	return "https://datatracker.ietf.org/doc/draft-jurkovikj-collab-tunnel/" + d.Number + "/"
}

// Protocol describes the draft.
func (d *draft) Protocol() protocol.Protocol {
	p := protocol.Protocol{
		Name:         d.Name,
		Label:        "TCT " + d.Number,
		Title:        cmp.Or(d.Title, "The Collaboration Tunnel Protocol (TCT)"),
		Version:      "draft-jurkovikj-collab-tunnel-" + d.Number,
		Date:         d.Date,
		Source:       d.Source(),
		Home:         d.List + ".json",
		Carry:        d.Carry,
		Tagger:       d.Tagger(),
		NewPublisher: d.NewPublisher,
		OnRequest:    d.OnRequest,
		Repeats:      true,
		Elements:     d.PageLink.NoField,
		Rules:        func() []check.Rule { return d.Rules(d.Rule) },
		Probe:        d.probe,
		NewReader: func(client *http.Client, endpoint string, o *protocol.ReaderOptions) millrace.Source {
			r := d.newReader(client, endpoint, o)
			if d.PolicyPath != "" {
				return policyReader{r}
			}
			return r
		},
	}
	if p.Entry = []string{p.Home}; !d.OneList {
		p.Entry, p.HomeLink = []string{"/"}, millrace.Link{Rel: "index", Type: mediaType}
	}
	return p
}

// section returns the section of a rule.
func section(rule string) string {
	s, _, _ := strings.Cut(rule, "/")
	return s
}

// Carry returns the page that a reader gets from the page's document, or nil for a page without a
// document.
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
	return tagOf(d.Hash(doc, func() []byte {
		body, _, _ := d.unhashed(doc)
		return body
	}))
}

// FormatError fills in the protocol, the URL and the section of a [*millrace.FormatError]. It
// returns other errors unchanged.
func (d *draft) FormatError(err error, url, section string) error {
	if f, ok := errors.AsType[*millrace.FormatError](err); ok {
		f.Protocol, f.URL, f.Section = d.Name, url, section
	}
	return err
}
