package mirror

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"hash/maphash"
	"io"
	"slices"

	"github.com/millrace/millrace"
)

// state is what the sink stores for a source between runs, in its cursor.
type state struct {
	Cursor               millrace.Cursor `json:"cursor,omitempty"`
	UnconfirmedDeletions int             `json:"unconfirmed_deletions,omitempty"` // absent pages that the last run did not delete
	Mismatch             uint64          `json:"mismatch,omitempty"`              // hash of the pages whose version differed from the list; see run.noteMismatch
}

func (s state) encode() millrace.Cursor {
	if s == (state{}) {
		return ""
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic("mirror: cannot encode state: " + err.Error())
	}
	return millrace.Cursor(b)
}

func parseState(c millrace.Cursor) state {
	var s state
	if c == "" || json.Unmarshal([]byte(c), &s) != nil {
		return state{} // empty or unknown format: start over
	}
	return s
}

// settle ends a run whose stream has ended without an error. It deletes the pages that the
// complete lists no longer name, if the loss is credible, and advances the cursor.
func (r *run) settle(ctx context.Context) error {
	if err := r.flush(ctx); err != nil {
		return err
	}
	if len(r.complete) == 0 || r.syncState == nil {
		return r.end(ctx, false)
	}
	r.seen.sort()
	total, lost := 0, 0
	for ref, err := range r.syncState.KnownRefs(ctx, r.from) {
		if err != nil {
			return err
		}
		if r.covers(ref) {
			total++
			if !r.seen.has(ref.URL) {
				lost++
			}
		}
	}
	if lost > 0 && sudden(lost, r.state.UnconfirmedDeletions, total) {
		r.report.UnconfirmedDeletions = lost
		r.o.Logger.Warn("many pages are missing from the source; keeping them until the next run confirms it",
			"source", r.from, "pages", total, "lost", lost)
		return r.end(ctx, true)
	}
	if lost > 0 {
		for ref, err := range r.syncState.KnownRefs(ctx, r.from) {
			if err != nil {
				return err
			}
			if r.covers(ref) && !r.seen.has(ref.URL) {
				if err := r.put(ctx, millrace.Change{Kind: millrace.Delete, Ref: ref}); err != nil {
					return err
				}
			}
		}
	}
	return r.end(ctx, false)
}

// sudden reports whether a list has lost too many pages to delete them at once: a fifth of the
// stored ones, or all of them. Losses that were already unconfirmed in the last run are not
// included. While a loss shrinks, it remains unconfirmed, because the site is probably being
// rebuilt.
func sudden(lost, unconfirmed, total int) bool {
	return lost < unconfirmed || (lost-unconfirmed)*5 >= total || lost == total && unconfirmed < total
}

// covers reports whether a complete list of this run would name the ref.
func (r *run) covers(ref millrace.Ref) bool {
	return slices.ContainsFunc(r.complete, func(m millrace.Checkpoint) bool {
		return m.Section == "" || m.Section == ref.Section
	})
}

// end applies the remaining changes together with the state for the next run.
func (r *run) end(ctx context.Context, unconfirmed bool) error {
	next := r.state // keep the cursor, because a page is missing, its version differs, or the deletions are unconfirmed
	switch {
	case unconfirmed:
		next.UnconfirmedDeletions = r.report.UnconfirmedDeletions
	case r.failed, !r.agreed():
		next.UnconfirmedDeletions, next.Mismatch = 0, r.mismatch
	case len(r.complete) > 0, r.mismatch != 0 && r.last != nil:
		next = state{Cursor: r.last.Cursor, Mismatch: r.mismatch}
	default: // incomplete checkpoints have already been applied
		return r.flush(ctx)
	}
	if next == r.state && len(r.batch.changes) == 0 {
		return nil
	}
	r.batch.changes = append(r.batch.changes, markChange(next))
	return r.flush(ctx)
}

// noteMismatch records a page whose version differs from the one that the source named. The
// list may be newer than the page if they come from different replicas or caches. The cursor
// must not pass such a list, or the old page would remain until the list changes again. On
// some sites the versions never match. The cursor passes the list if a second run finds
// exactly the same differences.
func (r *run) noteMismatch(url, named, got string) {
	if named == "" || got == "" || millrace.SameVersion(named, got) {
		return
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, url+"\x00"+named+"\x00"+got)
	r.mismatch += h.Sum64() // independent of the order
}

// agreed reports whether the cursor may pass the pages whose version differs from the list.
func (r *run) agreed() bool { return r.mismatch == 0 || r.mismatch == r.state.Mismatch }

// seen is the set of the URLs that a source has named. It contains 64-bit hashes with a random
// seed, in 8 bytes per page. No other memory of a run grows with the site. Two of a million URLs
// collide with probability 3e-8, which delays a deletion to a later run.
type seen struct {
	seed   maphash.Seed
	ok     bool
	hashes []uint64
}

func (s *seen) add(url string) {
	if !s.ok {
		s.seed, s.ok = maphash.MakeSeed(), true
	}
	s.hashes = append(s.hashes, maphash.String(s.seed, url))
}

func (s *seen) sort() { slices.Sort(s.hashes) }

func (s *seen) has(url string) bool {
	if !s.ok {
		return false
	}
	_, ok := slices.BinarySearch(s.hashes, maphash.String(s.seed, url))
	return ok
}
