package openfeeder

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/kit"
)

const (
	// skew is the tolerated difference between two clocks.
	skew = 10 * time.Minute
	// maxGone is the maximum number of deletions in one response. For more, reading the whole site
	// costs less.
	maxGone = 100_000
)

// Deletions implements [protocol.Protocol.Deletions]. A site reports deletions if its index has a
// token, if it declares that it reports them, or if it has reported one. A static feed does not.
func (r *reader) Deletions(ctx context.Context, since millrace.Cursor, from time.Time) iter.Seq2[millrace.Change, error] {
	return kit.Stream(func(y kit.Yield) error {
		gone, next, err := r.deletions(ctx, since, from)
		if err != nil {
			return err
		}
		for _, u := range slices.Sorted(maps.Keys(gone)) {
			if err := y.Give(millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: u}, Time: gone[u]}, nil); err != nil {
				return err
			}
		}
		m := kit.Checkpoint(*next, false, "")
		m.Time = next.AsOf
		return y.Give(m, nil)
	})
}

// deletions returns the deleted pages with their deletion times, and the next cursor.
func (r *reader) deletions(ctx context.Context, since millrace.Cursor, from time.Time) (map[string]time.Time, *cursor, error) {
	run, now, err := r.begin(ctx, since, nil)
	if err != nil {
		return nil, nil, err
	}
	deleted, err := run.gone(ctx, from, now)
	if errors.Is(err, millrace.ErrNotFound) && !run.is.Found.Equal(now) {
		var moved bool
		if moved, err = run.moved(ctx, now, err); moved {
			deleted, err = run.gone(ctx, from, now)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return deleted, &run.is, nil
}

// coarse is the maximum difference between the times of two documents of a site that is due to
// rounding to whole seconds.
const coarse = 2 * time.Second

// gone requests the deletions since the cursor, or since from if that is earlier, and advances the
// cursor.
func (r *run) gone(ctx context.Context, from, now time.Time) (map[string]time.Time, error) {
	c := &r.is
	if c.Feed.Static {
		return nil, fmt.Errorf("%s: deletions: %s is a static feed, which does not report deletions: %w", Name, c.Feed.Endpoint, errors.ErrUnsupported)
	}
	since, etag, restart := c.Token, c.ETag, c.Token == ""
	if was := r.was.AsOf; restart && !was.IsZero() && (from.IsZero() || was.Before(from)) {
		from = was // tokens of the previous feed may be invalid
	}
	switch {
	case restart && from.IsZero():
		since = kit.FormatTime(now)
	case restart, !from.IsZero() && from.Before(c.AsOf.Add(coarse)):
		since, etag = kit.FormatTime(from.Add(-skew).UTC()), ""
	}
	deleted := map[string]time.Time{}
	gap := false
	err := r.since(ctx, since, etag, func(reply *changes, tag string) error {
		if reply == nil {
			return nil
		}
		s := &reply.Sync
		r.recordDeletions(reply, deleted)
		if s.DeletedTracking != nil {
			gap = gap || !*s.DeletedTracking
			c.ReportsDeletions = c.ReportsDeletions || *s.DeletedTracking
		}
		c.ReportsDeletions = c.ReportsDeletions || len(reply.Deleted) > 0
		if len(reply.Deleted) == recommendedTombstones && s.Next == "" || len(deleted) > maxGone {
			return r.lost("the list of deletions may be incomplete")
		}
		if c.ETag = ""; s.Next == "" && s.SyncToken == since {
			c.ETag = tag
		}
		c.Token = s.SyncToken
		if c.AsOf = parseTime(s.AsOf); c.AsOf.IsZero() {
			c.AsOf = now.Add(-skew)
		}
		return nil
	})
	switch {
	case gone(err) && !restart:
		return nil, r.lost(err.Error())
	case restart && (gone(err) || errors.Is(err, millrace.ErrInvalid)):
		return nil, fmt.Errorf("%s: deletions: %s does not report deletions: %w: %w", Name, r.Root, errors.ErrUnsupported, err)
	case err != nil:
		return nil, err
	}
	if !c.ReportsDeletions {
		if err := r.probeDeletions(ctx); err != nil {
			return nil, err
		}
	}
	if gap {
		return nil, r.lost("the site no longer has the deletions since " + since)
	}
	return deleted, nil
}

// recordDeletions records the deleted pages in a reply. A listed page exists, even if the reply
// also has a tombstone for it.
func (r *run) recordDeletions(reply *changes, deleted map[string]time.Time) {
	listed := map[string]bool{}
	for _, items := range [][]item{reply.Added, reply.Updated} {
		for i := range items {
			if u, err := r.urlOf(items[i].URL); err == nil {
				listed[u] = true
				delete(deleted, u)
			}
		}
	}
	for _, t := range reply.Deleted {
		u, err := r.urlOf(t.URL)
		switch {
		case err != nil:
			r.Note("3.4/tombstone", r.is.Feed.Endpoint, err.Error())
		case !listed[u]:
			deleted[u] = parseTime(t.DeletedAt)
		}
	}
}

func (r *run) lost(why string) error {
	return fmt.Errorf("%s: deletions of %s: %s: %w", Name, r.Root, why, millrace.ErrConflict)
}

// probeDeletions finds out whether a site that has not reported a deletion yet reports deletions:
// its index must have a token.
func (r *run) probeDeletions(ctx context.Context) error {
	target := r.is.Feed.query("limit", strconv.Itoa(1), "page", strconv.Itoa(1))
	_, body, err := r.get(ctx, target, "")
	if err != nil {
		return r.wrap("index", err)
	}
	x, err := decodeIndex(body)
	if err != nil {
		return kit.FormatURL(err, target)
	}
	if r.is.ReportsDeletions = x.SyncToken != ""; !r.is.ReportsDeletions {
		return fmt.Errorf("%s: deletions: %s does not declare that it reports deletions: %w", Name, r.Root, errors.ErrUnsupported)
	}
	return nil
}
