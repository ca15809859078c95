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

// state is what the sink keeps for a source between runs, as its cursor.
type state struct {
	Cursor               millrace.Cursor `json:"cursor,omitempty"`
	UnconfirmedDeletions int             `json:"unconfirmed_deletions,omitempty"` // pages whose absence the last run did not believe
	Mismatch             uint64          `json:"mismatch,omitempty"`              // the pages that were of another version than named; see run.noteMismatch
}

func (s state) encode() millrace.Cursor {
	if s == (state{}) {
		return ""
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic("mirror: a string and a number do not encode: " + err.Error())
	}
	return millrace.Cursor(b)
}

func parseState(c millrace.Cursor) state {
	var s state
	if c == "" || json.Unmarshal([]byte(c), &s) != nil {
		return state{} // nothing, or nothing that we wrote: start over
	}
	return s
}

// settle ends a run whose stream has ended well: what the whole lists no
// longer name goes, if it is to be believed, and the cursor moves.
func (r *run) settle(ctx context.Context) error {
	if err := r.flush(ctx); err != nil {
		return err
	}
	if len(r.complete) == 0 || r.syncState == nil {
		return r.end(ctx, false)
	}
	r.seen.sort()
	held, lost := 0, 0
	for ref, err := range r.syncState.KnownRefs(ctx, r.from) {
		if err != nil {
			return err
		}
		if r.covers(ref) {
			held++
			if !r.seen.has(ref.URL) {
				lost++
			}
		}
	}
	if lost > 0 && sudden(lost, r.state.UnconfirmedDeletions, held) {
		r.report.UnconfirmedDeletions = lost
		r.o.Logger.Warn("many pages are missing from the source; keeping them until the next run finds the same",
			"source", r.from, "pages", held, "lost", lost)
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

// sudden reports whether a list has lost too much to be believed at once: a
// fifth of what is held, or everything that was left, beyond what the last run
// has doubted already. A loss that shrinks is doubted until it stops shrinking:
// a site that is being rebuilt is on its way back.
func sudden(lost, unconfirmed, held int) bool {
	return lost < unconfirmed || (lost-unconfirmed)*5 >= held || lost == held && unconfirmed < held
}

// covers reports whether a whole list of this run would name the ref.
func (r *run) covers(ref millrace.Ref) bool {
	return slices.ContainsFunc(r.complete, func(m millrace.Checkpoint) bool {
		return m.Section == "" || m.Section == ref.Section
	})
}

// end applies what is left, with the state for the next run.
func (r *run) end(ctx context.Context, unconfirmed bool) error {
	next := r.state // keep: a page is missing or odd, or the list is not believed
	switch {
	case unconfirmed:
		next.UnconfirmedDeletions = r.report.UnconfirmedDeletions
	case r.failed, !r.agreed():
		next.UnconfirmedDeletions, next.Mismatch = 0, r.mismatch
	case len(r.complete) > 0, r.mismatch != 0 && r.last != nil:
		next = state{Cursor: r.last.Cursor, Mismatch: r.mismatch}
	default: // marks that were not whole have been applied as they came
		return r.flush(ctx)
	}
	if next == r.state && len(r.batch.changes) == 0 {
		return nil
	}
	r.batch.changes = append(r.batch.changes, markChange(next))
	return r.flush(ctx)
}

// noteMismatch notes a page that came in another version than the source had named.
// The list may be newer than the page, from another replica or a cache: then
// the cursor must not move past the list, or the page would stay as it is for
// as long as the list does. A site whose pages never have the versions of its
// lists is believed when a second run finds exactly the same.
func (r *run) noteMismatch(url, named, got string) {
	if named == "" || got == "" || millrace.SameVersion(named, got) {
		return
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, url+"\x00"+named+"\x00"+got)
	r.mismatch += h.Sum64() // in any order
}

// agreed reports whether the cursor may pass the pages that are odd.
func (r *run) agreed() bool { return r.mismatch == 0 || r.mismatch == r.state.Mismatch }

// seen is the set of the URLs that a source has named, as 64-bit hashes under
// a random seed: 8 bytes a page, which is all the memory of a run that grows
// with the site. Two URLs of a million collide with probability 3e-8; then a
// deletion waits until another run.
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
