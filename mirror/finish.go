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

// state is the state of a source between runs. The sink stores it as its cursor.
type state struct {
	Cursor               millrace.Cursor `json:"cursor,omitempty"`
	UnconfirmedDeletions int             `json:"unconfirmed_deletions,omitempty"` // number of missing pages that the last run kept
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

// finish completes a run whose stream has ended without an error. It deletes the pages that are
// missing from the complete lists, unless the loss is suspiciously large, and advances the cursor.
func (r *run) finish(ctx context.Context) error {
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
		r.o.Logger.Warn("many pages are missing from the source; keeping them until the next run also misses them",
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

// sudden reports whether so many pages are missing from a list that the next run must confirm their
// deletion: at least a fifth of the stored pages, not counting those that the last run left
// unconfirmed, or all pages. If fewer pages are missing than in the last run, the loss stays
// unconfirmed, because the site is probably being rebuilt.
func sudden(lost, unconfirmed, total int) bool {
	return lost < unconfirmed || (lost-unconfirmed)*5 >= total || lost == total && unconfirmed < total
}

// covers reports whether a page with this ref, if it existed, would be in a complete list of this
// run.
func (r *run) covers(ref millrace.Ref) bool {
	return slices.ContainsFunc(r.complete, func(m millrace.Checkpoint) bool {
		return m.Section == "" || m.Section == ref.Section
	})
}

// end applies the remaining changes, and stores the state for the next run.
func (r *run) end(ctx context.Context, unconfirmed bool) error {
	next := r.state // keeps the cursor; used if a page is missing, a version differs, or deletions are unconfirmed
	switch {
	case unconfirmed:
		next.UnconfirmedDeletions = r.report.UnconfirmedDeletions
	case r.failed, !r.agreed():
		next.UnconfirmedDeletions, next.Mismatch = 0, r.mismatch
	case len(r.complete) > 0, r.mismatch != 0 && r.last != nil:
		next = state{Cursor: r.last.Cursor, Mismatch: r.mismatch}
	default: // incomplete checkpoints were applied earlier
		return r.flush(ctx)
	}
	if next == r.state && len(r.batch.changes) == 0 {
		return nil
	}
	r.batch.changes = append(r.batch.changes, markChange(next))
	return r.flush(ctx)
}

// noteMismatch records a page whose version differs from the one in the list. The list may be newer
// than the page if the two come from different replicas or caches. The cursor must not advance past
// such a list, because the old page would then stay until the list changes again. On some sites,
// the versions never match. Therefore the cursor advances if a second run finds exactly the same
// differences.
func (r *run) noteMismatch(url, named, got string) {
	if named == "" || got == "" || millrace.SameVersion(named, got) {
		return
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, url+"\x00"+named+"\x00"+got)
	r.mismatch += h.Sum64() // a sum does not depend on the order of the pages
}

// agreed reports whether the cursor may advance although versions differ from the list.
func (r *run) agreed() bool { return r.mismatch == 0 || r.mismatch == r.state.Mismatch }

// seen is the set of the URLs that a source has named. It contains a 64-bit hash with a random
// seed, 8 bytes, for each page. No other memory of a run grows with the site. The probability that
// any two of a million URLs collide is 3e-8. A collision delays a deletion to a later run.
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
