package scp

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"slices"

	"github.com/millrace/millrace"
)

// maxHolds is the maximum number of pages that are recorded for a delta.
const maxHolds = 4096

// purge withdraws all collections that may contain a removed page. The owner may have hidden the
// page, so it must not be served under an old name either. A client that is reading such a file
// starts over, as after any change of the sitemap. Deltas without the page remain. If a client
// lacks a delta, it reads the snapshot.
func (pl *plan) purge(ctx context.Context) error {
	if len(pl.previous) == 0 {
		return nil
	}
	since := pl.site.Seq
	for _, g := range pl.previous {
		if g.Clean == (moment{}) {
			g.Clean = g.At
		}
		since = min(since, g.Clean.Seq)
	}
	gone := map[*group]bool{}
	for c, err := range pl.view.Changes(ctx, pl.site.At(since)) {
		if errors.Is(err, millrace.ErrConflict) {
			// It is unknown which pages were removed.
			pl.previous = slices.DeleteFunc(pl.previous, pl.withdraw)
			return nil
		}
		if err != nil {
			return err
		}
		if c.Kind != millrace.Delete {
			continue
		}
		its := pl.in(c.URL)
		for _, g := range pl.previous {
			// The section may have been removed with its last page.
			in := slices.ContainsFunc(its, func(s *section) bool { return s.name == g.Section }) || pl.section(g.Section) == nil
			if in && c.Time.After(g.Clean.Time) && g.mayHold(c.URL) {
				gone[g] = true
			}
		}
	}
	pl.previous = slices.DeleteFunc(pl.previous, func(g *group) bool { return gone[g] && pl.withdraw(g) })
	for _, g := range pl.previous {
		g.Clean = moment{pl.site.Seq, pl.site.Time}
	}
	return nil
}

// withdraw withdraws the files of a collection and returns true.
func (pl *plan) withdraw(g *group) bool {
	reduced := g.note
	reduced.Holds = nil
	raw, _ := json.Marshal(reduced) // if this fails, only the order of collections is lost
	for _, f := range g.files {
		f.Note = raw
		pl.artifacts.Withdraw(f, g.Expires)
	}
	return true
}

// hold records a page of a delta. For more than maxHolds pages, nothing is recorded.
func (n *note) hold(url string) {
	if n.Pages <= maxHolds {
		n.Holds = append(n.Holds, holdOf(url))
	} else {
		n.Holds = nil
	}
}

// mayHold reports whether a collection may contain a page.
func (n *note) mayHold(url string) bool {
	if len(n.Holds) == 0 {
		return true
	}
	_, found := slices.BinarySearch(n.Holds, holdOf(url))
	return found
}

func holdOf(url string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(url)) // never fails
	return h.Sum32()
}
