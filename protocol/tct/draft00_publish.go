package tct

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/policy"

	"github.com/millrace/millrace/protocol"
)

// The names of documents under the documents' base: of M-URLs, each in the folder of
// its page, and of what a site has once.
const (
	docName00    = "/llm/" // 3.3
	listName00   = "/llm-sitemap.json"
	policyName   = "/llm-policy.json"
	manifestName = "/llm-manifest.json"
)

// publisher00 serves, all under the documents' base:
//
//	/llm-sitemap.json      the list (6.1)
//	/llm-policy.json       the policy descriptor (7), if there is a policy
//	/llm-manifest.json     the patterns of M-URLs (3.3)
//	/llm/                  the home page's M-URL, or the site overview
//	PATH/llm/[?QUERY]      M-URL (8)
//	PATH/~N/llm/[?QUERY]   M-URL of the Nth page that wants one name
//	/~HOST/PATH/llm/       M-URL of a page whose C-URL is elsewhere
type publisher00 struct {
	policy *millrace.Policy // nil = none
	terms  []byte           // the policy descriptor
}

// newPublisher00 returns the publisher of the draft; nil options are the zero value.
//
// Its manifest is an object with profile ("tct-1"), version (1), the absolute
// URLs sitemap and policy, and patterns: pairs of URI templates (RFC 6570),
// cUrl and mUrl, with a note where there is more to say.
func newPublisher00(o *protocol.PublisherOptions) millrace.Publisher {
	p := new(publisher00)
	if o != nil && o.Policy != nil {
		p.policy = o.Policy
		p.terms = policy.WriteTCT(o.Policy)
	}
	return p
}

// Find looks up the document that a request names.
func (p *publisher00) Find(ctx context.Context, v millrace.View, r *http.Request) (*millrace.Document, error) {
	switch name := r.URL.EscapedPath(); {
	case r.URL.RawQuery != "":
	case name == policyName && p.policy != nil:
		return p.policyDocument(), nil
	case name == manifestName:
		return p.manifest(v.Site()), nil
	}
	return draft00.Find(ctx, v, r)
}

// All yields the list, the overview of a site without a home page, policy and
// manifest, and every page's document.
func (p *publisher00) All(ctx context.Context, v millrace.View) iter.Seq2[*millrace.Document, error] {
	var once []*millrace.Document
	if p.policy != nil {
		once = append(once, p.policyDocument())
	}
	return draft00.All(ctx, v, func(over *overview) ([]*millrace.Document, error) {
		list, err := p.list(ctx, v, over)
		return []*millrace.Document{list}, err
	}, append(once, p.manifest(v.Site()))...)
}

// policyDocument gives the policy descriptor.
func (p *publisher00) policyDocument() *millrace.Document {
	return discovery(policyName, p.terms, lastChanged(p.policy))
}

// manifest gives the manifest.
func (p *publisher00) manifest(site millrace.Site) *millrace.Document {
	return discovery(manifestName, encoded(newManifest(site, p.policy != nil)), time.Time{})
}

// discovery gives a document that anybody may have.
func discovery(path string, body []byte, modified time.Time) *millrace.Document {
	return &millrace.Document{
		Path: path, ETag: hashPrefix + canon.SHA256Hex(body), Header: draft00.Header(modified), OneTag: true, Public: true,
		Write: func(_ context.Context, w io.Writer) error {
			_, err := w.Write(body)
			return err
		},
	}
}

// rooted gives the path of a document from the root of its host.
func rooted(site millrace.Site, name string) string {
	if u, err := url.Parse(site.EndpointBase); err == nil {
		return strings.TrimSuffix(u.EscapedPath(), "/") + name
	}
	return name
}
