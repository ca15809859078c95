package arc

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

const (
	// horizon is the number of days that have deltas, up to the day of the newest change.
	horizon = 30
	// maxDelta is the maximum number of changes in a delta. For more changes, reading the list is
	// cheaper.
	maxDelta = 50_000

	dayLength = 24 * time.Hour
)

// day contains the changes of one day in UTC.
type day struct {
	start  time.Time
	since  uint64 // last sequence number before the day
	n      int    // number of pages whose last change was on the day; above the limit if there are too many
	newest time.Time
	pages  []string // URLs of these pages, in the order of identities; nil if there are too many
}

// dayChanges caches the changes of each day. Therefore, building an edition reads only the changes
// since the previous edition, and the days from which a page has moved because it changed again. It
// is safe for concurrent use.
type dayChanges struct {
	mu    sync.Mutex
	epoch string
	seq   uint64 // sequence number of the view for which the cache is valid
	days  map[time.Time]counted
}

// counted is the cached state of a day.
type counted struct {
	n      int // number of changes; one above the limit if there are too many
	newest time.Time
	pages  []string // like day.pages
	until  uint64   // up to this sequence number, the day still has too many changes
}

// maxCached is the maximum number of cached pages of all days.
const maxCached = 200_000

// daysOf returns the days that have deltas, in order, up to the day of the newest change. None of
// them is before the day of the log's first entry, because the log does not contain the earlier
// state of the site: a client with an earlier state must read the list. most is the maximum number
// of changes in a delta.
func (h *dayChanges) daysOf(ctx context.Context, v millrace.View, most int) ([]*day, error) {
	site := v.Site()
	if site.Volatile || site.Time.IsZero() {
		return nil, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.update(ctx, v, most); err != nil {
		return nil, err
	}
	last := site.Time.UTC().Truncate(dayLength)
	for start := last.Add(-(horizon - 1) * dayLength); !start.After(last); start = start.Add(dayLength) {
		days, err := h.since(ctx, v, start, last, most)
		if err == nil || !errors.Is(err, millrace.ErrConflict) {
			return days, err
		}
	}
	return nil, nil // the log begins today
}

// update brings the cache up to date with a view.
func (h *dayChanges) update(ctx context.Context, v millrace.View, most int) error {
	site := v.Site()
	from := h.seq
	fresh := h.days == nil || h.epoch != site.Epoch || site.Seq < h.seq
	h.epoch, h.seq = site.Epoch, site.Seq
	n := 0
	if !fresh {
		for c, err := range v.Changes(ctx, site.At(from)) {
			if errors.Is(err, millrace.ErrConflict) || n > most {
				fresh = true
				break
			} else if err != nil {
				h.days = nil
				return err
			}
			if c.Kind == millrace.KindCheckpoint {
				continue
			}
			n++
			h.add(site.Base, c)
		}
	}
	cached := 0
	for at, d := range h.days {
		cached += len(d.pages)
		if d.pages == nil && site.Seq > d.until || site.Time.Sub(at) >= (horizon+1)*dayLength {
			delete(h.days, at)
		}
	}
	if fresh || cached > maxCached {
		h.days = make(map[time.Time]counted)
	}
	return nil
}

// add adds a change to its day. It drops the cached day that the page has left.
func (h *dayChanges) add(base string, c millrace.Change) {
	today := c.Time.UTC().Truncate(dayLength)
	for at, d := range h.days {
		if d.pages == nil {
			continue
		}
		i, has := slices.BinarySearchFunc(d.pages, c.URL, byIdentity(base))
		switch {
		case !at.Equal(today) && has:
			delete(h.days, at)
		case at.Equal(today):
			if !has {
				d.pages = slices.Insert(slices.Clone(d.pages), i, c.URL)
				d.n++
			}
			if c.Time.After(d.newest) {
				d.newest = c.Time
			}
			h.days[at] = d
		}
	}
}

// byIdentity compares URLs by the identities of their pages.
func byIdentity(base string) func(a, b string) int {
	return func(a, b string) int { return strings.Compare(canon.Relative(base, a), canon.Relative(base, b)) }
}

func (h *dayChanges) since(ctx context.Context, v millrace.View, start, last time.Time, most int) ([]*day, error) {
	site := v.Site()
	var days []*day
	for at := start; !at.After(last); at = at.Add(dayLength) {
		since, err := v.SeqAt(ctx, at.Add(-time.Nanosecond))
		if err != nil {
			return nil, err
		}
		if since == 0 {
			days = nil
		}
		days = append(days, &day{start: at, since: since, newest: at})
	}
	for _, err := range v.Changes(ctx, site.At(days[0].since)) {
		if err != nil {
			return nil, err // the day is before the beginning of the log
		}
		break
	}
	for _, d := range days {
		is, ok := h.days[d.start]
		if !ok || is.pages != nil && is.n > most {
			var err error
			if is, err = count(ctx, v, d, most); err != nil {
				return nil, err
			}
			h.days[d.start] = is
		}
		if d.n, d.pages = is.n, is.pages; is.newest.After(d.newest) {
			d.newest = is.newest
		}
	}
	days[len(days)-1].newest = site.Time // the newest delta changes with the list
	return days, nil
}

// count reads the changes of a day. If the day has too many changes, count reads up to twice the
// maximum, because each later change removes at most one page from the day.
func count(ctx context.Context, v millrace.View, d *day, most int) (is counted, err error) {
	site := v.Site()
	is.pages = []string{}
	for c, err := range v.Changes(ctx, site.At(d.since)) {
		if err != nil {
			return is, err
		}
		if c.Kind == millrace.KindCheckpoint || c.Time.Sub(d.start) >= dayLength || is.n > 2*most {
			break // the log is ordered by time
		}
		is.n++
		is.pages = append(is.pages, c.URL)
		if c.Time.After(is.newest) {
			is.newest = c.Time
		}
	}
	if is.n > most {
		is.until = site.Seq + uint64(is.n-most-1) //nolint:gosec // not negative
		is.n, is.pages = most+1, nil
	}
	slices.SortFunc(is.pages, byIdentity(site.Base))
	return is, nil
}

// delta returns the delta of a day (E.8). Its entries are ordered by identity.
func (p *publisher) delta(v millrace.View, d *day) *millrace.Document {
	site := v.Site()
	doc := p.large(deltaPath(d.start), contentType, func(keyed bool) *millrace.Parts {
		h := p.head(site, d.newest).append(nil)
		return &millrace.Parts{
			Version: p.version(site), Head: append(h, '\n'), Separator: []byte(",\n"), Tail: []byte(listTail), Empty: append(h[:len(h):len(h)], listTail...),
			After: p.changes(v, d, keyed), Changed: func(u string) []string { return []string{canon.Relative(site.Base, u)} },
		}
	})
	doc.PageCount = int64(d.n)
	return doc
}

func deltaPath(day time.Time) string { return pathDeltas + day.Format(time.DateOnly) + ".json" }

// changes returns the [millrace.Parts].After of a delta: the entries of the pages whose last change
// was on its day. A page that was deleted or is no longer listed is marked as not to be indexed. A
// page that was never in a list is omitted, because its URL was never public.
func (p *publisher) changes(v millrace.View, d *day, keyed bool) func(ctx context.Context, key string) iter.Seq2[millrace.Part, error] {
	site := v.Site()
	named := p.named(site)
	return func(ctx context.Context, key string) iter.Seq2[millrace.Part, error] {
		return func(yield func(millrace.Part, error) bool) {
			var buf []byte
			first := sort.Search(len(d.pages), func(i int) bool { return canon.Relative(site.Base, d.pages[i]) > key })
			for _, u := range d.pages[first:] {
				e := &entry{URL: u, Robots: "noindex"}
				t, err := v.Tag(ctx, Name, u)
				if _, ok := named[u]; ok { // use the entry of the list, so clients drop the page
					e, err = listedEntry(ctx, v, u)
				} else if err == nil {
					e = nil
					buf, err = p.entry(ctx, v, t, keyed, buf[:0])
				} else if errors.Is(err, millrace.ErrGone) {
					err = nil
				} else if errors.Is(err, millrace.ErrNotFound) {
					continue
				}
				if err == nil && e != nil {
					buf = e.append(buf[:0])
				}
				if !yield(millrace.Part{Key: canon.Relative(site.Base, u), Body: buf}, err) || err != nil {
					return
				}
			}
		}
	}
}

// quietDay returns the delta of a recent day, up to today, on which no page had its last change.
// For any other path, it returns nil. The deltas of other days are large documents.
func (p *publisher) quietDay(ctx context.Context, v millrace.View, path string) (*millrace.Document, error) {
	name, ok := strings.CutPrefix(path, pathDeltas)
	at, err := time.Parse(time.DateOnly+".json", name)
	site := v.Site()
	last := site.Time.UTC().Truncate(dayLength)
	switch {
	case !ok || err != nil || site.Time.IsZero() || at.Before(last.Add(-(horizon-1)*dayLength)) || at.After(p.now().UTC()):
		return nil, nil //nolint:nilnil // not the path of a recent delta
	case at.After(last):
		return p.quiet(site, at, site.Time), nil
	}
	since, err := v.SeqAt(ctx, at.Add(-time.Nanosecond))
	if err != nil {
		return nil, err
	}
	if since == 0 && at.Before(last) {
		if first, err := v.SeqAt(ctx, at.Add(dayLength-time.Nanosecond)); err != nil || first == 0 {
			return nil, err //nolint:nilnil // the log begins after the day
		}
	}
	for c, err := range v.Changes(ctx, site.At(since)) {
		switch {
		case errors.Is(err, millrace.ErrConflict):
			return nil, nil //nolint:nilnil // the day is before the beginning of the log
		case err != nil:
			return nil, err
		case c.Kind != millrace.KindCheckpoint && c.Time.Sub(at) < dayLength:
			return nil, nil //nolint:nilnil // a large document, or a day with too many changes
		}
		break
	}
	if at.Equal(last) {
		return p.quiet(site, at, site.Time), nil
	}
	return p.quiet(site, at, at), nil
}

// quiet returns a delta without pages. It is built per request, because a site that rarely changes
// has many such deltas.
func (p *publisher) quiet(site millrace.Site, day, generated time.Time) *millrace.Document {
	body := append(p.head(site, generated).append(nil), listTail...)
	return &millrace.Document{
		Path: deltaPath(day), ETag: "sha256-" + canon.SHA256Hex(body), Header: header(contentType),
		Write: func(_ context.Context, w io.Writer) error {
			_, err := w.Write(body)
			return err
		},
	}
}
