package arc

import (
	"context"
	"errors"
	"hash/maphash"
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
	// horizon is for how many days there are deltas, the day of the newest
	// change included.
	horizon = 30
	// maxDelta is the most changes of a day: whoever has missed more reads
	// the list for less.
	maxDelta = 50_000

	dayLength = 24 * time.Hour
)

// day is what the log has of one day, in UTC.
type day struct {
	start  time.Time
	since  uint64 // the last sequence number before it
	n      int    // of changes that no other has followed; more than a delta may have if there are too many
	newest time.Time
	pages  *dayPages // those of the day that was read last
}

// dayPages are the pages that changed last on a day, in the order of identities:
// both forms of a delta read them.
type dayPages struct {
	of   *day
	urls []string
}

// dayChanges remembers what the days of a log have, so that an edition reads only the
// days of which a page has changed since the last one. It is safe for concurrent
// use.
type dayChanges struct {
	mu    sync.Mutex
	epoch string
	seq   uint64 // of the view that it is right for
	days  map[time.Time]*counted
}

// counted is what a day has.
type counted struct {
	n      int // one more than it may be if there are too many
	newest time.Time
	pages  []uint64 // hashes of the URLs, sorted; nil if there are too many
	until  uint64   // up to this sequence number there are too many
}

// of returns the days that have deltas, in order: up to that of the newest
// change, and as far back as the log reaches, which is not before its first entry:
// no log says what the site was before, and a client that read it then reads the
// list. most is how many changes a delta may have.
func (h *dayChanges) of(ctx context.Context, v millrace.View, most int) ([]*day, error) {
	site := v.Site()
	if site.Time.IsZero() {
		return nil, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.follow(ctx, v, most); err != nil {
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

// follow forgets the days that another view has otherwise.
func (h *dayChanges) follow(ctx context.Context, v millrace.View, most int) error {
	site := v.Site()
	from := h.seq
	fresh := h.days == nil || h.epoch != site.Epoch || site.Seq < h.seq
	h.epoch, h.seq = site.Epoch, site.Seq
	today := site.Time.UTC().Truncate(dayLength)
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
			n++
			sum := hashOf(c.URL)
			for at, d := range h.days {
				if _, has := slices.BinarySearch(d.pages, sum); has || d.pages != nil && at.Equal(c.Time.UTC().Truncate(dayLength)) {
					delete(h.days, at)
				}
			}
		}
	}
	if fresh {
		h.days = make(map[time.Time]*counted)
	}
	for at, d := range h.days {
		if d.pages == nil && site.Seq > d.until || today.Sub(at) >= horizon*dayLength {
			delete(h.days, at)
		}
	}
	return nil
}

var hashSeed = maphash.MakeSeed()

func hashOf(url string) uint64 { return maphash.String(hashSeed, url) }

func (h *dayChanges) since(ctx context.Context, v millrace.View, start, last time.Time, most int) ([]*day, error) {
	site := v.Site()
	var days []*day
	pages := new(dayPages)
	for at := start; !at.After(last); at = at.Add(dayLength) {
		since, err := v.SeqAt(ctx, at.Add(-time.Nanosecond))
		if err != nil {
			return nil, err
		}
		if since == 0 {
			days = nil
		}
		days = append(days, &day{start: at, since: since, newest: at, pages: pages})
	}
	for _, err := range v.Changes(ctx, site.At(days[0].since)) {
		if err != nil {
			return nil, err // the log does not reach so far
		}
		break
	}
	for _, d := range days {
		is := h.days[d.start]
		if is == nil {
			var err error
			if is, err = count(ctx, v, d, most); err != nil {
				return nil, err
			}
			h.days[d.start] = is
		}
		if d.n = is.n; is.newest.After(d.newest) {
			d.newest = is.newest
		}
	}
	days[len(days)-1].newest = site.Time // what has changed the list has changed its newest delta
	return days, nil
}

// count reads what a day has. Of a day with too many changes it reads twice as many
// as there may be: each later change takes one away at most.
func count(ctx context.Context, v millrace.View, d *day, most int) (*counted, error) {
	site := v.Site()
	is := &counted{pages: []uint64{}}
	for c, err := range v.Changes(ctx, site.At(d.since)) {
		if err != nil {
			return nil, err
		}
		if c.Kind == millrace.Mark || c.Time.Sub(d.start) >= dayLength || is.n > 2*most {
			break // the log is in order
		}
		is.n++
		is.pages = append(is.pages, hashOf(c.URL))
		if c.Time.After(is.newest) {
			is.newest = c.Time
		}
	}
	if is.n > most {
		is.until = site.Seq + uint64(is.n-most-1) //nolint:gosec // not negative
		is.n, is.pages = most+1, nil
	}
	slices.Sort(is.pages)
	return is, nil
}

// delta returns the delta of a day (E.8). Its entries are in the order of
// identities.
func (p *publisher) delta(v millrace.View, d *day) *millrace.Document {
	site := v.Site()
	doc := p.large(deltaPath(d.start), contentType, func(keyed bool) *millrace.Parts {
		h := p.head(site, d.newest).append(nil)
		return &millrace.Parts{
			Version: p.version(site), Head: append(h, '\n'), Between: []byte(",\n"), Tail: []byte(listTail), Empty: append(h[:len(h):len(h)], listTail...),
			After: p.changes(v, d, keyed), Changed: func(u string) []string { return []string{canon.Relative(site.Base, u)} },
		}
	})
	doc.Names = int64(d.n)
	return doc
}

func deltaPath(day time.Time) string { return pathDeltas + day.Format(time.DateOnly) + ".json" }

// changes returns [millrace.Parts].After of a delta: the entries of the pages that
// changed last on its day. A page that is gone, or not listed any more, is not to
// be indexed. One that no list has named is not named here either: its address
// was never public.
func (p *publisher) changes(v millrace.View, d *day, keyed bool) func(ctx context.Context, key string) iter.Seq2[millrace.Part, error] {
	site := v.Site()
	named := p.named(site)
	return func(ctx context.Context, key string) iter.Seq2[millrace.Part, error] {
		return func(yield func(millrace.Part, error) bool) {
			urls, err := d.urls(ctx, v, key)
			if err != nil {
				yield(millrace.Part{}, err)
				return
			}
			var buf []byte
			for _, u := range urls {
				e := &entry{URL: u, Robots: "noindex"}
				t, err := v.Tag(ctx, Name, u)
				if _, ok := named[u]; ok { // as the list has it: who holds the page has to let go of it
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

// urls returns the pages that changed last on the day, with an identity after the
// given one, in the order of identities.
func (d *day) urls(ctx context.Context, v millrace.View, after string) ([]string, error) {
	site := v.Site()
	rest := func() []string {
		i := sort.Search(len(d.pages.urls), func(i int) bool { return canon.Relative(site.Base, d.pages.urls[i]) > after })
		return d.pages.urls[i:]
	}
	if d.pages.of == d {
		return rest(), nil
	}
	var urls []string
	for c, err := range v.Changes(ctx, site.At(d.since)) {
		if err != nil {
			return nil, err
		}
		if c.Kind == millrace.Mark || c.Time.Sub(d.start) >= dayLength {
			break // the log is in order
		}
		urls = append(urls, c.URL)
	}
	slices.SortFunc(urls, func(a, b string) int {
		return strings.Compare(canon.Relative(site.Base, a), canon.Relative(site.Base, b))
	})
	d.pages.of, d.pages.urls = d, urls
	return rest(), nil
}

// quietDay gives the delta of a day on which nothing was changed last, up to
// today; nil for any other path. Days with changes are large documents.
func (p *publisher) quietDay(ctx context.Context, v millrace.View, path string) (*millrace.Document, error) {
	name, ok := strings.CutPrefix(path, pathDeltas)
	at, err := time.Parse(time.DateOnly+".json", name)
	site := v.Site()
	last := site.Time.UTC().Truncate(dayLength)
	switch {
	case !ok || err != nil || site.Time.IsZero() || at.Before(last.Add(-(horizon-1)*dayLength)) || at.After(p.now().UTC()):
		return nil, nil //nolint:nilnil // it is none
	case at.After(last):
		return p.quiet(site, at, site.Time), nil
	}
	since, err := v.SeqAt(ctx, at.Add(-time.Nanosecond))
	if err != nil {
		return nil, err
	}
	if since == 0 && at.Before(last) {
		if first, err := v.SeqAt(ctx, at.Add(dayLength-time.Nanosecond)); err != nil || first == 0 {
			return nil, err //nolint:nilnil // the log begins later
		}
	}
	for c, err := range v.Changes(ctx, site.At(since)) {
		switch {
		case errors.Is(err, millrace.ErrConflict):
			return nil, nil //nolint:nilnil // the log does not reach so far
		case err != nil:
			return nil, err
		case c.Kind != millrace.Mark && c.Time.Sub(at) < dayLength:
			return nil, nil //nolint:nilnil // it is large, or too large
		}
		break
	}
	if at.Equal(last) {
		return p.quiet(site, at, site.Time), nil
	}
	return p.quiet(site, at, at), nil
}

// quiet gives a delta without pages: a document of no size, made when it is
// asked for, since a site that rests has many.
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
