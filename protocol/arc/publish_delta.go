package arc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
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
	n      int    // of changes that no other has followed
	newest time.Time
	sum    hash.Hash // of the changes
}

// changedDays gives the days that have deltas, in order: up to that of the
// newest change, and as far back as the log reaches, which is not before its
// first entry: what the site was then nobody knows, and whoever has read it then
// reads the list. It takes one pass over what has changed since.
func changedDays(ctx context.Context, v millrace.View) ([]*day, error) {
	site := v.Site()
	if site.Time.IsZero() {
		return nil, nil
	}
	last := site.Time.UTC().Truncate(dayLength)
	for start := last.Add(-(horizon - 1) * dayLength); !start.After(last); start = start.Add(dayLength) {
		days, err := daysSince(ctx, v, start, last)
		if err == nil || !errors.Is(err, millrace.ErrConflict) {
			return days, err
		}
	}
	return nil, nil // the log begins today
}

func daysSince(ctx context.Context, v millrace.View, start, last time.Time) ([]*day, error) {
	site := v.Site()
	var days []*day
	for at := start; !at.After(last); at = at.Add(dayLength) {
		since, err := v.SeqAt(ctx, at.Add(-time.Nanosecond))
		if err != nil {
			return nil, err
		}
		if since == 0 {
			days, start = nil, at
		}
		days = append(days, &day{start: at, since: since, newest: at, sum: sha256.New()})
	}
	for c, err := range v.Changes(ctx, site.At(days[0].since)) {
		if err != nil {
			return nil, err
		}
		i := int(c.Time.Sub(start) / dayLength)
		if c.Kind == millrace.Mark || i < 0 || i >= len(days) {
			continue
		}
		d := days[i]
		d.n++
		if c.Time.After(d.newest) {
			d.newest = c.Time
		}
		fmt.Fprintf(d.sum, "%d %s %s %d\n", c.Kind, c.URL, c.Version, c.Time.UnixMilli())
	}
	days[len(days)-1].newest = site.Time // what has changed the list has changed its newest delta
	return days, nil
}

// delta gives the delta of a day (E.8). Its validator is of what has changed,
// so that it is written again only when that is something else.
func (p *publisher) delta(v millrace.View, d *day) *millrace.Document {
	site := v.Site()
	doc := p.large(deltaPath(d.start), contentType, func(ctx context.Context, w io.Writer, keyed bool) error {
		return p.writeDelta(ctx, v, d, w, keyed)
	})
	head := p.head(site, d.newest).append(nil)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%x", p.key, head, d.sum.Sum(nil)))
	doc.ETag = "d-" + hex.EncodeToString(sum[:16])
	doc.Touched = func(string) bool { return false }
	doc.Names = int64(d.n)
	return doc
}

func deltaPath(day time.Time) string { return pathDeltas + day.Format(time.DateOnly) + ".json" }

// writeDelta writes what changed last on a day. A page that is gone, or not
// listed any more, is not to be indexed. One that no list has named is not named
// here either: its address was never public.
func (p *publisher) writeDelta(ctx context.Context, v millrace.View, d *day, w io.Writer, keyed bool) error {
	site := v.Site()
	named := p.named(site)
	out := newLines(w, p.head(site, d.newest))
	var buf []byte
	for c, err := range v.Changes(ctx, site.At(d.since)) {
		if err != nil {
			return err
		}
		if c.Kind == millrace.Mark || c.Time.Sub(d.start) >= dayLength {
			break // the log is in order
		}
		t, err := v.Tag(ctx, Name, c.URL)
		switch {
		case named[c.URL] != "": // as the list has it: who holds the page has to let go of it
			e, err := listedEntry(ctx, v, c.URL)
			if err != nil {
				return err
			}
			buf = e.append(buf[:0])
		case errors.Is(err, millrace.ErrGone):
			e := entry{URL: c.URL, Robots: "noindex"}
			buf = e.append(buf[:0])
		case errors.Is(err, millrace.ErrNotFound):
			continue
		case err != nil:
			return err
		default:
			if buf, err = entryOfTag(ctx, v, t, keyed, buf[:0]); err != nil {
				return err
			}
			buf = p.prefer(site, t.URL, buf)
		}
		if err := out.write(buf); err != nil {
			return err
		}
	}
	return out.end()
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
