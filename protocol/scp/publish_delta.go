package scp

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/millrace/millrace"
)

// How long deltas are kept after the end of their period, and how many
// collections that have been replaced stay for those who are reading them.
const (
	keepDeltas    = 7 * 24 * time.Hour
	keepPeriods   = 8
	longestPeriod = 31 * 24 * time.Hour
	keepRetired   = 8               // of a section, until they expire
	graceful      = 5 * time.Minute // all of them
)

// deltas lists the deltas of every section: those of periods that are over as
// they were, and that of the present one as it is now. A delta that would hold
// more than half of its section is left out: the snapshot is the shorter way.
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
	for _, g := range pl.held {
		s := pl.section(g.Section)
		if pl.used[g] || !pl.valid(g) || !g.delta() || s == nil || pl.outlived(g) || g.Until.After(now.start) || pl.replaced(s, g) {
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

// valid reports whether a held collection can be listed at all.
func (pl *plan) valid(g *group) bool {
	return g.Key == pl.key && g.Retired.IsZero() && len(g.files) == len(codings)
}

// outlived reports whether a delta is too old to be listed.
func (pl *plan) outlived(g *group) bool {
	return pl.now.After(g.Until.Add(max(keepDeltas, keepPeriods*min(longestPeriod, g.Until.Sub(g.Since)))))
}

// replaced reports whether another delta of the same period is listed.
func (pl *plan) replaced(s *section, g *group) bool {
	return slices.ContainsFunc(s.listed, func(l *group) bool { return l.delta() && l.Period == g.Period })
}

// deltasOf lists the deltas of one period, and makes those that are not
// complete.
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
		return nil // nothing has happened, or so much that a snapshot is the shorter way
	}
	held := map[*section]*group{}
	for _, g := range pl.held {
		if s := pl.section(g.Section); s != nil && pl.valid(g) && g.Period == p.name() && (held[s] == nil || g.Generated.After(held[s].Generated)) {
			held[s] = g
		}
	}
	if g := held[all]; g == nil || g.At.Seq < to {
		since, err := pl.quiet(ctx, p.start, from)
		if err != nil {
			return err
		}
		if err := pl.renew(ctx, p, from, since, held); err != nil {
			return err
		}
	}
	for _, s := range pl.sections {
		if g := held[s]; g != nil {
			if g.At.Seq < pl.site.Seq && g.At.Seq < to {
				g.At = moment{min(to, pl.site.Seq), pl.site.Time} // no change since then was in the section
			}
			if err := pl.list(s, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// quiet returns the earliest time, in whole seconds, since which no page was added
// or changed until the start of a period; from is the sequence number there. A
// client with the files of that time has the state at the start of the period, so
// that its delta follows. Deletions do not count, because no delta lists them.
func (pl *plan) quiet(ctx context.Context, start time.Time, from uint64) (time.Time, error) {
	since := start
	for range maxGone {
		t, err := pl.still(ctx, since, from)
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
				return since, nil // the log does not reach back so far
			}
			if err != nil || c.Kind == millrace.Put && c.Time.Before(start) {
				return since, err
			}
		}
		from = before
	}
	return since, nil
}

// maxGone is how many times that pages have gone at are passed over.
const maxGone = 100

// still gives the time, in whole seconds, from which on nothing has changed until
// another: that of the last change before it, which has the sequence number from.
func (pl *plan) still(ctx context.Context, start time.Time, from uint64) (time.Time, error) {
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

// renew makes the deltas of a period whose sections have changed since they
// were made, and takes away those that are not whole any more.
func (pl *plan) renew(ctx context.Context, p period, from uint64, since time.Time, held map[*section]*group) error {
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
		clear(held) // the log does not reach back so far
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
		g := held[s]
		if counts[s] == 0 || g != nil && !newest[s].After(g.At.Time) {
			continue
		}
		if delete(held, s); counts[s]*2 > s.pages {
			continue
		}
		at := pl.generated(newest[s], &note{Section: s.name, Period: p.name()})
		if s.snapshot != nil && newest[s].After(s.snapshot.At.Time) && !at.After(s.snapshot.Generated) {
			at = s.snapshot.Generated.Add(time.Second) // it says more than the snapshot of the same second
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
		held[s] = &c.group
	}
	return nil
}

// retire keeps what is not listed any more for those who are reading it.
func (pl *plan) retire() {
	var over []*group
	for _, g := range pl.held {
		if pl.used[g] || g.Key != pl.key || len(g.files) == 0 {
			continue
		}
		if g.Retired.IsZero() {
			g.Retired = pl.now
		}
		over = append(over, g)
	}
	slices.SortStableFunc(over, func(a, b *group) int { return b.Retired.Compare(a.Retired) })
	kept := map[string]int{}
	for _, g := range over {
		young := pl.now.Sub(g.Retired) < graceful
		if !young && (kept[g.Section] >= keepRetired || !pl.now.Before(g.Expires)) {
			continue
		}
		kept[g.Section]++
		_ = pl.keep(g)
	}
}
