package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// generation is one generation of a publication. After the first Refresh, its head is the
// newest entry of its log.
type generation struct {
	log               *log
	name, fingerprint string
	opened            time.Time
	dropped           bool
	editions          []edition // oldest first
	refreshed         uint64    // number of Refresh calls
	position          uint64    // position in the site's log
}

// edition is an edition of a generation, or of a generation from which it was forked.
type edition struct {
	store.Edition
	view *view
}

// edition returns the newest edition. If the generation has no edition, the number is 0 and the
// view has the newest state.
func (g *generation) edition() edition {
	if n := len(g.editions); n > 0 {
		return g.editions[n-1]
	}
	return edition{view: &view{state: g.log.head()}}
}

// compact drops entries older than a time, but none since the newest edition.
func (g *generation) compact(logged, now time.Time) {
	g.log.compact(g.edition().view.seq, logged, now)
	g.editions = slices.DeleteFunc(g.editions, func(e edition) bool { return e.view.seq < g.log.horizon })
}

// hasPublished reports whether an edition up to a sequence number contained a tag of a page.
func (g *generation) hasPublished(proto, url string, seq uint64) bool {
	return slices.ContainsFunc(g.editions, func(e edition) bool {
		return e.view.seq <= seq && e.view.entry(url).tags[proto] != ""
	})
}

// publication is an open generation.
type publication struct {
	*generation
	site    *site
	config  store.Config
	names   record.Names
	taggers map[string]millrace.Tagger
}

func (s *site) Publication(ctx context.Context, c store.Config) (store.Publication, error) {
	p := &publication{site: s, taggers: make(map[string]millrace.Tagger)}
	err := s.store.change(ctx, store.Lease{}, "publication of site "+s.name, func() (err error) {
		p.config, p.names, err = record.Complete(s.name, c)
		if p.names.Volatile = s.store.Volatile; err != nil {
			return err
		}
		for _, t := range c.Taggers {
			p.taggers[t.Protocol] = t
		}
		name, fingerprint := record.Generation(p.config)
		last := s.last[name]
		for _, g := range s.generations {
			if g.name == name && g.fingerprint == fingerprint {
				p.generation = g // use the newest generation
			}
		}
		if g := p.generation; g != nil && last != nil && record.Continues(last.log.earlier, g.log.epoch, g.edition().view.seq) {
			p.generation = nil
		}
		if p.generation == nil {
			p.generation = &generation{log: newLog(), name: name, fingerprint: fingerprint}
			if last != nil {
				p.log, p.editions = last.log.fork(last.edition().view.seq), slices.Clone(last.editions)
			}
			s.generations = append(s.generations, p.generation)
		}
		return p.use()
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (p *publication) Name() string { return "publication " + p.log.epoch }

// use marks the generation as used. If the generation was dropped, use returns ErrConflict.
func (p *publication) use() error {
	if p.dropped {
		return millrace.Coded("log-dropped", fmt.Errorf("%w: dropped after a long time without use; open it again", millrace.ErrConflict))
	}
	p.opened = p.site.store.now()
	return nil
}

// change runs f if the lease is valid and the generation exists.
func (p *publication) change(ctx context.Context, l store.Lease, what string, f func() error) error {
	return p.site.store.change(ctx, l, what+" of publication "+p.config.Base, func() error {
		if err := p.use(); err != nil {
			return err
		}
		return f()
	})
}

func (p *publication) view(s *state) (*view, error) {
	v := &view{site: p.site, of: p, log: p.log, names: p.names, state: s}
	return v, v.describe(p.config.EndpointBase)
}

func (p *publication) Head(ctx context.Context) (millrace.View, error) {
	return get(ctx, p.site.store, "head of publication "+p.config.Base, func() (millrace.View, error) {
		if p.refreshed == 0 {
			return nil, fmt.Errorf("%w: not refreshed yet", millrace.ErrNotFound)
		}
		if err := p.use(); err != nil {
			return nil, err
		}
		return p.view(p.log.head())
	})
}

func (p *publication) Published(ctx context.Context) (out millrace.View, e store.Edition, err error) {
	out, err = get(ctx, p.site.store, "edition of publication "+p.config.Base, func() (millrace.View, error) {
		newest := p.edition()
		if e = newest.Edition; newest.view.log != p.log {
			return nil, fmt.Errorf("%w: this generation has no edition", millrace.ErrNotFound)
		}
		return &view{p.site, p, p.log, p.names, newest.view.state, newest.view.info}, p.use()
	})
	return out, e, err
}

func (p *publication) Publish(ctx context.Context, l store.Lease, old, seq uint64, manifest []byte) (e store.Edition, err error) {
	err = p.change(ctx, l, fmt.Sprintf("publish sequence number %d", seq), func() error {
		switch is := p.edition().Number; {
		case p.refreshed == 0 || seq > p.log.head().seq:
			return fmt.Errorf("%w: the sequence number is above the head", millrace.ErrInvalid)
		case seq < p.log.horizon:
			return fmt.Errorf("%w: the view was compacted", millrace.ErrConflict)
		case is != old:
			return fmt.Errorf("%w: edition %d is published, not %d", millrace.ErrConflict, is, old)
		}
		v, err := p.view(p.log.at(seq))
		if err != nil {
			return err
		}
		e = store.Edition{Number: old + 1, Manifest: bytes.Clone(manifest)}
		p.editions = append(p.editions, edition{e, v})
		p.site.last[p.name], p.site.base = p.generation, p.config.Base
		return nil
	})
	return e, err
}

// Refresh implements [store.Publication]. It computes the next state outside of a transaction and
// commits it in one transaction. So the time of the entries is the time at which they become
// visible.
func (p *publication) Refresh(ctx context.Context, l store.Lease, limit int, progress func(done, total int)) (more bool, err error) {
	var next *state
	var pages []*entry // pages of the site
	var place, refreshed uint64
	err = p.change(ctx, l, "refresh", func() error {
		site := p.part(limit)
		more = site != p.site.log.head()
		next, pages, place, refreshed = p.log.begin(), p.changed(site), site.seq, p.refreshed
		return nil
	})
	if err != nil {
		return false, err
	}
	if refreshed == 0 && len(p.log.earlier) > 0 {
		next.seq++ // a fork begins with an entry for its configuration
	}
	for i, page := range pages {
		if err := cmp.Or(ctx.Err(), p.show(next, page, refreshed == 0)); err != nil {
			return false, err
		}
		if progress != nil {
			progress(i+1, len(pages))
		}
	}
	return more, p.change(ctx, l, "refresh", func() error {
		if p.refreshed != refreshed {
			return millrace.Coded("refresh-busy", fmt.Errorf("%w: another process is refreshing it", millrace.ErrConflict))
		}
		p.refreshed, p.position = refreshed+1, place
		p.log.commit(next, p.opened)
		return nil
	})
}

// part returns the state of the site up to which a Refresh with a limit reads.
func (p *publication) part(limit int) *state {
	if limit > 0 && p.refreshed > 0 && p.position >= p.site.log.horizon {
		for _, s := range p.site.log.states {
			if s.seq >= p.position+uint64(limit) {
				return s
			}
		}
	}
	return p.site.log.head()
}

// changed returns the entries of pages that may have changed: those in the site's log since the
// last Refresh. If there was no Refresh, or the last one was before the horizon, it returns all
// entries.
func (p *publication) changed(site *state) []*entry {
	since := p.position
	if since < p.site.log.horizon {
		since = 0
	}
	pages := slices.DeleteFunc(site.pages.Values(), func(e *entry) bool { return e.seq <= since })
	for _, own := range p.log.head().pages.Values() {
		if e := site.entry(own.url); since == 0 && own.Present && e.seq == 0 {
			pages = append(pages, e)
		}
	}
	slices.SortFunc(pages, func(a, b *entry) int { return cmp.Or(bySeq(a, b), byURL(a, b)) })
	return pages
}

// show adds the entry of a page of the site to the publication. If all is set, show also computes
// the tags of unchanged pages.
func (p *publication) show(next *state, of *entry, all bool) error {
	old := next.entry(of.url)
	e, page, out, err := record.Show(old.Entry, of.Entry, &p.config, p.names, of.url, p.site.store.now())
	if err != nil || out == record.Same && !all {
		return err
	}
	var tags map[string]string
	if page != nil {
		tags = record.Tags(&p.config, page, p.site.store.options.Logger)
	}
	if out == record.Changed {
		next.enter(of.url, e, tags)
	} else if page != nil {
		next.amend(old, old.Entry, tags)
	}
	return nil
}
