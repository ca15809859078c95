package wordpress

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/millrace/millrace"
)

// overlap is subtracted from the newest known date. The list of modified items starts at the
// resulting time.
const overlap = 2 * time.Second

// Changes yields the changes since a cursor. The first run yields every page. It yields a
// checkpoint after each part of the lists, and can resume there. A later run yields the modified
// pages of each type that has changed, and names the other pages of this type. It ends with
// complete checkpoints: one for the whole site, or one for each type whose pages were all named. If
// nothing has changed, it ends with an incomplete checkpoint with the same cursor.
//
// In addition to the errors of [millrace.Source], it returns [millrace.ErrNotFound] if the
// site has no API, and [millrace.ErrForbidden] if the API is closed.
func (s *Site) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		r := &run{Site: s, yield: yield, seed: maphash.MakeSeed()}
		if err := r.do(ctx, since); err != nil && !errors.Is(err, errStop) {
			yield(millrace.Change{}, fmt.Errorf("wordpress %s: %w", s.root, err))
		}
	}
}

// errStop ends a run whose consumer has stopped the stream.
var errStop = errors.New("stopped")

// run is one stream.
type run struct {
	*Site
	f        *site
	yield    func(millrace.Change, error) bool
	is       cursor
	settled  []string // types whose items were all named, and deleted types
	closed   []string // types in the API whose items are not pages
	unlisted bool     // a type was not listed, because it is unchanged or its list failed; its stored pages are kept

	broken bool // an item of the current type is unavailable

	seed maphash.Seed
	done []uint64 // hashes of the URL and the version of each page that was yielded
}

func (r *run) do(ctx context.Context, since millrace.Cursor) error {
	was, err := r.parseCursor(since)
	if err != nil {
		return err
	}
	if r.f, err = r.load(ctx, was); err != nil {
		return err
	}
	r.is = cursor{Root: was.Root, API: r.f.api.String(), Home: r.f.home.String(), Rules: r.f.rules, Types: map[string]typeState{}}
	again := was.Rules != r.f.rules
	if !again {
		r.is.Mapped, r.is.Scanned = was.Mapped, was.Scanned
	}
	for slug, st := range was.Types {
		if again { // all pages are yielded again, so deletions are known only afterwards
			st = typeState{Open: true}
		}
		r.is.Types[slug] = st
	}
	for _, t := range r.f.types {
		if err := r.follow(ctx, t); err != nil {
			return err
		}
	}
	for _, slug := range slices.Sorted(maps.Keys(was.Types)) { // a deleted type loses all of its pages
		if !slices.ContainsFunc(r.f.types, func(t postType) bool { return t.slug == slug }) {
			r.settled = append(r.settled, slug)
			delete(r.is.Types, slug)
		}
	}
	if err := r.reportUnread(ctx); err != nil {
		return err
	}
	return r.end()
}

// load fetches the properties of the site.
func (s *Site) load(ctx context.Context, was cursor) (*site, error) {
	f, err := s.discover(ctx, s.root, false, was)
	if err != nil {
		return nil, err
	}
	if f.types, err = s.askTypes(ctx, f); err != nil {
		return nil, err
	}
	s.known.Store(f)
	s.log.DebugContext(ctx, "found WordPress REST API", "site", s.root, "url", f.api, "types", len(f.types))
	return f, nil
}

// follow yields the changes of one type.
func (r *run) follow(ctx context.Context, t postType) error {
	r.done, r.broken = r.done[:0], false
	was, known := r.is.Types[t.slug]
	now, err := r.start(ctx, r.f, t)
	if errors.Is(err, millrace.ErrForbidden) || errors.Is(err, millrace.ErrNotFound) ||
		!t.builtin() && (errors.Is(err, millrace.ErrInvalid) || isStatus(err, http.StatusInternalServerError)) {
		// The type is in the API, but its items are not public, or its plugin uses an interface of
		// its own.
		r.unlisted = true
		return r.skip(r.f.route(t.route, nil), err, false)
	}
	if err != nil {
		return err
	}
	if known && now.state.settled(was) {
		r.unlisted = true
		return nil
	}
	if open, err := r.public(ctx, t, now); err != nil || !open {
		if known {
			r.settled = append(r.settled, t.slug)
		}
		r.log.DebugContext(ctx, "type has no public pages", "site", r.root, "type", t.slug)
		delete(r.is.Types, t.slug)
		r.closed = append(r.closed, t.slug)
		return err
	}
	switch {
	case !known, was.Open && was.After == 0:
		if err := r.all(ctx, t, typeState{Open: true}); err != nil {
			return err
		}
	case was.Open:
		if err := r.all(ctx, t, was); err != nil {
			return err
		}
		err = r.names(ctx, t, now)
	default:
		if err := r.modified(ctx, t, was, now); err != nil {
			return err
		}
		err = r.names(ctx, t, now)
	}
	if r.broken { // the next run fetches the type again
		now.state.State = ""
	}
	r.is.Types[t.slug] = now.state
	r.settled = append(r.settled, t.slug)
	return err
}

// all yields the pages of a type, starting at a position in the list.
func (r *run) all(ctx context.Context, t postType, from typeState) error {
	l := &lister{s: r.Site, f: r.f, t: t, full: true, after: from.After, offset: from.Offset}
	return l.run(ctx, func(p part) error {
		if err := r.pages(ctx, t, p); err != nil || !p.more {
			return err
		}
		r.is.Types[t.slug] = typeState{Open: true, After: l.after, Offset: l.offset}
		return r.mark(r.unsettled(), false, "")
	})
}

// modified yields the pages of a type that were modified since the last listing.
func (r *run) modified(ctx context.Context, t postType, was typeState, now typeScan) error {
	newest := readTime(was.Newest)
	if now.state.Newest <= was.Newest || newest.IsZero() {
		return nil
	}
	l := &lister{s: r.Site, f: r.f, t: t, full: true, since: newest.Add(-overlap).Format(time.RFC3339)}
	return l.run(ctx, func(p part) error { return r.pages(ctx, t, p) })
}

// pages yields the pages of items.
func (r *run) pages(ctx context.Context, t postType, p part) error {
	for _, it := range p.items {
		at, err := r.underRoot(r.f, it.Link)
		switch {
		case err != nil:
			err = r.skip(it.Link, err, true)
		case it.closed():
			// The site reports that the item has a password. This is more reliable than the absence
			// of the item from a list, so it needs no confirmation.
			if err = r.skip(at, fmt.Errorf("%w: password required", millrace.ErrForbidden), true); err == nil {
				err = r.send(millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: at, Section: t.slug}})
			}
		case it.hidden():
			continue
		case p.broken != nil:
			r.broken = true
			err = r.skip(at, p.broken, false)
		default:
			err = r.put(ctx, t, it, at, p.date)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// put yields the page of one item.
func (r *run) put(ctx context.Context, t postType, it item, at string, date time.Time) error {
	p, err := r.convert(ctx, r.f, t, it, at)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.broken = true
		return r.skip(at, err, false)
	}
	ref := r.f.ref(t, it, at, date)
	p.Version = ref.Version
	r.done = append(r.done, r.hash(ref))
	if p.Known == 0 {
		if err := r.skip(at, errEmpty, true); err != nil {
			return err
		}
	}
	return r.send(millrace.Change{Kind: millrace.Put, Ref: ref, Page: p})
}

// names yields the items of a type without their pages. It skips items whose pages were already
// yielded.
func (r *run) names(ctx context.Context, t postType, now typeScan) error {
	slices.Sort(r.done)
	take := func(p part) error {
		for _, it := range p.items {
			at, err := r.underRoot(r.f, it.Link)
			if err != nil || it.hidden() {
				continue
			}
			ref := r.f.ref(t, it, at, p.date)
			if _, ok := slices.BinarySearch(r.done, r.hash(ref)); ok {
				continue
			}
			if err := r.send(millrace.Change{Kind: millrace.Put, Ref: ref}); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	var err error
	if now.complete {
		err = take(now.part)
	} else {
		l := &lister{s: r.Site, f: r.f, t: t}
		err = l.run(ctx, take)
	}
	return err
}

// end yields the checkpoints. A run can resume at each of them. Therefore the cursor marks a type
// as settled only in the checkpoint of this type.
func (r *run) end() error {
	switch {
	case len(r.settled) == 0:
		return r.mark(r.is, false, "")
	case !r.unlisted:
		return r.mark(r.is, true, "")
	}
	so := r.unsettled()
	for _, slug := range r.settled {
		if st, ok := r.is.Types[slug]; ok {
			so.Types[slug] = st
		} else {
			delete(so.Types, slug)
		}
		if err := r.mark(so, true, slug); err != nil {
			return err
		}
	}
	return nil
}

// unsettled returns the cursor for a checkpoint before the complete ones. It does not mark types as
// settled, because their deletions have not been applied yet.
func (r *run) unsettled() cursor {
	so := r.is
	so.Types = maps.Clone(r.is.Types)
	for _, slug := range r.settled {
		st := r.is.Types[slug]
		st.State = ""
		so.Types[slug] = st
	}
	return so
}

func (r *run) mark(c cursor, complete bool, section string) error {
	return r.send(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: c.encode(), Complete: complete, Section: section}})
}

func (r *run) skip(at string, why error, absent bool) error {
	if !r.yield(millrace.Change{}, &millrace.SkipError{URL: at, Err: why, Absent: absent}) {
		return errStop
	}
	return nil
}

func (r *run) send(c millrace.Change) error {
	if !r.yield(c, nil) {
		return errStop
	}
	return nil
}

func (r *run) hash(ref millrace.Ref) uint64 {
	return maphash.String(r.seed, ref.URL+"\x00"+ref.Version)
}
