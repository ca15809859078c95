package openfeeder

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// stride is the minimum number of pages between two cached spots of an order. maxCachedOrders is
// the maximum number of cached views, and maxCachedSpots the maximum number of spots per view. If
// more than mostChanges changes separate two views, the spots of the earlier view are not reused.
const (
	stride          = maxLimit
	maxCachedOrders = 2
	maxCachedSpots  = 1 << 16
	mostChanges     = 1000
)

// orders caches the positions at which pages of an index start, so the pages before them are read
// only once. For each of the last two views, the cache takes about 150 bytes per 50 pages of the
// site.
type orders struct {
	mu   sync.Mutex
	last []*order
}

// order contains the known spots of a view's pages, which are ordered from newest to oldest.
type order struct {
	view millrace.View

	mu    sync.Mutex
	spots []spot // ordered by number; the first spot is before all pages
}

// spot is the position of a page in an order.
type spot struct {
	number int // number of published pages up to and including this page
	rank
}

// rank is the sort key of a page.
type rank struct {
	url       string // identity of the page
	published time.Time
}

func rankOf(base string, p *millrace.Page) rank {
	return rank{canon.Relative(base, p.URL), p.Published.Truncate(time.Second)}
}

// compare orders ranks like [millrace.ByPublished].
func (r rank) compare(s rank) int {
	if r.published.IsZero() != s.published.IsZero() {
		if r.published.IsZero() {
			return 1
		}
		return -1
	}
	return cmp.Or(s.published.Compare(r.published), cmp.Compare(r.url, s.url))
}

// of returns the order of a view.
func (os *orders) of(ctx context.Context, v millrace.View) *order {
	os.mu.Lock()
	defer os.mu.Unlock()
	name := edition(v.Site())
	for _, o := range os.last {
		if edition(o.view.Site()) == name {
			return o
		}
	}
	o := &order{view: v, spots: []spot{{}}}
	if n := len(os.last); n > 0 {
		o.follow(ctx, os.last[n-1])
	}
	if ctx.Err() != nil {
		return o // the next request tries again
	}
	if len(os.last) == maxCachedOrders {
		os.last = os.last[1:]
	}
	os.last = append(os.last, o)
	return o
}

// follow copies the spots from the order of an earlier view, and adjusts them by the changes since
// that view. If these are unknown or too many, follow copies nothing.
func (o *order) follow(ctx context.Context, last *order) {
	site, was := o.view.Site(), last.view.Site()
	if !site.Has(was.Epoch, was.Seq) || was.Seq > site.Seq || was.Base != site.Base {
		return
	}
	var came, went []rank
	moved, n := map[string]bool{}, 0
	for c, err := range o.view.Changes(ctx, site.At(was.Seq)) {
		if n++; err != nil || n > mostChanges {
			return
		}
		if c.Kind == millrace.KindCheckpoint {
			continue
		}
		before, ok := find(ctx, last.view, c.URL)
		after, known := find(ctx, o.view, c.URL)
		if !ok || !known {
			return
		}
		if !slices.Equal(before, after) {
			moved[canon.Relative(site.Base, c.URL)] = true
			came, went = append(came, after...), append(went, before...)
		}
	}
	last.mu.Lock()
	defer last.mu.Unlock()
	for _, at := range last.spots[1:] {
		if moved[at.url] {
			continue
		}
		for _, r := range came {
			if r.compare(at.rank) < 0 {
				at.number++
			}
		}
		for _, r := range went {
			if r.compare(at.rank) < 0 {
				at.number--
			}
		}
		o.spots = append(o.spots, at)
	}
}

// find returns the rank of a page in a view, or no rank if the page is not published. It returns
// false if the rank is unknown.
func find(ctx context.Context, v millrace.View, url string) ([]rank, bool) {
	p, err := v.Page(ctx, millrace.Ref{URL: url})
	if err != nil {
		return nil, errors.Is(err, millrace.ErrNotFound)
	}
	if _, ok := published(v.Site(), p); !ok {
		return nil, true
	}
	return []rank{rankOf(v.Site().Base, p)}, true
}

// pages yields at most n published pages without their blocks, and skips the first from pages.
func (o *order) pages(ctx context.Context, v millrace.View, from, n int) func(yield func(*millrace.Page, error) bool) {
	return func(yield func(*millrace.Page, error) bool) {
		o.mu.Lock()
		at := o.spots[o.next(from)-1]
		o.mu.Unlock()
		number, after, end, site := at.number, "", from+n, v.Site()
		if at.url != "" {
			after = canon.Absolute(site.Base, at.url)
		}
		for more := true; more; {
			// Scan as many pages as needed, and some more, because pages without a document do not
			// count.
			limit, n := end-number+8, 0
			for p, err := range v.Scan(ctx, millrace.Scan{Order: millrace.ByPublished, After: after, Limit: limit}) {
				if err != nil {
					yield(nil, err)
					return
				}
				n++
				after = p.URL
				if _, ok := published(site, p); !ok {
					continue
				}
				if number >= from && !yield(p, nil) {
					return
				}
				number++
				o.note(spot{number, rankOf(site.Base, p)})
				if number == end {
					return
				}
			}
			more = n == limit
		}
	}
}

// next returns the index of the first spot after a number of pages.
func (o *order) next(number int) int {
	return sort.Search(len(o.spots), func(i int) bool { return o.spots[i].number > number })
}

// note caches a spot if it is far enough from its neighbors.
func (o *order) note(at spot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i, n := o.next(at.number), len(o.spots)
	if n < maxCachedSpots && at.number >= o.spots[i-1].number+stride && (i == n || at.number+stride <= o.spots[i].number) {
		o.spots = slices.Insert(o.spots, i, at)
	}
}
