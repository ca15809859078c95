package memory

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// siteData is what the store has of one site.
type siteData struct {
	name        string
	base        string // of the newest edition, "" if the site has none
	log         *log
	sources     map[string]*source
	weights     map[string]millrace.Weight // by identity
	generations []*generation              // the oldest first
	last        map[string]*generation     // that published last, by the name of the publication
	usage       *usage
}

// source is what the site remembers of one source.
type source struct {
	cursor millrace.Cursor
	refs   map[string]ref // by the source's name for a page, as stored
}

// ref is what the site remembers of one name.
type ref struct {
	identity                   string // of the page
	alias                      bool   // the page came with an empty Known
	version, location, section string
	original                   []byte
}

// site is a site for callers with one base.
type site struct {
	*siteData
	store *Store
	names record.Names
	lease store.Lease // that Apply needs
}

func (s *site) Fenced(l store.Lease) store.Site {
	fenced := *s
	fenced.lease = l
	return &fenced
}

func (s *site) Head(ctx context.Context) (millrace.View, error) {
	return get(ctx, s.store, "head of site "+s.name, func() (millrace.View, error) {
		v := &view{site: s, log: s.log, names: s.names}
		v.describe(s.log.seq, s.names.Base)
		return v, nil
	})
}

// from returns what the site remembers of a source.
func (s *site) from(name string) *source {
	if src := s.sources[name]; src != nil {
		return src
	}
	return new(source)
}

func (s *site) Cursor(ctx context.Context, from string) (millrace.Cursor, error) {
	return get(ctx, s.store, "cursor of "+from, func() (millrace.Cursor, error) { return s.from(from).cursor, nil })
}

func (s *site) Held(ctx context.Context, from string, urls ...string) iter.Seq2[millrace.Ref, error] {
	return list(ctx, s.store, "refs of "+from, func() (refs []millrace.Ref, _ error) {
		src, urls := s.from(from), slices.Clone(urls)
		if len(urls) == 0 {
			for name := range src.refs {
				urls = append(urls, name)
			}
		}
		slices.Sort(urls)
		for _, url := range slices.Compact(urls) {
			if r, ok := src.refs[url]; ok {
				refs = append(refs, millrace.Ref{URL: url, Version: r.version, Location: r.location, Section: r.section})
			}
		}
		return refs, nil
	})
}

func (s *site) Original(ctx context.Context, from, url string) ([]byte, error) {
	return get(ctx, s.store, "original of "+url+" at "+from, func() ([]byte, error) {
		if original := s.from(from).refs[url].original; original != nil {
			return bytes.Clone(original), nil
		}
		return nil, millrace.ErrNotFound
	})
}

func (s *site) Weights(ctx context.Context, urls []string) ([]millrace.Weight, error) {
	return get(ctx, s.store, "weights of site "+s.name, func() (all []millrace.Weight, _ error) {
		for _, url := range urls {
			all = append(all, s.weights[s.names.Identity(url)])
		}
		return all, nil
	})
}

func (s *site) MeanWeight(ctx context.Context) (mean millrace.Weight, pages int64, err error) {
	mean, err = get(ctx, s.store, "mean weight of site "+s.name, func() (sum millrace.Weight, _ error) {
		var received int64 // pages whose Received is known
		for _, w := range s.weights {
			pages++
			sum.Bytes += w.Bytes
			if w.Received > 0 {
				received++
				sum.Received += w.Received
			}
		}
		return millrace.Weight{Bytes: sum.Bytes / max(pages, 1), Received: sum.Received / max(received, 1)}, nil
	})
	return mean, pages, err
}

// How long what is not opened stays.
const (
	dropAfter       = 400 * 24 * time.Hour // a publication; also tombstones of a site
	dropForkedAfter = 24 * time.Hour       // a generation that another one was forked from
)

func (s *site) Compact(ctx context.Context, keep, horizon time.Duration) error {
	return s.store.change(ctx, "compact site "+s.name, func() error {
		now := s.store.now()
		head, logged := now.Add(-keep), now.Add(-max(keep, horizon))
		s.log.compact(nil, head, logged, now.Add(-dropAfter))
		var left []*generation
		for _, g := range s.generations {
			idle := now.Sub(g.opened)
			forked := slices.ContainsFunc(s.generations, func(o *generation) bool { return o.log.continues(g.log) })
			if g.dropped = idle > dropAfter || idle > dropForkedAfter && forked && s.last[g.name] != g; !g.dropped {
				left = append(left, g)
				g.log.compact(g.published(head), head, logged, now)
			} else if s.last[g.name] == g {
				delete(s.last, g.name)
			}
		}
		s.generations = left
		return nil
	})
}

func (s *site) Apply(ctx context.Context, from string, batch []millrace.Change) (millrace.Tally, error) {
	a := &application{site: s, orphans: make(map[string]int), brought: make(map[string]bool)}
	err := s.store.change(ctx, fmt.Sprintf("apply %d changes to site %s", len(batch), s.name), func() error {
		if from == "" {
			return fmt.Errorf("%w: the source has no name", millrace.ErrInvalid)
		}
		for i := range batch {
			if c := &batch[i]; c.Kind > millrace.Mark || c.Kind == millrace.Mark && c.Mark == nil || c.Kind != millrace.Mark && c.URL == "" {
				return fmt.Errorf("%s: %w: a change of kind %d without a URL or a milestone", c.URL, millrace.ErrInvalid, c.Kind)
			}
		}
		if err := s.store.checkLease(s.lease); err != nil {
			return err
		}
		if s.sources[from] == nil {
			s.sources[from] = &source{refs: make(map[string]ref)}
		}
		a.src, a.now = s.sources[from], s.store.now()
		a.at = s.log.stamp(a.now)
		for i := range batch {
			if err := a.apply(&batch[i]); err != nil {
				return fmt.Errorf("%s: %w", batch[i].URL, err)
			}
		}
		a.settle()
		return nil
	})
	return a.tally, err
}

// application is one batch that is applied.
type application struct {
	*site
	src   *source
	now   time.Time
	at    time.Time // of the batch's entries
	tally millrace.Tally
	// orphans are pages that lost a name, with the number of Delete changes that
	// took one. settle finds whether another one is left.
	orphans map[string]int
	order   []string
	brought map[string]bool // names whose page is in the batch
}

func (a *application) apply(c *millrace.Change) (err error) {
	if c.Kind == millrace.Mark {
		a.src.cursor = c.Mark.Cursor
		return nil
	}
	a.tally.Unchanged++ // until something has changed
	name := c.URL
	old, known := a.src.refs[name]
	r := old
	r.version, r.location, r.section = c.Version, c.Location, c.Section
	if !known {
		r.identity = a.names.Identity(c.URL)
	}
	switch {
	case c.Kind == millrace.Delete:
		if !old.alias {
			a.orphan(r.identity, 1)
		}
		delete(a.src.refs, name)
		return nil
	case c.Page == nil && !known && !a.log.current(r.identity).Present:
		return nil // nothing to remember
	case c.Page == nil:
		if r.version == "" {
			r.original = nil
		}
	default:
		if r, err = a.put(c, r); err != nil {
			return err
		}
		a.brought[name] = true
		if known && (old.identity != r.identity || r.alias && !old.alias) {
			a.orphan(old.identity, 0)
		}
	}
	a.src.refs[name] = r
	return nil
}

// put takes a page in, and returns what to remember of its name.
func (a *application) put(c *millrace.Change, r ref) (ref, error) {
	in := *c.Page
	if in.Version != "" {
		r.version = in.Version
	}
	if in.URL == "" {
		in.URL = c.URL
	}
	in.URL = a.names.Identity(in.URL)
	r.identity, r.alias, r.original = in.URL, in.Known == 0, nil
	if n := len(in.Original); n > 0 && n <= millrace.MaxOriginal {
		r.original = bytes.Clone(in.Original)
	}
	if r.alias {
		return r, nil
	}
	old := a.log.current(in.URL)
	e, out, err := record.Take(old.Entry, &in, c.Newer, a.names, a.now)
	switch {
	case err != nil:
		return r, err
	case out == record.Amended:
		a.log.replace(&entry{Entry: e, url: in.URL, seq: old.seq, time: old.time})
	case out == record.Changed:
		a.log.append(in.URL, e, a.at)
		a.tally.Unchanged--
		if old.Present {
			a.tally.Updated++
		} else {
			a.tally.Added++
		}
	case !old.Present || c.Newer:
		return r, nil // the page was refused
	}
	if w := in.Weight.Or(a.weights[in.URL]); w.Bytes > 0 {
		a.weights[in.URL] = w
	}
	return r, nil
}

func (a *application) orphan(identity string, deletes int) {
	if _, ok := a.orphans[identity]; !ok {
		a.order = append(a.order, identity)
	}
	a.orphans[identity] += deletes
}

// settle deletes the pages that the source has no name for any more.
func (a *application) settle() {
	if len(a.order) == 0 {
		return
	}
	named := make(map[string]bool) // of the orphans
	for name, r := range a.src.refs {
		if _, ok := a.orphans[r.identity]; !ok || r.alias {
			continue
		}
		named[r.identity] = true
		if !a.brought[name] {
			r.version, r.original = "", nil
			a.src.refs[name] = r
		}
	}
	deleted := make(map[string]bool)
	for _, identity := range a.order {
		old := a.log.current(identity)
		if named[identity] || !old.Present {
			continue
		}
		a.log.append(identity, record.Remove(old.Entry, a.now), a.at)
		delete(a.weights, identity)
		deleted[identity] = true
		a.tally.Deleted++
		if a.orphans[identity] > 0 {
			a.tally.Unchanged--
		}
	}
	for _, src := range a.sources {
		maps.DeleteFunc(src.refs, func(_ string, r ref) bool { return deleted[r.identity] })
	}
}
