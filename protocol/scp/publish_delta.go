package scp

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/millrace/millrace"
)

// Limits for deltas after the end of their period, and for replaced collections, which remain for
// clients that are still reading them.
const (
	keepDeltas    = 7 * 24 * time.Hour  // minimum time for which a delta is listed
	keepPeriods   = 8                   // minimum number of periods for which a delta is listed
	longestPeriod = 31 * 24 * time.Hour // maximum length that counts for keepPeriods
	keepRetired   = 8                   // maximum number of unexpired replaced collections per section
	graceful      = 5 * time.Minute     // time for which every replaced collection remains
)

// deltas lists the deltas of every section. It updates those of the current and the previous
// period, and keeps older ones unchanged. A delta that would contain more than half of its section
// is omitted, because the snapshot is shorter.
func (pl *plan) deltas(ctx context.Context) error {
	if pl.site.Volatile {
		return nil
	}
	now := pl.period
	for _, p := range []period{now.before(), now} {
		if err := pl.deltasOf(ctx, p); err != nil {
			return err
		}
	}
	for _, g := range pl.previous {
		s := pl.section(g.Section)
		if pl.used[g] || !pl.valid(g) || !g.delta() || s == nil || pl.expired(g) || g.Until.After(now.start) || pl.replaced(s, g) {
			continue
		}
		if err := pl.list(s, g); err != nil {
			return err
		}
	}
	for _, s := range pl.sections {
		slices.SortStableFunc(s.listed, func(a, b *group) int {
			switch {
			case a.delta() != b.delta() && !a.delta():
				return -1
			case a.delta() != b.delta():
				return 1
			}
			return a.Since.Compare(b.Since)
		})
	}
	return nil
}

// valid reports whether a collection of the previous edition can be listed.
func (pl *plan) valid(g *group) bool {
	return g.Key == pl.key && g.Retired.IsZero() && len(g.files) == len(pl.codings())
}

// expired reports whether a delta is too old to be listed.
func (pl *plan) expired(g *group) bool {
	return pl.now.After(g.Until.Add(max(keepDeltas, keepPeriods*min(longestPeriod, g.Until.Sub(g.Since)))))
}

// replaced reports whether another delta of the same period is listed.
func (pl *plan) replaced(s *section, g *group) bool {
	return slices.ContainsFunc(s.listed, func(l *group) bool { return l.delta() && l.Period == g.Period })
}

// deltasOf lists the deltas of one period, and generates those that are missing or out of date.
func (pl *plan) deltasOf(ctx context.Context, p period) error {
	from, err := pl.view.SeqAt(ctx, p.start.Add(-time.Millisecond))
	if err != nil {
		return err
	}
	to, err := pl.view.SeqAt(ctx, p.end.Add(-time.Millisecond))
	if err != nil {
		return err
	}
	all := pl.sections[0]
	if from == to || to-from > uint64(all.pages/2) {
		return nil // no changes, or so many that the snapshot is smaller
	}
	current := map[*section]*group{}
	for _, g := range pl.previous {
		if s := pl.section(g.Section); s != nil && pl.valid(g) && g.Period == p.name() && (current[s] == nil || g.Generated.After(current[s].Generated)) {
			current[s] = g
		}
	}
	behind := current[all] == nil
	for _, g := range current {
		behind = behind || g.At.Seq < to
	}
	if behind {
		since, err := pl.sinceOf(ctx, p.start, from)
		if err != nil {
			return err
		}
		if err := pl.renew(ctx, p, from, min(to, pl.site.Seq), since, current); err != nil {
			return err
		}
	}
	for _, s := range pl.sections {
		if g := current[s]; g != nil {
			if err := pl.list(s, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// sinceOf returns the earliest time, in whole seconds, after which no page was added or changed
// until start. from is the sequence number at start. The collections of that time contain the state
// at start, so the delta applies to them. Deletions do not count, because deltas do not list them.
func (pl *plan) sinceOf(ctx context.Context, start time.Time, from uint64) (time.Time, error) {
	since := start
	for range maxGone {
		t, err := pl.lastChange(ctx, since, from)
		if err != nil {
			return t, err
		}
		since = t
		before, err := pl.view.SeqAt(ctx, since.Add(-time.Millisecond))
		if err != nil || before == 0 || before == from {
			return since, err
		}
		for c, err := range pl.view.Changes(ctx, pl.site.At(before)) {
			if errors.Is(err, millrace.ErrConflict) {
				return since, nil // the log no longer contains that time
			}
			if err != nil || c.Kind == millrace.Put && c.Time.Before(start) {
				return since, err
			}
		}
		from = before
	}
	return since, nil
}

// maxGone is the maximum number of times that sinceOf skips because pages were only deleted.
const maxGone = 100

// lastChange returns the time of the last change before start, in whole seconds. from is the
// sequence number of that change.
func (pl *plan) lastChange(ctx context.Context, start time.Time, from uint64) (time.Time, error) {
	if from == 0 {
		return start, nil
	}
	late, err := start, error(nil)
	is := func(t time.Time) bool {
		var seq uint64
		if err == nil {
			seq, err = pl.view.SeqAt(ctx, t.Add(time.Second-time.Millisecond))
		}
		return err == nil && seq == from
	}
	early, step := start.Add(-time.Second), time.Hour
	for is(early) && step < 1<<60 {
		late, early, step = early, early.Add(-step), 2*step
	}
	for late.Sub(early) > time.Second {
		if mid := early.Add(late.Sub(early) / 2).Truncate(time.Second); is(mid) {
			late = mid
		} else {
			early = mid
		}
	}
	return late, err
}

// renew generates the deltas of the sections that have changed in the period since their current
// delta, unless the current delta is too recent. from and to are the sequence numbers at the start
// and the end of the period. renew removes the deltas that must not be listed from current.
func (pl *plan) renew(ctx context.Context, p period, from, to uint64, since time.Time, current map[*section]*group) error {
	counts, newest := map[*section]int{}, map[*section]time.Time{}
	each := func(f func(c millrace.Change) error) error {
		for c, err := range pl.view.Changes(ctx, pl.site.At(from)) {
			switch {
			case err != nil:
				return err
			case c.Kind != millrace.Put || !c.Time.Before(p.end):
				continue
			}
			if err := f(c); err != nil {
				return err
			}
		}
		return nil
	}
	err := each(func(c millrace.Change) error {
		for _, s := range pl.in(c.URL) {
			counts[s]++
			if c.Time.After(newest[s]) {
				newest[s] = c.Time
			}
		}
		return nil
	})
	if errors.Is(err, millrace.ErrConflict) {
		clear(current) // the log no longer contains the period
		return nil
	}
	if err != nil {
		return err
	}
	open := map[*section]*collection{}
	defer func() {
		for _, c := range open {
			c.artifactWriter.Discard()
		}
	}()
	for _, s := range pl.sections {
		g := current[s]
		switch {
		case g != nil && !newest[s].After(g.At.Time):
			g.At = moment{to, pl.site.Time} // the section has not changed since the delta
			continue
		case counts[s] == 0:
			continue
		case counts[s]*2 <= s.pages && g != nil && pl.early(s, g):
			continue
		}
		if delete(current, s); counts[s]*2 > s.pages {
			continue
		}
		at := pl.generated(newest[s], &note{Section: s.name, Period: p.name()}, to)
		if s.snapshot != nil && newest[s].After(s.snapshot.At.Time) && !at.After(s.snapshot.Generated) {
			at = s.snapshot.Generated.Add(time.Second) // the delta must be newer than a snapshot generated in the same second
		}
		open[s], err = pl.start(&note{
			ID: s.name + "-delta-" + stamp(p.start) + "-" + stamp(at), Section: s.name, Period: p.name(), Since: since, Until: p.end,
			Generated: at, At: moment{pl.site.Seq, pl.site.Time},
		})
		if err != nil {
			return err
		}
	}
	if len(open) == 0 {
		return nil
	}
	var line []byte
	err = each(func(c millrace.Change) error {
		var to []*collection
		for _, s := range pl.in(c.URL) {
			if open[s] != nil {
				to = append(to, open[s])
			}
		}
		if len(to) == 0 {
			return nil
		}
		page, err := pl.view.Page(ctx, millrace.Ref{URL: c.URL})
		if errors.Is(err, millrace.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		w := pageOf(pl.site, page)
		if w == nil {
			return nil
		}
		line = appendPage(line[:0], w)
		for _, d := range to {
			if err := d.add(line); err != nil {
				return err
			}
			d.hold(c.URL)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range pl.sections {
		c := open[s]
		if c == nil || c.Pages == 0 {
			continue
		}
		if err := pl.finish(ctx, c); err != nil {
			return err
		}
		current[s] = &c.group
	}
	return nil
}

// keepReplaced keeps replaced collections for clients that are still reading them.
func (pl *plan) keepReplaced() {
	var over []*group
	for _, g := range pl.previous {
		if pl.used[g] || g.Key != pl.key || len(g.files) == 0 {
			continue
		}
		if g.Retired.IsZero() {
			g.Retired = pl.now
		}
		over = append(over, g)
	}
	slices.SortStableFunc(over, func(a, b *group) int { return b.Retired.Compare(a.Retired) })
	retained := map[string]int{}
	for _, g := range over {
		young := pl.now.Sub(g.Retired) < graceful
		if !young && (retained[g.Section] >= keepRetired || !pl.now.Before(g.Expires)) {
			continue
		}
		retained[g.Section]++
		_ = pl.keep(g)
	}
}
