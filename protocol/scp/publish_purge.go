package scp

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"slices"

	"github.com/millrace/millrace"
)

const (
	maxHolds  = 4096 // pages of a delta that are noted
	maxRemade = 24   // periods, beside the last two, whose deltas are made again at once
)

// purge lets go of every collection that may hold a page which is gone: somebody
// may have hidden it, and then it must not be had by an old name either. Who is
// reading such a file begins again, as after any change of the sitemap. Deltas
// that do not have the page stay, and the others are made again without it.
func (pl *plan) purge(ctx context.Context) error {
	if len(pl.held) == 0 {
		return nil
	}
	since := pl.site.Seq
	for _, g := range pl.held {
		if g.Clean == (moment{}) {
			g.Clean = g.At
		}
		since = min(since, g.Clean.Seq)
	}
	gone := map[*group]int{} // how many of its pages may be
	for c, err := range pl.view.Changes(ctx, pl.site.At(since)) {
		if errors.Is(err, millrace.ErrConflict) {
			// What is gone is not known.
			pl.held = slices.DeleteFunc(pl.held, pl.withdraw)
			return nil
		}
		if err != nil {
			return err
		}
		if c.Kind != millrace.Delete {
			continue
		}
		its := pl.in(c.URL)
		for _, g := range pl.held {
			// A section may be gone with its last page.
			in := slices.ContainsFunc(its, func(s *section) bool { return s.name == g.Section }) || pl.section(g.Section) == nil
			if in && c.Time.After(g.Clean.Time) && g.mayHold(c.URL) {
				gone[g]++
			}
		}
	}
	var after []*group
	for g, n := range gone {
		// The delta after one that will not be there again has to begin where that
		// has begun.
		if next := pl.next(g); next != nil && n >= len(g.Holds) && gone[next] == 0 {
			after = append(after, next)
		}
	}
	pl.held = slices.DeleteFunc(pl.held, func(g *group) bool {
		drop := gone[g] > 0 || slices.Contains(after, g)
		if drop && g.delta() && pl.valid(g) {
			pl.purged = append(pl.purged, g)
		}
		return drop && pl.withdraw(g)
	})
	for _, g := range pl.held {
		g.Clean = moment{pl.site.Seq, pl.site.Time}
	}
	return nil
}

// withdraw takes the files of a collection away.
func (pl *plan) withdraw(g *group) bool {
	bare := g.note
	bare.Holds = nil
	raw, _ := json.Marshal(bare) // without it, only the order of collections is not known
	for _, f := range g.files {
		f.Note = raw
		pl.shelf.Withdraw(f, g.Expires)
	}
	return true
}

// next gives the delta of the first period after that of another, nil for none.
func (pl *plan) next(g *group) (next *group) {
	for _, n := range pl.held {
		if g.delta() && n.delta() && n.Section == g.Section && pl.valid(n) && n.Until.After(g.Until) && (next == nil || n.Until.Before(next.Until)) {
			next = n
		}
	}
	return next
}

// torn gives the periods, before the last two, of deltas that were purged, the
// newest ones.
func (pl *plan) torn() (out []period) {
	for _, g := range pl.purged {
		for _, frequency := range []string{hourly, daily, weekly, monthly} {
			p := periodOf(frequency, g.Until.Add(-1))
			if p.name() == g.Period && p.end.Equal(g.Until) && p.end.Before(pl.period.start) && !slices.Contains(out, p) && !pl.outlived(g) {
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, func(a, b period) int { return b.end.Compare(a.end) })
	return out[:min(len(out), maxRemade)]
}

// hold notes that a delta has a page.
func (n *note) hold(url string) {
	if n.Pages <= maxHolds {
		n.Holds = append(n.Holds, holdOf(url))
	} else {
		n.Holds = nil
	}
}

// mayHold reports whether a collection may have a page, as far as is known.
func (n *note) mayHold(url string) bool {
	if len(n.Holds) == 0 {
		return true
	}
	_, found := slices.BinarySearch(n.Holds, holdOf(url))
	return found
}

func holdOf(url string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(url)) // a hash takes everything
	return h.Sum32()
}
