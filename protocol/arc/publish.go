package arc

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/kit"
)

// PublisherOptions are ARC's own options. The zero value works.
type PublisherOptions struct {
	// Priorities are the pages that matter most to machines, from 0 to 1, by path
	// under the base with everything below it; the longest match wins. nil = none
	// are published.
	Priorities map[string]float64
	// Listed are URLs of the site, or paths of it, whose pages are listed by URL
	// only, as not to be indexed. Other hidden pages are never named.
	Listed []string
	// NoSitemapLine: robots.txt names only XML sitemaps in Sitemap lines.
	NoSitemapLine bool
}

// publisher serves, all under the documents' base:
//
//	/arc-sitemap.json                      the list (E.3.1)
//	/.well-known/arc-sitemap.json          the same (E.5)
//	/arc-sitemap.yaml                      its twin (E.3.3)
//	/arc-sitemap-deltas/YYYY-MM-DD.json    what changed last on that day (E.8)
//	/.well-known/arc-policy.json           the policy (E.6), if there is one
//
// Where the protocol's content needs a key, the lists have every snapshot; where
// it does not, they have every snapshot for those who bring one.
type publisher struct {
	terms  []byte // the policy; nil = none
	update time.Time
	rate   string // crawl_rate
	o      protocol.PublisherOptions
	own    PublisherOptions
	paths  []priority
	most   int // changes of a day that has a delta
	counts dayChanges
	now    func() time.Time // which days there have been: no document says it
}

// NewPublisher makes the protocol's publisher; nil options are the zero value.
//
// Its policy is an object with revision, effective and updated; the URLs
// terms, payment and contact; purposes, requirements, crawl_rate,
// requests_per_day and crawl_note; retention_seconds, access and
// approved_consumers. What the owner has not said is left out.
func NewPublisher(o *protocol.PublisherOptions) millrace.Publisher {
	p := &publisher{most: maxDelta, now: time.Now}
	if o != nil {
		p.o = *o
	}
	p.own = *protocol.Own[PublisherOptions](o)
	p.paths = priorities(p.own.Priorities)
	if p.o.Policy != nil {
		p.terms = policy.WriteARC(p.o.Policy)
		p.update = p.o.Policy.Updated
		p.rate = policy.WriteARCRate(p.o.Policy.Rate)
	}
	return p
}

// Find looks up the document that a request names.
func (p *publisher) Find(ctx context.Context, v millrace.View, r *http.Request) (*millrace.Document, error) {
	name := r.URL.EscapedPath()
	if r.URL.RawQuery == "" {
		if name == pathPolicy && p.terms != nil {
			return p.policy(), nil
		}
		d, err := p.quietDay(ctx, v, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", Name, kit.Short(name), err)
		}
		if d != nil {
			return d, nil
		}
	}
	return nil, fmt.Errorf("%s: %s: %w", Name, kit.Short(name), millrace.ErrNotFound)
}

// All yields the lists, the deltas, and the policy.
func (p *publisher) All(ctx context.Context, v millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(yield func(*millrace.Document, error) bool) {
		docs := p.lists(v)
		days, err := p.counts.of(ctx, v, p.most)
		if err != nil {
			yield(nil, fmt.Errorf("%s: deltas: %w", Name, err))
			return
		}
		var small []*millrace.Document
		for _, d := range days {
			switch {
			case d.n == 0:
				small = append(small, p.quiet(v.Site(), d.start, d.newest))
			case d.n <= p.most:
				docs = append(docs, p.delta(v, d))
			}
		}
		if p.terms != nil {
			small = append(small, p.policy())
		}
		docs = append(docs, small...)
		for _, d := range docs {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// policy gives the policy, which anybody may have.
func (p *publisher) policy() *millrace.Document {
	h := header(contentType)
	if !p.update.IsZero() {
		h["Last-Modified"] = []string{p.update.UTC().Format(http.TimeFormat)}
	}
	return &millrace.Document{
		Path: pathPolicy, ETag: "sha256-" + canon.SHA256Hex(p.terms), Header: h, Subject: millrace.Subject{Public: true},
		Write: func(_ context.Context, w io.Writer) error {
			_, err := w.Write(p.terms)
			return err
		},
	}
}

// header gives the fields that all documents share.
func header(contentType string) http.Header {
	return http.Header{"Content-Type": {contentType}, "Cache-Control": {cacheControl}}
}

// head gives what a list says beside its pages.
func (p *publisher) head(site millrace.Site, generated time.Time) *head {
	base := site.Base
	if strings.Count(base, "/") == 3 {
		base = strings.TrimSuffix(base, "/") // an origin, as the specification writes it
	}
	if generated.Unix() < 0 {
		generated = time.Unix(0, 0) // of a site that has not begun
	}
	return &head{Version: version, Site: base, Generated: kit.FormatTime(generated), Rate: p.rate, Contact: canon.ValidUTF8(p.o.Contact)}
}
