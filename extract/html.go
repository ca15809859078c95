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

// Options are what [HTML] and [Fragment] may be told. The zero value works.
type Options struct {
	// ContentType is the value of the HTTP header, for the character set and
	// to refuse what is no HTML; "" = unknown.
	ContentType string
	// Robots are the values of the HTTP header X-Robots-Tag, which say the
	// same as the robots meta elements of a document.
	Robots []string
	// Base is the absolute URL of the site, against which a page URL that is
	// a path is resolved; "" = page URLs are absolute.
	Base string
	// Rules correct the extraction on the site of the page; nil = none.
	Rules *Rules
	// MaxBytes is the most bytes that a document may have; 0 = 50 MB.
	MaxBytes int
	// MaxNodes is the most tags that a document may have; 0 = 5,000,000.
	MaxNodes int
}

// The limits that the zero value of Options stands for.
const (
	defaultMaxBytes = 50 << 20
	defaultMaxNodes = 5_000_000
)

// fits says whether a document is within the limit of bytes.
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

// Result is what a document gave, and why.
type Result struct {
	Page      *millrace.Page
	Canonical string            // the page's rel=canonical, absolute; "" = none
	Sources   map[string]string // field, by its JSON name, to where it was found, such as "meta og:title"
	Root      string            // selector of the element that the content was taken from
	Dropped   []Dropped         // large subtrees that were left out, and all that rules did, in document order
	Kept      []Kept            // what only rules have kept, in document order
	Idle      []string          // rules that no element of the page goes by, such as "drop .promo"
	// Reason is why there is no content; nil when there is some. A page that
	// only checks for robots, wants scripts, consent or a log-in has none.
	// [millrace.ErrorCode] tells the reasons apart.
	Reason error

	// Failed says why a protocol has nothing of the document, by the names of
	// [RulesOptions.Extra]; nil = nothing went wrong.
	Failed map[string]error

	// What a crawler needs beside the page. It costs next to nothing.

	// Links are the distinct targets of links, image maps, frames, rel=next
	// and rel=prev, in document order: those of menus and footers and hidden
	// ones, too, but neither downloads nor what only scripts make. A link
	// within the document is none. There are at most 10,000.
	Links    []Link
	Feeds    []string // RSS, Atom and JSON feeds that the document announces, absolute; those of comments, too
	NoFollow bool     // robots directives forbid to follow any link; Page.Access.NoIndex is their other half
	Refresh  string   // where a meta refresh leads at once, absolute: a redirect in all but name; "" = nowhere
	// Login: the page is there to log in, or to ask for a password. It has
	// little else to say.
	Login bool
}

// Dropped is a subtree that was left out of the content.
type Dropped struct {
	Selector string // leads to the subtree, such as "div#page > ul.menu"
	Reason   string // such as "tag nav", "role search", "hidden", "links", "outside of the root", "drop .promo"
	Words    int    // how many words it has, about
}

// OutsideRoot is the Reason of what was left out because the content is
// elsewhere.
const OutsideRoot = "outside of the root"

const noScripts = "wants scripts"

// HTML extracts the page that an HTML document holds. pageURL is absolute, or
// a path starting with "/" if the options name a base; the page gets it as its
// URL. The page speaks for every field that HTML can declare, and for Modified
// only if it was found.
//
// Errors: [millrace.ErrInvalid] for what is no HTML and for a URL that cannot
// be a page's, [millrace.ErrTooLarge] beyond a limit, and the context's own. A
// document without content is no error: [Result.Reason] tells.
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
	res.Root, res.Dropped, res.Kept, res.Login = l.selector(), l.dropped, l.kept, alone.login
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
	if len(res.Page.Blocks) > 0 && kind != "" { // that of the page without rules
		res.Page.Kind, res.Sources["kind"] = kind, from
	}
	if len(res.Page.Blocks) == 0 {
		res.Reason = l.emptyReason()
		if res.Refresh != "" && l.why == nil {
			res.Reason = millrace.Coded("leads-on", errors.New("the page only redirects to "+res.Refresh))
		}
	}
	if err := o.Rules.extra(ctx, &Document{Tree: doc, Content: l.content(), Page: res.Page, Base: m.base, l: l, wanted: m.wanted}, res); err != nil {
		return nil, err
	}
	return res, nil
}

// read makes a tree of a document, weighs it and reads its fields.
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
	unstream(text, doc)
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

// anything stands for content that is not there yet.
var anything = make([]millrace.Block, 1)

// pageBase returns the URL that the references of a page are resolved against.
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
