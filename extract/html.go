package extract

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// Options configures [HTML] and [Fragment]. The zero value is valid.
type Options struct {
	// ContentType is the value of the Content-Type header, or "" if unknown. HTML uses its charset
	// parameter, and rejects media types that cannot be HTML.
	ContentType string
	// Robots are the values of the X-Robots-Tag header. They add to the robots meta elements of the
	// document.
	Robots []string
	// Base is the absolute URL of the site. Page URLs that are paths are resolved against it. If
	// empty, page URLs must be absolute.
	Base string
	// Rules correct the extraction of the site's pages. They may be nil.
	Rules *Rules
	// MaxBytes is the maximum size of a document in bytes. If zero, 50 MiB.
	MaxBytes int
	// MaxNodes is the maximum number of tags of a document. If zero, 5,000,000.
	MaxNodes int
}

// Defaults of Options.
const (
	defaultMaxBytes = 50 << 20
	defaultMaxNodes = 5_000_000
)

// fits returns an error if a document is larger than MaxBytes.
func (o *Options) fits(data []byte) error {
	limit := o.MaxBytes
	if limit <= 0 {
		limit = defaultMaxBytes
	}
	if len(data) > limit {
		return fmt.Errorf("%w: %d bytes, limit %d", millrace.ErrTooLarge, len(data), limit)
	}
	return nil
}

func (o *Options) nodes() int {
	if o.MaxNodes <= 0 {
		return defaultMaxNodes
	}
	return o.MaxNodes
}

// Result is the page extracted from a document, and information about the extraction.
type Result struct {
	Page           *millrace.Page
	SiteName       string            // name of the site according to the page, or ""
	Canonical      string            // the page's rel=canonical, absolute, or ""
	Sources        map[string]string // source of each field by its JSON name, such as "meta og:title"
	Root           string            // selector of the root of the content
	Dropped        []Dropped         // large subtrees that were left out, and all subtrees dropped by rules, in document order
	Kept           []Kept            // subtrees kept only because of rules, in document order
	UnmatchedRules []string          // rules that match no element of the page, such as "drop .promo"
	// Reason is the reason why there is no content. If nil, there is content. A page that only
	// checks for robots, or requires scripts, consent or a login, has no content.
	// [millrace.ErrorCode] distinguishes the reasons.
	Reason error

	// Failed contains the error of each protocol whose extra data could not be computed. Its keys
	// are those of [RulesOptions.Extra]. If nil, there is no error.
	Failed map[string]error

	// The following fields are for crawlers. Computing them costs almost nothing.

	// Links are the distinct targets of links, image maps, frames, rel=next and rel=prev, in
	// document order, at most 10,000. They include hidden links and those of menus and footers.
	// They exclude downloads, links that only scripts create, and links within the document.
	Links    []Link
	Feeds    []string // absolute URLs of the RSS, Atom and JSON feeds that the document declares, including comment feeds
	NoFollow bool     // robots directives forbid following links; Page.Access.NoIndex is the corresponding field for indexing
	Refresh  string   // absolute target of a meta refresh within ten seconds, which acts as a redirect, or ""
	// Login reports whether the page is a login form or asks for a password, with little other
	// content.
	Login bool

	titleEnds []string // first and last parts of the title element, for [SiteNames]
}

// Dropped is a subtree that was left out of the content.
type Dropped struct {
	Selector string // path to the subtree, such as "div#page > ul.menu"
	Reason   string // reason, such as "tag nav", "role search", "hidden", "links", "outside of the root", "drop .promo"
	Words    int    // approximate number of words
}

// OutsideRoot is the Reason of subtrees that are outside of the root of the content.
const OutsideRoot = "outside of the root"

// HTML extracts the page of an HTML document. pageURL is absolute, or a path starting with "/" if
// the options have a Base; it becomes the page's URL. In the page, all fields that HTML can declare
// are known, except that Modified is known only if it was found.
//
// If the document is not HTML, or the page URL is invalid, the error is [millrace.ErrInvalid]. If a
// limit is exceeded, it is [millrace.ErrTooLarge]. HTML also returns the error of ctx. A document
// without content is not an error; see [Result.Reason].
func HTML(ctx context.Context, data []byte, pageURL string, o *Options) (*Result, error) {
	res, err := extractHTML(ctx, data, pageURL, o)
	if err != nil {
		return nil, fmt.Errorf("extract %s: %w", pageURL, err)
	}
	return res, nil
}

func extractHTML(ctx context.Context, data []byte, pageURL string, o *Options) (*Result, error) {
	if o == nil {
		o = &Options{}
	}
	m, doc, err := read(ctx, data, pageURL, o)
	if err != nil {
		return nil, err
	}
	res := m.res
	m.links()
	alone := locate(m.c, m)
	kind, from := m.kind(alone, anything)
	l, err := o.Rules.correct(doc, m, alone)
	if err != nil {
		return nil, err
	}
	res.Root, res.Dropped, res.Kept, res.Login = l.selector(), l.dropped, l.retained, alone.login
	if alone.protected {
		res.Page.Access.Auth = true
	}
	w := newWalker(ctx, l.c, l, m.base, m.own)
	if l.why == nil || l.keeps {
		if res.Page.Blocks, err = w.run(l.root); err != nil {
			return nil, err
		}
	}
	if l.why == nil || l.keeps {
		res.Page.Blocks = m.media(res.Page.Blocks)
	}
	m.finish(alone, res.Page.Blocks)
	if (kind == millrace.Product || res.Page.Kind == millrace.Product) && alone.why == nil {
		res.Page.Blocks = append(res.Page.Blocks, m.product(res.Page.Blocks)...)
	}
	if len(res.Page.Blocks) > 0 && kind != "" { // rules do not change the kind of the page
		res.Page.Kind, res.Sources["kind"] = kind, from
	}
	if len(res.Page.Blocks) == 0 {
		res.Reason = l.emptyReason()
		if res.Refresh != "" && l.why == nil {
			res.Reason = millrace.Coded("redirect-only", errors.New("the page only redirects to "+res.Refresh))
		}
	}
	if err := o.Rules.extra(ctx, &Document{Tree: doc, Content: l.content(), Page: res.Page, Base: m.base, l: l, wanted: m.wanted}, res); err != nil {
		return nil, err
	}
	return res, nil
}

// read parses a document, counts its words and reads its fields.
func read(ctx context.Context, data []byte, pageURL string, o *Options) (*meta, *html.Node, error) {
	base, err := pageBase(pageURL, o.Base)
	if err != nil {
		return nil, nil, err
	}
	if err := o.fits(data); err != nil {
		return nil, nil, err
	}
	text, err := decode(data, o.ContentType)
	if err != nil {
		return nil, nil, err
	}
	doc, err := parse(ctx, text, o.nodes())
	if err != nil {
		return nil, nil, err
	}
	placeStreamed(text, doc)
	wanted := o.Rules.prepare(doc)
	c, err := collect(ctx, doc, nil)
	if err != nil {
		return nil, nil, err
	}
	res := &Result{Page: &millrace.Page{URL: pageURL}, Sources: map[string]string{}}
	m := &meta{c: c, url: base, base: base, own: base.String(), page: res.Page, res: res, wanted: wanted}
	if ref := attr(c.base, "href"); ref != "" {
		if abs, err := canon.Resolve(base, ref); err == nil {
			if u, err := url.Parse(abs); err == nil {
				m.base = u
			}
		}
	}
	m.read()
	m.robots(o.Robots)
	return m, doc, nil
}

// anything is a placeholder for content that has not been extracted yet.
var anything = make([]millrace.Block, 1)

// pageBase returns the absolute URL of a page, which is the default base of its references.
func pageBase(pageURL, site string) (*url.URL, error) {
	abs := pageURL
	if strings.HasPrefix(pageURL, "/") && !strings.HasPrefix(pageURL, "//") {
		if site == "" {
			return nil, fmt.Errorf("%w: the page URL is a path and the base is missing; set Base", millrace.ErrInvalid)
		}
		abs = canon.Absolute(site, pageURL)
	}
	c, err := canon.URL(abs)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	}
	u, err := url.Parse(c)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	}
	return u, nil
}
