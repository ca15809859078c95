package tct00

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/tct"
	"github.com/millrace/millrace/protocol"
)

// The names of what a site has once, under the documents' base.
const (
	listName     = "/llm-sitemap.json"
	policyName   = "/llm-policy.json"
	manifestName = "/llm-manifest.json"
)

// publisher serves, all under the documents' base:
//
//	/llm-sitemap.json      the list (6.1)
//	/llm-policy.json       the policy descriptor (7), if there is a policy
//	/llm-manifest.json     the patterns of M-URLs (3.3)
//	/llm/                  the home page's M-URL, or the site overview
//	PATH/llm/[?QUERY]      M-URL (8)
//	PATH/~N/llm/[?QUERY]   M-URL of the Nth page that wants one name
//	/~HOST/PATH/llm/       M-URL of a page whose C-URL is elsewhere
type publisher struct {
	policy *millrace.Policy // nil = none
	terms  []byte           // the policy descriptor
}

// NewPublisher makes the room's publisher; nil options are the zero value.
//
// Its manifest is an object with profile ("tct-1"), version (1), the absolute
// URLs sitemap and policy, and patterns: pairs of URI templates (RFC 6570),
// cUrl and mUrl, with a note where there is more to say.
func NewPublisher(o *protocol.PublisherOptions) millrace.Publisher {
	p := new(publisher)
	if o != nil && o.Policy != nil {
		p.policy = o.Policy
		p.terms = encodePolicy(o.Policy)
	}
	return p
}

// Find looks up the document that a request names.
func (p *publisher) Find(ctx context.Context, v millrace.View, r *http.Request) (*millrace.Document, error) {
	name := r.URL.EscapedPath()
	site := v.Site()
	if r.URL.RawQuery != "" {
		name += "?" + r.URL.RawQuery
	}
	switch {
	case name == policyName && p.policy != nil:
		return p.policyDocument(), nil
	case name == manifestName:
		return p.manifest(site), nil
	}
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

// All yields the list, the overview of a site without a home page, policy and
// manifest, and every page's document.
func (p *publisher) All(ctx context.Context, v millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(yield func(*millrace.Document, error) bool) {
		site := v.Site()
		over, err := p.overview(ctx, v)
		if err != nil {
			yield(nil, err)
			return
		}
		docs := []*millrace.Document{p.list(v, over)}
		if over != nil {
			docs = append(docs, over.document(site))
		}
		if p.policy != nil {
			docs = append(docs, p.policyDocument())
		}
		for _, d := range append(docs, p.manifest(site)) {
			if !yield(d, nil) {
				return
			}
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
		Alike:  true,
		Write: func(ctx context.Context, w io.Writer) error {
			page, err := v.Page(ctx, millrace.Ref{URL: t.URL})
			if err != nil {
				return fmt.Errorf("%s: document of %s: %w", Name, t.URL, err)
			}
			return writeDocument(w, documentOf(site, page), t.URL, t.Value)
		},
	}
}

// writeDocument writes a document whose ETag was announced as want.
func writeDocument(w io.Writer, d *document, url, want string) error {
	if d == nil {
		return fmt.Errorf("%s: document of %s: the page has none", Name, url)
	}
	body, hash := d.encode()
	if hashPrefix+hash != want {
		return fmt.Errorf("%s: document of %s: it has become %s, its tag is %s", Name, url, hash, want)
	}
	_, err := w.Write(body)
	return err
}

// policyDocument gives the policy descriptor.
func (p *publisher) policyDocument() *millrace.Document {
	return discovery(policyName, p.terms, lastChanged(p.policy))
}

// manifest gives the manifest.
func (p *publisher) manifest(site millrace.Site) *millrace.Document {
	return discovery(manifestName, encoded(newManifest(site, p.policy != nil)), time.Time{})
}

// discovery gives a document that anybody may have.
func discovery(path string, body []byte, modified time.Time) *millrace.Document {
	return &millrace.Document{
		Path: path, ETag: hashPrefix + canon.SHA256Hex(body), Header: header(modified), OneTag: true, Alike: true, Public: true,
		Write: func(_ context.Context, w io.Writer) error {
			_, err := w.Write(body)
			return err
		},
	}
}

func pageHeader(curl string, modified time.Time) http.Header {
	h := header(modified)
	h["Link"] = []string{millrace.Link{URL: curl, Rel: "canonical"}.String()}
	return h
}

// header gives the fields that all documents share.
func header(modified time.Time) http.Header {
	h := http.Header{
		"Content-Type":  {contentType},
		"Cache-Control": {cacheControl},
		"Vary":          {vary},
		"Accept-Ranges": {"none"},
	}
	if !modified.IsZero() {
		h["Last-Modified"] = []string{modified.UTC().Format(http.TimeFormat)}
	}
	return h
}

// rooted gives the path of a document from the root of its host.
func rooted(site millrace.Site, name string) string {
	if u, err := url.Parse(site.Docs); err == nil {
		return strings.TrimSuffix(u.EscapedPath(), "/") + name
	}
	return name
}
