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

// generation is one generation of a publication. Its head is the newest entry of
// its log, once it was refreshed.
type generation struct {
	log               *log
	name, fingerprint string
	opened            time.Time
	dropped           bool
	editions          []edition // the oldest first
	refreshed         uint64    // how often
	place             uint64    // of the site's log: how far that came
}

// edition is an edition of a generation.
type edition struct {
	store.Edition
	info millrace.Site // of its view
	time time.Time     // when it was published
	own  bool          // false: the generation was forked after it
}

// edition returns the newest edition, the zero one if it has none.
func (g *generation) edition() (e edition) {
	if n := len(g.editions); n > 0 {
		e = g.editions[n-1]
	}
	return e
}

// published returns the sequence numbers of the editions that were the newest
// one at any time since t.
func (g *generation) published(t time.Time) (seqs []uint64) {
	for i, e := range g.editions {
		if i+1 == len(g.editions) || g.editions[i+1].time.After(t) {
			seqs = append(seqs, e.info.Seq)
		}
	}
	return seqs
}

// hasShown reports whether an edition up to a sequence number had a tag of a
// page.
func (g *generation) hasShown(room, url string, seq uint64) bool {
	return slices.ContainsFunc(g.editions, func(e edition) bool {
		t, ok := g.log.at(url, e.info.Seq).tags[room]
		return ok && t.since <= e.info.Seq && e.info.Seq <= seq
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
	err := s.store.change(ctx, "publication of site "+s.name, func() (err error) {
		if p.config, p.names, err = record.Complete(s.name, c); err != nil {
			return err
		}
		for _, t := range c.Taggers {
			p.taggers[t.Room] = t
		}
		name, fingerprint := record.Generation(p.config)
		last := s.last[name]
		for _, g := range s.generations {
			if g.name == name && g.fingerprint == fingerprint && (last == nil || !last.log.continues(g.log)) {
				p.generation = g // the newest one
			}
		}
		if p.generation == nil {
			p.generation = &generation{log: newLog(), name: name, fingerprint: fingerprint}
			if last != nil {
				p.log, p.editions = last.log.fork(last.edition().info.Seq, last.edition().info.Time), slices.Clone(last.editions)
				for i := range p.editions {
					p.editions[i].own = false
				}
			}
			s.generations = append(s.generations, p.generation)
		}
		p.opened = s.store.now()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (p *publication) Name() string { return "publication " + p.log.epoch }

// use notes that the generation is in use. ErrConflict: it was dropped.
func (p *publication) use() error {
	if p.dropped {
		return millrace.Coded("log-dropped", fmt.Errorf("%w: it was not open for long and was dropped; open it again", millrace.ErrConflict))
	}
	p.opened = p.site.store.now()
	return nil
}

// change runs f if the generation is there and the lease holds.
func (p *publication) change(ctx context.Context, what string, l store.Lease, f func() error) error {
	return p.site.store.change(ctx, what+" of publication "+p.config.Base, func() error {
		err := p.use()
		if err == nil {
			err = p.site.store.checkLease(l)
		}
		if err == nil {
			err = f()
		}
		return err
	})
}

func (p *publication) view(seq uint64) *view {
	v := &view{site: p.site, of: p, log: p.log, names: p.names}
	v.describe(seq, p.config.Docs)
	return v
}

func (p *publication) Head(ctx context.Context) (millrace.View, error) {
	return get(ctx, p.site.store, "head of publication "+p.config.Base, func() (millrace.View, error) {
		if p.refreshed == 0 {
			return nil, fmt.Errorf("%w: no refresh was completed", millrace.ErrNotFound)
		}
		return p.view(p.log.seq), p.use()
	})
}

func (p *publication) Published(ctx context.Context) (out millrace.View, e store.Edition, err error) {
	out, err = get(ctx, p.site.store, "edition of publication "+p.config.Base, func() (millrace.View, error) {
		newest := p.edition()
		if e = newest.Edition; !newest.own {
			return nil, fmt.Errorf("%w: this generation has published nothing", millrace.ErrNotFound)
		}
		return &view{site: p.site, of: p, log: p.log, names: p.names, info: newest.info}, p.use()
	})
	return out, e, err
}

func (p *publication) Publish(ctx context.Context, l store.Lease, old, seq uint64, manifest []byte) (e store.Edition, err error) {
	err = p.change(ctx, fmt.Sprintf("publish sequence number %d", seq), l, func() error {
		switch is := p.edition().Number; {
		case p.refreshed == 0 || seq > p.log.seq:
			return fmt.Errorf("%w: it is above the head", millrace.ErrInvalid)
		case seq < p.log.floor:
			return fmt.Errorf("%w: its view has been compacted away", millrace.ErrConflict)
		case is != old:
			return fmt.Errorf("%w: edition %d is published, not %d", millrace.ErrConflict, is, old)
		}
		e = store.Edition{Number: old + 1, Manifest: bytes.Clone(manifest)}
		p.editions = append(p.editions, edition{e, p.view(seq).info, p.opened, true})
		p.site.last[p.name], p.site.base = p.generation, p.config.Base
		return nil
	})
	return e, err
}

// item is a page that is refreshed.
type item struct {
	old  *entry       // of the publication
	site *entry       // of the site
	new  record.Entry // of the publication
	out  record.Outcome
	tags map[string]string // values; nil = as before
}

// Refresh implements [store.Publication]. It computes all pages outside of a
// transaction, and writes them in one: so their entries have the time from which
// they are seen.
func (p *publication) Refresh(ctx context.Context, l store.Lease, progress func(done, total int)) error {
	var items []item
	var now time.Time
	var place, refreshed uint64
	err := p.change(ctx, "refresh", l, func() error {
		items, now, place, refreshed = p.items(), p.opened, p.site.log.seq, p.refreshed
		return nil
	})
	for i := range items {
		if err = ctx.Err(); err == nil {
			err = p.compute(&items[i], refreshed == 0, now)
		}
		if err != nil {
			break
		}
		if progress != nil {
			progress(i+1, len(items))
		}
	}
	if err != nil {
		return err
	}
	return p.change(ctx, "refresh", l, func() error {
		if p.refreshed != refreshed {
			return millrace.Coded("refresh-twice", fmt.Errorf("%w: another process refreshes it", millrace.ErrConflict))
		}
		p.place = place
		p.commit(items)
		return nil
	})
}

// items returns the pages that may have changed: those that the site's log names
// since the last Refresh; all, if that is before the horizon, or there was none.
func (p *publication) items() (all []item) {
	site, since := p.site.log, p.place
	if since < site.horizon {
		since = 0
	}
	for url := range site.pages {
		if e := site.current(url); e.seq > since {
			all = append(all, item{old: p.log.current(url), site: e})
		}
	}
	for url := range p.log.pages {
		if old := p.log.current(url); since == 0 && old.Present && len(site.pages[url]) == 0 {
			all = append(all, item{old: old, site: &entry{url: url}})
		}
	}
	slices.SortFunc(all, func(a, b item) int { return cmp.Or(bySeq(a.site, b.site), byURL(a.site, b.site)) })
	return all
}

// compute computes what becomes of a page. With all, it computes the tags of
// pages that stay as they are.
func (p *publication) compute(it *item, all bool, now time.Time) (err error) {
	var page *millrace.Page
	it.new, page, it.out, err = record.Show(it.old.Entry, it.site.Entry, &p.config, p.names, it.old.url, now)
	if err != nil || page == nil || it.out == record.Same && !all {
		return err
	}
	it.tags = make(map[string]string)
	for room, t := range p.taggers {
		value, err := t.Tag(millrace.Site{Base: p.config.Base, Docs: p.config.Docs}, page)
		if err != nil {
			// Only this protocol does not have the page.
			p.site.store.options.Logger.Warn("no tag for a page", "site", p.site.name, "protocol", room, "url", page.URL, "err", err)
		} else if value != "" {
			it.tags[room] = value
		}
	}
	return nil
}

// commit writes pages to the log.
func (p *publication) commit(items []item) {
	at, first := p.log.stamp(p.opened), p.log.seq+1
	if p.refreshed++; p.refreshed == 1 && len(p.log.earlier) > 0 {
		p.log.append("", record.Entry{}, at) // the configuration
	}
	for _, it := range items {
		e := it.old
		switch {
		case it.out == record.Changed:
			e = p.log.append(e.url, it.new, at)
		case it.tags != nil:
			e = &entry{Entry: e.Entry, url: e.url, seq: e.seq, time: e.time}
			p.log.replace(e)
		}
		for room, value := range it.tags {
			t := tag{value, first}
			if old := it.old.tags[room]; it.out != record.Changed && old.value == value {
				t = old
			}
			if e.tags == nil {
				e.tags = make(map[string]tag)
			}
			e.tags[room] = t
		}
	}
}
