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

// PublisherOptions are SCP's own options. The zero value works.
type PublisherOptions struct {
	// Sections are prefixes of paths. Each part of the site below one has
	// collections of its own; nil = the first segments of paths.
	Sections []string
	// UpdateFrequency is how often collections are made, as they declare: hourly,
	// daily, weekly or monthly; "" = as often as the site changes.
	UpdateFrequency string
	// FilesURL is where collections are fetched from, such as a CDN: absolute,
	// without "/" at its end; "" = the endpoint base.
	FilesURL string
	// NoChecksum: collections have no checksum in their metadata.
	NoChecksum bool
}

// publisher serves, all under the documents' base:
//
//	/sitemap.xml              the SCP elements and the first pages of the site
//	/sitemap-2-of-4.xml …     the other pages, when there are more than one sitemap holds
//	/sitemap-index.xml        all of those
//	/scp/SECTION-SUM.scp.zst  a collection, compressed; SUM are the first digits of its bytes' SHA-256
//	/scp/SECTION-SUM.scp.gz   the same in gzip
//	/scp/SECTION-SUM.scp      the same, plain
type publisher struct {
	listItems int
	own       PublisherOptions

	mu   sync.Mutex
	last division // of the view that was divided last; guarded by mu
}

var _ millrace.ArtifactPublisher = (*publisher)(nil)

// NewPublisher makes the protocol's publisher; nil options are the zero value.
func NewPublisher(o *protocol.PublisherOptions) millrace.Publisher {
	if o == nil {
		o = new(protocol.PublisherOptions)
	}
	return &publisher{
		listItems: max(1, min(cmp.Or(o.ListItems, sitemap.MaxURLs), sitemap.MaxURLs)),
		own:       *protocol.Own[PublisherOptions](o),
	}
}

// Find finds nothing: all there is is as large as the site, and in the edition.
func (p *publisher) Find(context.Context, millrace.View, *http.Request) (*millrace.Document, error) {
	return nil, fmt.Errorf("%s: %w", Name, millrace.ErrNotFound)
}

// All yields the sitemaps that name pages alone. The first one and the
// collections are Files.
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

// atOnce is the number of pages up to which the snapshots of a site are made with
// each edition. They cost some milliseconds.
const atOnce = 500

// Artifacts makes the delta of the present period, the last delta of the period before,
// snapshots of sections that have none, or of a small site, and the sitemap that names them and the
// newest snapshot of each section. What has
// been replaced stays for as long as the sitemap has said, within bounds, unless a
// page of it is gone. Of a site whose pages are on another origin than the documents
// there is nothing: see the package's deviations. The first snapshots of a larger site
// are deferred, and until they are made its sitemap names pages alone.
func (p *publisher) Artifacts(ctx context.Context, v millrace.View, now time.Time, s millrace.ArtifactSet) (again time.Time, err error) {
	if foreign(v.Site()) {
		return time.Time{}, nil
	}
	pl, err := p.plan(ctx, v, now, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: sections: %w", Name, err)
	}
	if err := pl.plan(ctx); err != nil {
		return time.Time{}, fmt.Errorf("%s: what has changed: %w", Name, err)
	}
	// A sitemap without the snapshot of a section would read as a smaller site. Clients
	// that learn of a change by other documents find it in the snapshots of a small site.
	small := pl.sections[0].pages <= atOnce
	if len(pl.held) == 0 && !small {
		if err := s.Put(ctx, sitemapDocument(v, 0, p.shards(v.Site()), "")); err != nil {
			return time.Time{}, fmt.Errorf("%s: sitemap: %w", Name, err)
		}
		return pl.period.end, nil
	}
	if err := pl.snapshots(ctx, func(s *section) bool { return s.snapshot == nil || small && s.touched }); err != nil {
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
	pl.retire()
	if err := pl.sitemap(ctx); err != nil {
		return time.Time{}, fmt.Errorf("%s: sitemap: %w", Name, err)
	}
	return pl.period.end, nil
}

// Deferred makes the snapshots of the sections that have changed.
func (p *publisher) Deferred(ctx context.Context, v millrace.View, now time.Time, s millrace.ArtifactSet) error {
	if foreign(v.Site()) {
		return nil
	}
	pl, err := p.plan(ctx, v, now, s)
	if err == nil {
		err = pl.plan(ctx)
	}
	if err == nil {
		err = pl.snapshots(ctx, func(s *section) bool { return s.touched })
	}
	if err != nil {
		return fmt.Errorf("%s: snapshots: %w", Name, err)
	}
	return nil
}
