package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
)

// PublisherOptions are the options specific to this protocol. The zero value is ready to use.
type PublisherOptions struct {
	// Hubs are the absolute URLs of the hubs that are notified of changed feeds (WebSub). The
	// response for a feed links to the hubs, and with rel="self" to the feed, in Link fields, and
	// also in the body if the format allows it. If nil, feeds link to no hubs.
	Hubs []string
	// MarkdownPublic allows shared caches to store the Markdown at a page's own URL. Set it only if
	// all caches in front of the site obey Vary.
	MarkdownPublic bool
	// LLMsFull publishes a file with the Markdown of all pages.
	LLMsFull bool
}

// publisher serves these documents below the endpoint base:
//
//	PATH.md[?QUERY]          the Markdown of a page; PATH/index.md if its path ends in "/"
//	DIR/~N/NAME.md[?QUERY]   the Markdown of the Nth page with the same name
//	PATH[?QUERY]             the Markdown of a page, for clients that prefer it to HTML
//	/llms.txt                the pages of the site, and links to the other files
//	DIR/llms.txt             the pages below a path, if there are many
//	DIR/llms-1.txt …         parts of such a file
//	/llms-full.txt           the Markdown of all pages, if LLMsFull is set
//
// and the documents of [siteDocuments].
type publisher struct {
	siteDocuments
	public bool // whether shared caches may store negotiated Markdown
	full   bool
	static bool // no negotiation, and no header fields that differ for each file
	plans  plans
}

// NewPublisher returns the protocol's publisher. Nil options mean the zero value.
func NewPublisher(o *protocol.PublisherOptions) millrace.Publisher {
	if o == nil {
		o = new(protocol.PublisherOptions)
	}
	own := protocol.Own[PublisherOptions](o)
	return &publisher{siteDocuments: newOnce(o), public: own.MarkdownPublic, full: own.LLMsFull, static: o.Static}
}

// Find returns the Markdown document that a request names, or that it negotiates.
func (p *publisher) Find(ctx context.Context, v millrace.View, r *http.Request) (*millrace.Document, error) {
	site := v.Site()
	if !p.static && mayNegotiate(site, r) {
		if t, err := p.tag(ctx, v, identityOf(site, r)); err != nil {
			return nil, fmt.Errorf("%s: find %s: %w", Name, kit.Short(r.URL.Path), err)
		} else if t != nil {
			return p.negotiated(site, v, *t), nil
		}
	}
	name := r.URL.EscapedPath()
	if r.URL.RawQuery != "" {
		name += "?" + r.URL.RawQuery
	}
	identities, n := wanting(site.Base, name)
	for _, pagePath := range identities {
		if t, err := p.tag(ctx, v, pagePath); err != nil {
			return nil, fmt.Errorf("%s: find %s: %w", Name, kit.Short(name), err)
		} else if t != nil && max(t.N, 1) == n {
			return p.document(site, v, *t), nil
		}
	}
	return p.find(ctx, v, name)
}

// tag returns the tag of a page's Markdown, or nil if the page has no Markdown.
func (p *publisher) tag(ctx context.Context, v millrace.View, pagePath string) (*millrace.Tag, error) {
	t, err := v.Tag(ctx, Name, pagePath)
	switch {
	case errors.Is(err, millrace.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &t, nil
}

// tags yields the tags of the pages that have Markdown and follow a given page.
func tags(ctx context.Context, v millrace.View, after string) iter.Seq2[millrace.Tag, error] {
	return func(yield func(millrace.Tag, error) bool) {
		for t, err := range v.Tags(ctx, Name, after) {
			if err != nil {
				yield(t, fmt.Errorf("%s: cannot read pages: %w", Name, err))
				return
			}
			if !yield(t, nil) {
				return
			}
		}
	}
}

// All yields the documents that grow with the site, and the Markdown of every page.
func (p *publisher) All(ctx context.Context, v millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(yield func(*millrace.Document, error) bool) {
		site := v.Site()
		pl, err := p.plans.of(ctx, v)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, f := range pl.files() {
			d, err := p.list(ctx, v, f)
			if err != nil {
				err = fmt.Errorf("%s: %s: %w", Name, f.path, err)
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
		if p.full && !yield(p.fullDocument(v), nil) {
			return
		}
		for _, d := range p.large(v) {
			if !yield(d, nil) {
				return
			}
		}
		for d, err := range p.all(ctx, v) {
			if !yield(d, err) || err != nil {
				return
			}
		}
		for t, err := range tags(ctx, v, "") {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(p.document(site, v, t), nil) {
				return
			}
		}
	}
}

func tagName(site millrace.Site, t millrace.Tag) string {
	return documentName(canon.Relative(site.Base, t.URL), t.N)
}

// document returns the Markdown for a tag, at the Markdown's own URL. It does not read the page.
func (p *publisher) document(site millrace.Site, v millrace.View, t millrace.Tag) *millrace.Document {
	count, _ := tagParts(t.Value)
	h := http.Header{
		"Content-Type":  {markdownType},
		"Cache-Control": {revalidate},
		"Link":          {millrace.Link{URL: t.URL, Rel: "canonical"}.String()},
		"X-Robots-Tag":  {"noindex"}, // search engines should list the page itself
	}
	if !p.static {
		h["X-Markdown-Tokens"] = []string{count}
	}
	if !t.Modified.IsZero() {
		h["Last-Modified"] = []string{t.Modified.UTC().Format(http.TimeFormat)}
	}
	return &millrace.Document{
		Path: tagName(site, t), Subject: millrace.Subject{Page: canon.Relative(site.Base, t.URL)}, ETag: t.Value, Header: h,
		Write: func(ctx context.Context, w io.Writer) error {
			page, err := v.Page(ctx, millrace.Ref{URL: t.URL})
			if err != nil {
				return fmt.Errorf("%s: Markdown of %s: %w", Name, t.URL, err)
			}
			body, err := markdownOf(v.Site(), page, t.Value)
			if err != nil {
				return err
			}
			_, err = w.Write(body)
			return err
		},
	}
}

// negotiated returns the Markdown for a tag as a response at the page's own URL.
func (p *publisher) negotiated(site millrace.Site, v millrace.View, t millrace.Tag) *millrace.Document {
	d := p.document(site, v, t)
	d.Variant = "text/markdown"
	d.Header["Content-Location"] = []string{strings.TrimSuffix(site.EndpointBase, "/") + d.Path}
	d.Header["Vary"] = []string{"Accept"}
	if !p.public {
		d.Header["Cache-Control"] = []string{"private, " + revalidate}
	}
	delete(d.Header, "X-Robots-Tag") // the field would apply to the page
	return d
}
