package web

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
)

// Limits of a feed.
const (
	maxFeed        = 10 << 20 // maximum number of bytes of one document
	maxFeedEntries = 20_000   // maximum number of entries of all documents
	maxFeedNodes   = 200_000  // maximum number of XML elements of one Atom document
	maxFeedPages   = 20       // maximum number of documents
	feedTypes      = atomType + ", " + jsonFeedType + ", application/json;q=0.5, */*;q=0.1"
)

// feedRead contains the entries that were read from a feed.
type feedRead struct {
	url string
	fetch.Validators
	entries    []feedEntry // entries of the site's pages, in the order of the feed
	gone       []feedEntry
	tombstones bool                 // whether all of its documents report deletions
	lost       bool                 // whether a deletion does not identify its page
	newest     time.Time            // time of the newest entry
	oldest     time.Time            // time of the oldest entry of an existing page; deletions may be older
	named      map[string]bool      // URLs in the feed; the value is false if the page is only listed as deleted
	missed     int                  // number of pages that have changed according to the sitemaps but not according to the feed
	seen       map[string]time.Time // pages in the feed and in the sitemaps, with their times in the sitemaps
}

// loadFeed reads a feed back to a time, starting at its first document. It requests that document
// conditionally if v contains validators.
func (r *run) loadFeed(ctx context.Context, st *feedState, v fetch.Validators, until time.Time) (*feedRead, error) {
	fr := newFeed(st.URL)
	next := st.URL
	for n := 0; next != "" && n < maxFeedPages && len(fr.entries)+len(fr.gone) < maxFeedEntries; n++ {
		doc, val, err := r.feedDocument(ctx, next, v)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			fr.Validators, fr.newest = val, doc.Updated
		}
		fr.take(r, doc)
		v, next = fetch.Validators{}, doc.Next
		if fr.reaches(until) || next != "" && r.here(next) == "" {
			break
		}
	}
	return fr, nil
}

func newFeed(at string) *feedRead {
	return &feedRead{url: at, tombstones: true, named: map[string]bool{}, seen: map[string]time.Time{}}
}

// feedDocument fetches one document of a feed.
func (r *run) feedDocument(ctx context.Context, at string, v fetch.Validators) (*feedDoc, fetch.Validators, error) {
	body, resp, err := r.Read(ctx, "feed", at, feedTypes, v, maxFeed) //nolint:bodyclose // Read has closed it
	if err != nil {
		return nil, v, err
	}
	doc, err := decodeFeed(body, resp.Request.URL)
	if err != nil {
		return nil, v, kit.FormatURL(err, at)
	}
	return doc, fetch.ValidatorsOf(resp), nil
}

// take adds the entries of one document of the feed.
func (fr *feedRead) take(r *run, doc *feedDoc) {
	fr.tombstones = fr.tombstones && doc.Tombstones
	for _, e := range doc.Entries {
		if e.Updated.IsZero() {
			fr.tombstones = false // a change without a time could be missed
			continue
		}
		if fr.newest.Before(e.Updated) {
			fr.newest = e.Updated
		}
		if !e.Gone && (fr.oldest.IsZero() || e.Updated.Before(fr.oldest)) {
			fr.oldest = e.Updated
		}
		u, err := canon.URL(e.URL)
		switch {
		case e.Gone && (err != nil || r.here(u) == ""):
			fr.lost = true
		case e.Gone:
			e.URL = u
			fr.gone = append(fr.gone, e)
			if _, again := fr.named[u]; !again {
				fr.named[u] = false
			}
		case err == nil && r.here(u) != "":
			e.URL = u
			fr.entries = append(fr.entries, e)
			fr.named[u] = true
		}
	}
}

// reaches reports whether the feed reaches back to a time.
func (fr *feedRead) reaches(t time.Time) bool { return !fr.oldest.IsZero() && !fr.oldest.After(t) }

// compare records whether the feed lists a page that, according to a sitemap, has changed since the
// feed's oldest entry or has no date.
func (fr *feedRead) compare(u string, modified time.Time) {
	since := modified.IsZero() || modified.After(fr.oldest) && !modified.After(fr.newest)
	there, listed := fr.named[u]
	if listed {
		fr.seen[u] = modified
	}
	if since && !fr.oldest.IsZero() && !there {
		fr.missed++
	}
}

// putUnseen handles the entries, in a feed with deletions, of pages that are in no sitemap. It
// yields the changed pages, which may be in an unknown sitemap, and the deletions.
func (r *run) putUnseen() error {
	if r.feed == nil || !r.feed.tombstones {
		return nil
	}
	for i := range r.feed.entries {
		e := &r.feed.entries[i]
		if _, ok := r.feed.seen[e.URL]; ok {
			continue
		}
		if err := r.put(e.URL, "", stateOf(e.Modified), e.Updated); err != nil {
			return err
		}
	}
	for i := range r.feed.gone {
		e := &r.feed.gone[i]
		if _, ok := r.feed.seen[e.URL]; ok || r.feed.named[e.URL] {
			continue
		}
		if err := r.Send(millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: e.URL}, Time: e.Updated}, nil); err != nil {
			return err
		}
	}
	return nil
}

// ahead returns a hash of the pages that are newer in the feed than in the sitemaps, or 0 if there
// are none. If there are any, the sitemaps came from an outdated replica.
func (fr *feedRead) ahead() (mismatch uint64) {
	note := func(e *feedEntry) {
		h := fnv.New64a()
		_, _ = io.WriteString(h, e.URL+"\x00"+stateOf(e.Updated))
		mismatch += h.Sum64() // independent of the order
	}
	for i := range fr.entries {
		e := &fr.entries[i]
		if modified, ok := fr.seen[e.URL]; !ok || e.Modified.After(modified) {
			note(e)
		}
	}
	for i := range fr.gone {
		e := &fr.gone[i]
		if _, ok := fr.seen[e.URL]; ok && !fr.named[e.URL] {
			note(e)
		}
	}
	return mismatch
}

// state returns the state of the feed for the cursor.
func (fr *feedRead) state(trusted bool) *feedState {
	st := &feedState{URL: fr.url, Validators: fr.Validators, Trusted: trusted && fr.tombstones, Since: fr.newest}
	var marks strings.Builder
	for _, e := range fr.entries {
		if e.Updated.Equal(fr.newest) {
			marks.WriteString(e.mark())
		}
	}
	if marks.Len() <= maxMarks*markLen {
		st.Top = marks.String()
	}
	return st
}

// Marks distinguish the entries with the time of the newest entry, unless there are too many.
const (
	markLen  = 8
	maxMarks = 2000
)

// mark returns a short string that identifies an entry.
func (e *feedEntry) mark() string {
	sum := sha256.Sum256([]byte(e.ID))
	return base64.RawURLEncoding.EncodeToString(sum[:markLen*6/8])
}

// readFeed reads the feed before the sitemaps, because the next feed contains the changes that are
// made while the sitemaps are read.
func (r *run) readFeed(ctx context.Context) error {
	if r.is.Feed == nil || r.feed != nil {
		return nil
	}
	fr, err := r.loadFeed(ctx, r.is.Feed, fetch.Validators{}, r.o.Now())
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		r.feed = fr
	case errors.Is(err, millrace.ErrInvalid):
		r.Note("reader/feed", r.is.Feed.URL, err.Error())
		fallthrough
	default:
		r.is.Feed = &feedState{URL: r.is.Feed.URL} // the sitemaps also contain all changes in the feed
	}
	return nil
}

// verifies reports whether all sitemaps must be read, although none has changed, to verify a feed
// with deletions: if the feed does not reach back far enough, and once a day.
func (r *run) verifies(ctx context.Context) (bool, error) {
	if r.feed == nil && (!r.fresh || r.is.Feed == nil) {
		return false, nil
	}
	if err := r.readFeed(ctx); err != nil {
		return false, err
	}
	if r.feed == nil || r.feed.tombstones {
		return r.feed != nil, nil
	}
	r.is.Feed = r.feed.state(false)
	r.feed = nil // a feed without deletions, such as one of posts, cannot replace the sitemaps
	return false, nil
}

// trust decides whether the feed may replace the sitemaps. All sitemaps must have been read.
func (r *run) trust() {
	if r.feed == nil {
		return
	}
	if r.feed.missed > 0 && r.feed.tombstones {
		r.Note("reader/feed-changes", r.feed.url, fmt.Sprintf("the feed does not list %d pages that have or may have changed since its oldest entry, according to the sitemaps", r.feed.missed))
	}
	r.is.Feed = r.feed.state(r.feed.missed == 0)
}

// catchUp yields the changes in the feed. If the feed is not sufficient, the error is errFullRead.
func (r *run) catchUp(ctx context.Context) error {
	st := r.is.Feed
	fr, err := r.loadFeed(ctx, st, st.Validators, st.Since)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, millrace.ErrUnmodified):
		return nil
	case err != nil:
		if errors.Is(err, millrace.ErrInvalid) {
			r.Note("reader/feed", st.URL, err.Error())
		}
		r.is.Feed = &feedState{URL: st.URL}
		return errFullRead
	}
	r.feed = fr
	if !fr.tombstones || fr.lost || !fr.reaches(st.Since) {
		return errFullRead
	}
	there := map[string]time.Time{}
	for _, e := range fr.entries {
		if t, ok := there[e.URL]; !ok || e.Updated.After(t) {
			there[e.URL] = e.Updated
		}
	}
	for _, e := range fr.gone {
		if e.Updated.Before(st.Since) {
			continue
		}
		if t, again := there[e.URL]; again && !t.Before(e.Updated) {
			continue
		}
		if err := r.Send(millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: e.URL}, Time: e.Updated}, nil); err != nil {
			return err
		}
	}
	done := map[string]bool{}
	for _, e := range fr.since(st) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if done[e.URL] {
			continue
		}
		done[e.URL] = true
		if e.Alternate != "" {
			r.hinted.Add(e.URL, e.Alternate)
		}
		state := stateOf(e.Modified)
		if state == "" {
			state = fromFeed + stateOf(e.Updated)
		}
		if err := r.put(e.URL, "", state, e.Updated); err != nil {
			return err
		}
	}
	mismatch, err := r.awaitPages()
	if err != nil {
		return err
	}
	if r.is.Mismatch = mismatch; mismatch != 0 && mismatch != r.was.Mismatch {
		r.is.Feed = &feedState{URL: st.URL, Trusted: true, Since: st.Since, Top: st.Top} // fetch the feed again in the next run
		return nil
	}
	r.is.Feed = fr.state(true)
	return nil
}

// fromFeed marks a state whose time comes from the feed entry of a page, and not from the page
// itself.
const fromFeed = "heard "

// since returns the entries that are newer than a state of the feed. An entry with the time of the
// newest entries of that state is newer if the state has no mark for the entry.
func (fr *feedRead) since(st *feedState) (out []feedEntry) {
	known := map[string]bool{}
	for i := 0; i+markLen <= len(st.Top); i += markLen {
		known[st.Top[i:i+markLen]] = true
	}
	for _, e := range fr.entries {
		if e.Updated.After(st.Since) || e.Updated.Equal(st.Since) && !known[e.mark()] {
			out = append(out, e)
		}
	}
	return out
}
