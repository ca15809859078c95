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
	mediaType    = "application/json"                // media type of lists and documents
	contentType  = "application/json; charset=utf-8" // Content-Type of lists and documents before draft-03
	cacheControl = "max-age=0, must-revalidate"
	profileName  = "tct-1"   // profile of lists and documents before draft-03
	hashPrefix   = "sha256-" // prefix of ETags
)

// Text around the items of a list before draft-03.
const (
	listHead = `{"version":1,"profile":"` + profileName + `","items":[`
	listTail = "]}"
)

// draft describes one draft of TCT. The publisher, the reader and the checker of each draft are
// built from it.
type draft struct {
	Number string // number of the draft, such as "00"
	Title  string // only if it differs from the title of the other drafts
	Date   string // date of the draft's text, or ""
	Name   string // name of the protocol, such as "tct-00"

	// URLs.

	Names     docname.Names // names of the M-URLs
	List      string        // path of the list, without ".json"
	ListItems int           // maximum number of items in one list
	// OneList reports whether a site has one list of all pages at a fixed path, which begins with
	// the home page. If not, the root links to the lists.
	OneList bool
	// AbsoluteURL reports whether the root's link to a list is absolute. RootHTML reports whether
	// this link may also be in the HTML of the root.
	AbsoluteURL, RootHTML bool
	PageLink              millrace.Link // form of a page's link to its M-URL
	OnRequest             bool          // see [protocol.Protocol]

	// Responses.

	MediaType, CacheControl, Vary string // header fields of lists and documents
	Exact                         bool   // value of DigestETag in [millrace.Document]

	// Documents.

	Profile string   // name or URI of the draft
	Members []member // members in the order of the document
	// Hash returns the hash of a document. body returns the bytes of the document without their
	// hash member. If Hash is nil, the ETag does not depend on the bytes.
	Hash func(doc *document, body func() []byte) string
	// Holds reports whether a hash member matches a document and its bytes. If nil, documents have
	// no hash member.
	Holds     func(doc *document, body []byte, hash string) bool
	PlainHash bool // whether the hash member lacks "sha256-"
	// Content returns the content of a document, converted from the blocks of its page; the title
	// of the document is already set. Blocks returns the blocks of a document. If Content or Blocks
	// is nil, that conversion treats the content as plain text.
	Content     func(doc *document, blocks []millrace.Block) string
	Blocks      func(doc *document) ([]millrace.Block, millrace.Detail)
	ContentType string              // media type of the content, if documents contain it
	Prepare     func(doc *document) // drops members that the draft does not allow; may be nil

	// Lists.

	Items              []string // members of the items, in the order of the list
	TagMember          string   // member that contains the ETag
	ListVersion        int
	VersionOptional    bool   // whether a list may lack a version
	ListProfile        string // profile of lists, if it differs from Profile
	ListHead, ListTail string // text around the items
	ListBreak          string // text before each item
	IndexProfile       string // profile of a list of lists

	// SiteDocuments returns the site-wide documents other than lists. policy is the owner's policy,
	// or nil. Public contains the paths of all such documents. PolicyPath is the path of the policy
	// descriptor, to which the list links.
	SiteDocuments func(d *draft, site millrace.Site, policy *millrace.Policy) []*millrace.Document
	Public        []string
	PolicyPath    string

	// Reading and checking.

	Also      *draft // earlier draft that the reader also accepts, or nil
	Handshake bool   // whether pages must link to their documents; see [protocol.ReaderOptions]
	HTMLFirst bool   // whether links in a page's HTML come before its Link fields
	RuleNames ruleNames
	// Rules returns the rules of the draft, in the order of its sections.
	Rules func(rule newRule) []check.Rule
	// Own reports whether the document to which a page links is an M-URL of this draft, because
	// JSON alternates may be other documents.
	Own func(p *seenPage) bool
}

// ruleNames are the rules of a draft that appear in errors and notes of a reader. A rule is a
// section and a word, such as "4.2/strong-etag".
type ruleNames struct {
	Items  string // rule for lists
	HTTPS  string // rule that a list of an https site is on https. If empty, there is no rule.
	Parity string // rule that a list and a document have the same validator and origin

	Object, CanonicalURL string // rules for documents
	Alternate            string // rule that a page and its document have the same origin
	CanonicalLink        string
	ContentType          string
	StrongETag           string
	HashEqualsETag, Hash string
	NotModified          string
}

// Source returns the URL of the draft's text.
func (d *draft) Source() string {
	return "https://datatracker.ietf.org/doc/draft-jurkovikj-collab-tunnel/" + d.Number + "/"
}

// Protocol returns the description of the draft.
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

// Carry returns the page that a reader gets from the document of p, or nil if p has no document.
func (d *draft) Carry(site millrace.Site, p *millrace.Page) *millrace.Page {
	doc := d.Document(site, p)
	if doc == nil {
		return nil
	}
	return d.Page(doc)
}

// Tagger returns the tagger that computes the ETags of the pages' documents, without quotes.
func (d *draft) Tagger() millrace.Tagger {
	return millrace.Tagger{Protocol: d.Name, Format: 3, Conflicts: d.Names.Conflicts, Tag: func(site millrace.Site, p *millrace.Page) (string, error) {
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

// FormatError sets the protocol, the URL and the section of a [*millrace.FormatError]. Other errors
// are returned unchanged.
func (d *draft) FormatError(err error, url, section string) error {
	if f, ok := errors.AsType[*millrace.FormatError](err); ok {
		f.Protocol, f.URL, f.Section = d.Name, url, section
	}
	return err
}
