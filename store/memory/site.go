package memory

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/tidwall/btree"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// siteData is the data of one site.
type siteData struct {
	name        string
	base        string // base of the newest edition. If empty, there is no edition.
	log         *log
	sources     map[string]*source
	generations []*generation          // oldest first
	last        map[string]*generation // generations that published last, by name of the publication
	usage       *usage
}

// source is the sync state of one source.
type source struct {
	cursor millrace.Cursor
	refs   *btree.Map[string, record.Ref] // refs by the source's name for a page
}

// site is a site as seen by callers with one base.
type site struct {
	*siteData
	store *Store
	names record.Names
	lease store.Lease // lease that Apply requires; zero = not checked
	// ending records the result of a turn when a batch contains a checkpoint. If nil, there is no turn.
	ending func()
}

func (s *site) Fenced(l store.Lease) store.Site {
	fenced := *s
	fenced.lease = l
	return &fenced
}

func (s *site) Head(ctx context.Context) (millrace.View, error) {
	return get(ctx, s.store, "head of site "+s.name, func() (millrace.View, error) {
		v := &view{site: s, log: s.log, names: s.names, state: s.log.head()}
		return v, v.describe(s.names.Base)
	})
}

func (s *site) HeadCursor(ctx context.Context) (millrace.Cursor, error) {
	return get(ctx, s.store, "head of site "+s.name, func() (millrace.Cursor, error) {
		return millrace.Site{Epoch: s.log.epoch}.At(s.log.head().seq), nil
	})
}

// from returns a copy of the sync state of a source.
func (s *site) from(name string) *source {
	if src := s.sources[name]; src != nil {
		return &source{src.cursor, src.refs.Copy()}
	}
	return &source{refs: new(btree.Map[string, record.Ref])}
}

func (s *site) Cursor(ctx context.Context, from string) (millrace.Cursor, error) {
	return get(ctx, s.store, "cursor of "+from, func() (millrace.Cursor, error) { return s.from(from).cursor, nil })
}

func (s *site) KnownRefs(ctx context.Context, from string, urls ...string) iter.Seq2[millrace.Ref, error] {
	return list(ctx, s.store, "refs of "+from, func() (refs []millrace.Ref, _ error) {
		src := s.from(from)
		names := slices.Compact(slices.Sorted(slices.Values(urls)))
		if len(urls) == 0 {
			names = src.refs.Keys()
		}
		for _, name := range names {
			if r, ok := src.refs.Get(name); ok {
				refs = append(refs, millrace.Ref{URL: name, Version: r.Version, Location: r.Location, Section: r.Section})
			}
		}
		return refs, nil
	})
}

func (s *site) Original(ctx context.Context, from, url string) ([]byte, error) {
	return get(ctx, s.store, "original of "+url+" at "+from, func() ([]byte, error) {
		if r, _ := s.from(from).refs.Get(url); len(r.Original) > 0 {
			return bytes.Clone(r.Original), nil
		}
		return nil, millrace.ErrNotFound
	})
}

func (s *site) HTMLSizes(ctx context.Context, urls []string) ([]millrace.HTMLSize, error) {
	return get(ctx, s.store, "HTML sizes of site "+s.name, func() (all []millrace.HTMLSize, _ error) {
		for _, url := range urls {
			all = append(all, s.log.head().entry(s.names.Path(url)).HTMLSize)
		}
		return all, nil
	})
}

func (s *site) MeanHTMLSize(ctx context.Context) (mean millrace.HTMLSize, pages int64, err error) {
	mean, err = get(ctx, s.store, "mean HTML size of site "+s.name, func() (sum millrace.HTMLSize, _ error) {
		var received int64 // number of pages whose Received is known
		for _, e := range s.log.head().pages.Values() {
			pages += min(e.HTMLSize.Bytes, 1)
			received += min(e.HTMLSize.Received, 1)
			sum.Bytes += e.HTMLSize.Bytes
			sum.Received += e.HTMLSize.Received
		}
		return millrace.HTMLSize{Bytes: sum.Bytes / max(pages, 1), Received: sum.Received / max(received, 1)}, nil
	})
	return mean, pages, err
}

// Compact implements [store.Site]. Each view has its own state, so views stay complete.
func (s *site) Compact(ctx context.Context, keep, horizon time.Duration) error {
	return s.store.change(ctx, s.lease, "compact site "+s.name, func() error {
		now := s.store.now()
		logged, all := now.Add(-max(keep, horizon)), slices.Clone(s.generations)
		s.log.compact(s.log.head().seq, logged, now.Add(-record.DropAfter))
		s.generations = slices.DeleteFunc(s.generations, func(g *generation) bool {
			idle, last := now.Sub(g.opened), s.last[g.name] == g
			forked := slices.ContainsFunc(all, func(other *generation) bool { return other.log.continues(g.log) })
			g.dropped = idle > record.DropAfter || idle > record.DropForkedAfter && forked && !last
			if g.dropped && last {
				delete(s.last, g.name)
			} else if !g.dropped {
				g.compact(logged, now)
			}
			return g.dropped
		})
		return nil
	})
}

func (s *site) Apply(ctx context.Context, from string, batch []millrace.Change) (counts millrace.Counts, err error) {
	err = s.store.change(ctx, s.lease, fmt.Sprintf("apply %d changes to site %s", len(batch), s.name), func() error {
		if from == "" {
			return fmt.Errorf("%w: the source has no name", millrace.ErrInvalid)
		}
		now := s.store.now()
		tx := &transaction{s.siteData, s.from(from), s.log.begin()}
		if counts, err = record.Apply(ctx, tx, batch, s.names, now); err == nil {
			s.sources[from] = tx.source
			s.log.commit(tx.state, now)
			if s.ending != nil && record.HasCheckpoint(batch) {
				s.ending()
			}
		}
		return err
	})
	return counts, err
}

// transaction implements [record.Transaction].
type transaction struct {
	*siteData
	*source // state of the source after the transaction
	*state  // state of the log
}

func (t *transaction) Load(_, _ []string) error { return nil }

func (t *transaction) SetCursor(c millrace.Cursor) error {
	t.cursor = c
	return nil
}

func (t *transaction) UpdateRef(name string, f func(old record.Ref) (record.Ref, error)) error {
	old, _ := t.refs.Get(name)
	original := old.Original
	old.Original, old.KeepOriginal = nil, true
	r, err := f(old)
	if r.Original = bytes.Clone(r.Original); r.KeepOriginal {
		r.Original = original
	}
	if t.refs.Set(name, r); r.Path == "" {
		t.refs.Delete(name)
	}
	return err
}

func (t *transaction) Update(path string, f func(old record.Entry) (record.Entry, record.Outcome, error)) error {
	old := t.entry(path)
	e, out, err := f(old.Entry)
	switch out {
	case record.Amended:
		t.amend(old, e, nil)
	case record.Changed:
		t.enter(path, e, nil)
	}
	return err
}

func (t *transaction) Names(paths []string) (map[string][]string, error) {
	names := make(map[string][]string)
	t.refs.Scan(func(name string, r record.Ref) bool {
		if !r.Alias {
			names[r.Path] = append(names[r.Path], name)
		}
		return true
	})
	return names, nil
}

func (t *transaction) DeleteNames(paths []string) error {
	gone := make(map[string]bool)
	for _, path := range paths {
		gone[path] = true
	}
	for _, src := range append(slices.Collect(maps.Values(t.sources)), t.source) {
		src.refs.Copy().Scan(func(name string, r record.Ref) bool {
			if gone[r.Path] {
				src.refs.Delete(name)
			}
			return true
		})
	}
	return nil
}
