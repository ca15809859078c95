package tct

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
)

// publisher serves the lists of a draft, the site-wide documents, and the M-URLs, below the
// endpoint base.
type publisher struct {
	*draft
	policy    *millrace.Policy // usage policy, or nil
	listItems int              // maximum number of items in one list
}

// NewPublisher returns the publisher of the draft. Nil options mean the zero value.
func (d *draft) NewPublisher(o *protocol.PublisherOptions) millrace.Publisher {
	if o == nil {
		o = new(protocol.PublisherOptions)
	}
	return &publisher{draft: d, policy: o.Policy, listItems: max(1, min(cmp.Or(o.ListItems, 50_000), d.ListItems))}
}

// Find returns the document that a request names.
func (p *publisher) Find(ctx context.Context, v millrace.View, r *http.Request) (*millrace.Document, error) {
	name := r.URL.EscapedPath()
	if r.URL.RawQuery == "" && slices.Contains(p.Public, name) {
		for _, doc := range p.SiteDocuments(p.draft, v.Site(), p.policy) {
			if doc.Path == name {
				return doc, nil
			}
		}
	}
	return p.draft.Find(ctx, v, r)
}

// All yields the lists, the overview of a site without a home page, the site-wide documents,
// and every page's document.
func (p *publisher) All(ctx context.Context, v millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(yield func(*millrace.Document, error) bool) {
		site := v.Site()
		docs, err := p.lists(ctx, v)
		if err != nil {
			yield(nil, fmt.Errorf("%s: list: %w", p.Name, err))
			return
		}
		if p.SiteDocuments != nil {
			docs = append(docs, p.SiteDocuments(p.draft, site, p.policy)...)
		}
		for _, doc := range docs {
			if !yield(doc, nil) {
				return
			}
		}
		for t, err := range v.Tags(ctx, p.Name, "") {
			if err != nil {
				yield(nil, fmt.Errorf("%s: all documents: %w", p.Name, err))
				return
			}
			if !yield(p.murl(v, site, t), nil) {
				return
			}
		}
	}
}

// Find returns the document at the M-URL that a request names.
func (d *draft) Find(ctx context.Context, v millrace.View, r *http.Request) (*millrace.Document, error) {
	name := r.URL.EscapedPath()
	if r.URL.RawQuery != "" {
		name += "?" + r.URL.RawQuery
	}
	site := v.Site()
	identities, n := d.Names.Wanting(site.Base, name)
	for _, pagePath := range identities {
		t, err := v.Tag(ctx, d.Name, pagePath)
		if errors.Is(err, millrace.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: find %s: %w", d.Name, name, err)
		}
		if max(t.N, 1) == n {
			return d.murl(v, site, t), nil
		}
	}
	return nil, fmt.Errorf("%s: %s: %w", d.Name, kit.Short(name), millrace.ErrNotFound)
}

// path returns the path of a page's M-URL below the endpoint base.
func (d *draft) path(site millrace.Site, t millrace.Tag) string {
	return d.Names.Of(canon.Relative(site.Base, t.URL), t.N)
}

// murl returns the document at the M-URL for a tag. It does not read the page.
func (d *draft) murl(v millrace.View, site millrace.Site, t millrace.Tag) *millrace.Document {
	return &millrace.Document{
		Path:       d.path(site, t),
		Subject:    millrace.Subject{Page: canon.Relative(site.Base, t.URL)},
		ETag:       t.Value,
		Header:     d.pageHeader(t.URL, t.Modified),
		SharedETag: true,
		DigestETag: d.Exact,
		Write: func(ctx context.Context, w io.Writer) error {
			page, err := v.Page(ctx, millrace.Ref{URL: t.URL})
			if err != nil {
				return fmt.Errorf("%s: document of %s: %w", d.Name, t.URL, err)
			}
			return d.write(w, d.Document(v.Site(), page), t.URL, t.Value)
		},
	}
}

// overviewDocument returns the document of an overview. It is a large document, because it changes
// with many pages.
func (d *draft) overviewDocument(o *overview) *millrace.Document {
	var body bytes.Buffer
	err := d.write(&body, &o.document, o.CanonicalURL, o.tag)
	// In draft-00, some bytes can change while the validator stays the same, so the version is a
	// hash of the bytes.
	parts := millrace.SinglePart(canon.SHA256Hex(body.Bytes()), func(_ context.Context, w io.Writer) error {
		if err != nil {
			return err
		}
		_, err := w.Write(body.Bytes())
		return err
	})
	return &millrace.Document{
		Path:       o.path,
		ETag:       o.tag,
		Header:     d.pageHeader(o.CanonicalURL, parseTime(o.Modified)),
		SharedETag: true,
		DigestETag: d.Exact,
		Large:      true,
		Subject:    millrace.Subject{PageCount: int64(o.names)},
		Parts:      parts,
		Write:      parts.Write,
	}
}

// write writes a document. It returns an error if doc is nil, or if the document's ETag is not
// want.
func (d *draft) write(w io.Writer, doc *document, url, want string) error {
	if doc == nil {
		return fmt.Errorf("%s: document of %s: the page has no document", d.Name, url)
	}
	body, hash := d.Encode(doc)
	if tagOf(hash) != want {
		return fmt.Errorf("%s: document of %s: hash %s does not match tag %s", d.Name, url, hash, want)
	}
	_, err := w.Write(body)
	return err
}

func (d *draft) pageHeader(curl string, modified time.Time) http.Header {
	h := d.Header(modified)
	h["Link"] = []string{millrace.Link{URL: curl, Rel: "canonical"}.String()}
	if d.ListProfile != "" {
		h["Link"] = append(h["Link"], millrace.Link{URL: d.Profile, Rel: "profile"}.String())
	}
	return h
}

// Header returns the header fields of lists and M-URLs.
func (d *draft) Header(modified time.Time) http.Header {
	h := http.Header{
		"Content-Type":  {d.MediaType},
		"Cache-Control": {d.CacheControl},
		"Vary":          {d.Vary},
		"Accept-Ranges": {"none"},
	}
	if !modified.IsZero() {
		h["Last-Modified"] = []string{modified.UTC().Format(http.TimeFormat)}
	}
	return h
}
