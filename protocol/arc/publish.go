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
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/policy"
	"github.com/millrace/millrace/protocol"
)

// PublisherOptions are ARC's own options. The zero value is valid.
type PublisherOptions struct {
	// Priorities maps paths under the base to crawl priorities from 0 to 1. A path includes
	// everything below it, and the longest match applies. If nil, no priorities are published.
	Priorities map[string]float64
	// Listed contains URLs or paths of hidden pages that are nevertheless listed, as not to be
	// indexed, with only their URL and flags. Other hidden pages are never listed.
	Listed []string
	// NoSitemapLine omits the list from the Sitemap lines of robots.txt, which then refer only to
	// XML sitemaps.
	NoSitemapLine bool
}

// publisher serves these documents below the endpoint base:
//
//	/arc-sitemap.json                      the list (E.3.1)
//	/.well-known/arc-sitemap.json          the same (E.5)
//	/arc-sitemap.yaml                      the list in YAML (E.3.3)
//	/arc-sitemap-deltas/YYYY-MM-DD.json    pages whose last change was on that day (E.8)
//	/.well-known/arc-policy.json           the policy (E.6), if there is one
//
// If all content of the protocol needs a key, the lists contain every snapshot. Otherwise only
// clients with a key get every snapshot.
type publisher struct {
	terms  []byte // the policy as JSON, or nil
	update time.Time
	rate   string // value of crawl_rate
	o      protocol.PublisherOptions
	own    PublisherOptions
	paths  []priority
	most   int // maximum number of changes in a delta
	counts dayChanges
	now    func() time.Time // clock that decides which days may have a delta
}

// NewPublisher returns the protocol's publisher. Nil options mean the zero value.
//
// The published policy is an object with the members revision, effective and updated; the URLs
// terms, payment and contact; purposes, requirements, crawl_rate, requests_per_day and crawl_note;
// retention_seconds, access and approved_consumers. Members that the owner has not set are omitted.
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

// Find returns the document of a request.
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
		days, err := p.counts.daysOf(ctx, v, p.most)
		if err != nil {
			yield(nil, fmt.Errorf("%s: deltas: %w", Name, err))
			return
		}
		var small []*millrace.Document
		for _, d := range days {
			switch {
			case d.n == 0:
				small = append(small, p.quiet(v.Site(), d.start, d.newest))
			case p.o.Compact && 2*d.n > v.Site().Pages: // the delta would repeat most of the list
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

// policy returns the policy document, which clients can fetch without a key.
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

// header returns the header fields that all documents share.
func header(contentType string) http.Header {
	return http.Header{"Content-Type": {contentType}, "Cache-Control": {cacheControl}}
}

// head returns the members of a list other than its pages.
func (p *publisher) head(site millrace.Site, generated time.Time) *head {
	base := site.Base
	if strings.Count(base, "/") == 3 {
		base = strings.TrimSuffix(base, "/") // an origin without "/", as in the specification
	}
	if generated.Unix() < 0 {
		generated = time.Unix(0, 0) // the site has no changes yet
	}
	return &head{Version: version, Site: base, Generated: kit.FormatTime(generated), Rate: p.rate, Contact: canon.ValidUTF8(p.o.Contact)}
}
