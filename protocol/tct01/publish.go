package tct01

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tct"
	"github.com/millrace/millrace/protocol"
)

// publisher serves, all under the documents' base:
//
//	/llm-pages.json            M-Sitemap (1.7); /llm-pages-1-of-4.json … when sharded
//	/llm.json                  the home page's M-URL, or the site overview
//	PATH/llm.json[?QUERY]      M-URL (1.5)
//	PATH/~N/llm.json[?QUERY]   M-URL of the Nth page that wants one name
//	/~HOST/PATH/llm.json       M-URL of a page whose C-URL is elsewhere
type publisher struct {
	listItems int
}

// NewPublisher makes the room's publisher; nil options are the zero value.
func NewPublisher(o *protocol.PublisherOptions) millrace.Publisher {
	if o == nil {
		o = new(protocol.PublisherOptions)
	}
	return &publisher{listItems: max(1, cmp.Or(o.ListItems, 50_000))}
}

// Find looks up the M-URL that a request names.
func (p *publisher) Find(ctx context.Context, v millrace.View, r *http.Request) (*millrace.Document, error) {
	name := r.URL.EscapedPath()
	if r.URL.RawQuery != "" {
		name += "?" + r.URL.RawQuery
	}
	site := v.Site()
	identities, n := names.Wanting(site.Base, name)
	for _, identity := range identities {
		t, err := v.Tag(ctx, Name, identity)
		if errors.Is(err, millrace.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: find %s: %w", Name, name, err)
		}
		if max(t.N, 1) == n {
			return pageDocument(v, site, t), nil
		}
	}
	return nil, fmt.Errorf("%s: %s: %w", Name, short(name), millrace.ErrNotFound)
}

// All yields the lists, the overview of a site without a home page, and every
// page's document.
func (p *publisher) All(ctx context.Context, v millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(yield func(*millrace.Document, error) bool) {
		site := v.Site()
		over, err := p.overview(ctx, v)
		if err != nil {
			yield(nil, err)
			return
		}
		shards := p.shards(site)
		group := p.group(v, shards, over)
		for i := range shards {
			if !yield(p.list(v, i, shards, over, group), nil) {
				return
			}
		}
		if over != nil && !yield(over.document(site), nil) {
			return
		}
		for t, err := range v.Tags(ctx, Name, "") {
			if err != nil {
				yield(nil, fmt.Errorf("%s: all documents: %w", Name, err))
				return
			}
			if !yield(pageDocument(v, site, t), nil) {
				return
			}
		}
	}
}

// path gives the path of a page's M-URL under the documents' base.
// ErrNotFound: it has none.
func (p *publisher) path(ctx context.Context, v millrace.View, identity string) (string, error) {
	t, err := v.Tag(ctx, Name, identity)
	if err == nil {
		return tagName(v.Site(), t), nil
	}
	if identity == tct.HomeOf(v.Site()) && errors.Is(err, millrace.ErrNotFound) {
		return tct.OverviewName(ctx, v, Name, names)
	}
	return "", err
}

func tagName(site millrace.Site, t millrace.Tag) string {
	return names.Of(canon.Relative(site.Base, t.URL), t.N)
}

// pageDocument gives the M-URL document of a tag without reading the page.
func pageDocument(v millrace.View, site millrace.Site, t millrace.Tag) *millrace.Document {
	return &millrace.Document{
		Path:   tagName(site, t),
		Page:   canon.Relative(site.Base, t.URL),
		ETag:   t.Value,
		Header: pageHeader(t.URL, t.Modified),
		OneTag: true,
		Write: func(ctx context.Context, w io.Writer) error {
			page, err := v.Page(ctx, millrace.Ref{URL: t.URL})
			if err != nil {
				return fmt.Errorf("%s: document of %s: %w", Name, t.URL, err)
			}
			return writeDocument(w, documentOf(site, page), t.URL, t.Value)
		},
	}
}

// writeDocument writes a document whose hash was announced as want.
func writeDocument(w io.Writer, d *document, url, want string) error {
	if d == nil {
		return fmt.Errorf("%s: document of %s: the page has none", Name, url)
	}
	body, hash := d.encode()
	if hash != want {
		return fmt.Errorf("%s: document of %s: it has become %s, its tag is %s", Name, url, hash, want)
	}
	_, err := w.Write(body)
	return err
}

func pageHeader(curl string, modified time.Time) http.Header {
	h := header(modified)
	h["Link"] = []string{millrace.Link{URL: curl, Rel: "canonical"}.String()}
	return h
}

// header gives the fields that lists and M-URLs share.
func header(modified time.Time) http.Header {
	h := http.Header{
		"Content-Type":  {contentType},
		"Cache-Control": {cacheControl},
		"Vary":          {"Accept-Encoding"},
		"Accept-Ranges": {"none"},
	}
	if !modified.IsZero() {
		h["Last-Modified"] = []string{modified.UTC().Format(http.TimeFormat)}
	}
	return h
}
