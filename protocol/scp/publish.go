package scp

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/sitemap"
	"github.com/millrace/millrace/protocol"
)

// PublisherOptions are the options specific to SCP. The zero value is ready to use.
type PublisherOptions struct {
	// Sections lists path prefixes. The pages below each prefix have their own collections. If nil,
	// every first path segment is a prefix, except in a compact build, which has no such
	// collections.
	Sections []string
	// FilesURL is the base URL of collections, for example on a CDN. It is absolute and has no
	// trailing "/". If empty, it is the endpoint base.
	FilesURL string
	// NoChecksum omits the checksum from the metadata of collections.
	NoChecksum bool
}

// publisher serves these documents below the endpoint base:
//
//	/sitemap.xml              the SCP elements and the first pages of the site
//	/sitemap-2-of-4.xml …     the other pages, if they exceed one sitemap
//	/sitemap-index.xml        the index of all sitemaps
//	/scp/SECTION-SUM.scp.zst  a collection in zstd; SUM is the start of the file's SHA-256
//	/scp/SECTION-SUM.scp.gz   the collection in gzip
//	/scp/SECTION-SUM.scp      the collection, uncompressed
type publisher struct {
	listItems int
	own       PublisherOptions
	compact   bool   // see [protocol.PublisherOptions]
	static    bool   // see [protocol.PublisherOptions]
	frequency string // set by tests. If empty, chosen by how often the site changes.

	mu   sync.Mutex
	last division // sections of the last view; guarded by mu
}

var _ millrace.ArtifactPublisher = (*publisher)(nil)

// NewPublisher returns the protocol's publisher. Nil options mean the zero value.
func NewPublisher(o *protocol.PublisherOptions) millrace.Publisher {
	if o == nil {
		o = new(protocol.PublisherOptions)
	}
	p := &publisher{
		listItems: max(1, min(cmp.Or(o.ListItems, sitemap.MaxURLs), sitemap.MaxURLs)),
		own:       *protocol.Own[PublisherOptions](o),
		compact:   o.Compact,
		static:    o.Static,
	}
	if p.compact && p.own.Sections == nil {
		p.own.Sections = []string{} // the collection of all pages contains the pages of all sections
	}
	return p
}

// Find never finds a document: all documents grow with the site, so they are part of the edition.
func (p *publisher) Find(context.Context, millrace.View, *http.Request) (*millrace.Document, error) {
	return nil, fmt.Errorf("%s: %w", Name, millrace.ErrNotFound)
}

// All yields the sitemaps that only list pages. The first sitemap and the collections are
// artifacts.
func (p *publisher) All(_ context.Context, v millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(yield func(*millrace.Document, error) bool) {
		site := v.Site()
		shards := p.shards(site)
		if shards == 1 || foreign(site) {
			return
		}
		for i := 1; i < shards; i++ {
			if !yield(sitemapDocument(v, i, shards, ""), nil) {
				return
			}
		}
		yield(indexDocument(v, shards), nil)
	}
}

// atOnce is the maximum number of pages of a site whose snapshots are generated with each edition.
// Generating them takes a few milliseconds.
const atOnce = 500

// Artifacts generates the delta of the current period, the last delta of the previous period, the
// missing snapshots, the outdated snapshots of a small site, and the sitemap. The sitemap lists the
// deltas and the newest snapshot of each section. A replaced collection remains until its expiry
// time in the sitemap, within limits, unless one of its pages is removed. If the pages are on a
// different origin from the documents, Artifacts generates nothing: see the deviations in the
// package documentation. The first snapshots of a larger site are deferred. Until they exist, the
// sitemap lists only pages. A collection that was replaced a short time ago is replaced again
// later: see [plan.early].
func (p *publisher) Artifacts(ctx context.Context, v millrace.View, now time.Time, s millrace.ArtifactSet) (again time.Time, err error) {
	if foreign(v.Site()) {
		return time.Time{}, nil
	}
	pl, err := p.plan(ctx, v, now, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: sections: %w", Name, err)
	}
	if err := pl.plan(ctx); err != nil {
		return time.Time{}, fmt.Errorf("%s: changes: %w", Name, err)
	}
	// Without snapshots of all sections, the sitemap lists no collections, because clients would
	// miss pages. The snapshots of a small site are always current, so a client that sees a change
	// in another document finds the change here.
	small := pl.sections[0].pages <= atOnce
	if len(pl.previous) == 0 && !small {
		if err := s.Put(ctx, sitemapDocument(v, 0, p.shards(v.Site()), "")); err != nil {
			return time.Time{}, fmt.Errorf("%s: sitemap: %w", Name, err)
		}
		return pl.again, nil
	}
	if err := pl.snapshots(ctx, func(s *section) bool { return s.snapshot == nil || s.touched && !pl.early(s, s.snapshot) && small }); err != nil {
		return time.Time{}, fmt.Errorf("%s: snapshots: %w", Name, err)
	}
	for _, s := range pl.sections {
		if err := pl.list(s, s.snapshot); err != nil {
			return time.Time{}, fmt.Errorf("%s: snapshots: %w", Name, err)
		}
	}
	if err := pl.deltas(ctx); err != nil {
		return time.Time{}, fmt.Errorf("%s: deltas: %w", Name, err)
	}
	pl.keepReplaced()
	if err := pl.sitemap(ctx); err != nil {
		return time.Time{}, fmt.Errorf("%s: sitemap: %w", Name, err)
	}
	return pl.again, nil
}

// Deferred generates the snapshots of the changed sections, unless they are too recent.
func (p *publisher) Deferred(ctx context.Context, v millrace.View, now time.Time, s millrace.ArtifactSet) error {
	if foreign(v.Site()) {
		return nil
	}
	pl, err := p.plan(ctx, v, now, s)
	if err == nil {
		err = pl.plan(ctx)
	}
	if err == nil {
		err = pl.snapshots(ctx, func(s *section) bool { return s.touched && (s.snapshot == nil || !pl.early(s, s.snapshot)) })
	}
	if err != nil {
		return fmt.Errorf("%s: snapshots: %w", Name, err)
	}
	return nil
}
