package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/origin/folder"
	"github.com/millrace/millrace/store"
)

// origin is where the pages come from, and the store that keeps them.
type origin struct {
	kind  string // folder, markdown, wordpress, crawl or mirror
	name  string // of the site in the store
	from  string // of the source in the site's memory
	title string // for people
	base  string // of the C-URLs
	path  string // of the store
	store store.Store

	folder *folder.Folder  // the files of a folder of HTML
	source millrace.Source // nil: a mirror, which another process updates
	close  func() error    // of source; nil = nothing to close
	// watch calls back when something may have changed; nil = nothing tells.
	watch func(ctx context.Context, changed func()) error
	// next says when another look is worth it; nil = every rescan.
	next func() time.Time
	// complete says whether the last look was at the whole site; nil = always.
	complete func() bool
	// other gives another source in place of one that turns out not to be
	// there; nil = there is no other.
	other func(error) bool
	rules ingest.Rules
	tried bool // the rules were, on pages of the site
	// shown takes the progress bar in place of the mirror's own count.
	shown *progress
	last  atomic.Pointer[look]
	// trouble is why the newest look has failed; nil = it has not.
	trouble atomic.Pointer[trouble]

	skipped atomic.Int64 // pages, by the newest look

	busy atomic.Bool // the source is being read, or is going to be
	turn sync.Mutex  // of updates with what they use: looks at a folder, and source
}

// look is what one look at a source has brought.
type look struct {
	as     string // the kind of the origin
	report *mirror.Report
	at     time.Time
}

// trouble is a look that has failed.
type trouble struct {
	err error
	at  time.Time
}

// site opens the site in its store, which it opens if it is not yet.
func (o *origin) site(ctx context.Context, p *process) (store.Site, error) {
	if o.store == nil {
		var err error
		if o.store, err = p.openStore(ctx, o.path); err != nil {
			return nil, err
		}
	}
	if o.kind == "mirror" {
		return o.store.Site(ctx, o.name, o.name)
	}
	return o.store.Site(ctx, o.name, o.base)
}

// ingest keeps the store equal to the source. One process at a time does; the
// others publish what it stores.
func (o *origin) ingest(ctx context.Context, p *process, site store.Site, press *edition.Press) error {
	if o.source == nil {
		return nil
	}
	hold := lease.Hold
	for {
		held := false
		err := hold(ctx, o.store.Leases(), o.scanLease(), func(ctx context.Context, l store.Lease) error {
			held = true
			if err := o.scan(ctx, p, site.Fenced(l), press); err != nil {
				return err
			}
			return context.Cause(ctx)
		})
		o.busy.Store(false)
		conflict := errors.Is(err, millrace.ErrConflict)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // stopping is no failure
		case conflict && !held:
			p.log.Info("another process reads the source; publishing what it stores", "source", o.title)
		case err != nil && !conflict && press.Current() == nil:
			return err
		default:
			p.log.Warn("lost the lease to read the source; trying again", "source", o.title, "err", err)
			if conflict {
				break // Wait polls
			}
			select { // the disk is full, for example
			case <-ctx.Done():
				return nil
			case <-time.After(again):
			}
		}
		hold = lease.Wait
	}
}

// scanLease names the lease of the process that reads the source.
func (o *origin) scanLease() string { return "scan " + o.name }

// scan reads the source whenever it may have changed, until the context ends.
func (o *origin) scan(ctx context.Context, p *process, site store.Site, press *edition.Press) error {
	wake := make(chan struct{}, 1)
	if o.watch == nil {
		notify(wake)
	} else {
		go func() {
			// It calls back at once, so the first look comes from here too.
			if err := o.watch(ctx, func() { notify(wake) }); err != nil && ctx.Err() == nil {
				p.log.Error("watching the source", "error", err)
				notify(wake)
			}
		}()
	}
	failing := false
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-time.After(o.rest()):
		}
		o.busy.Store(true)
		report, err := o.sync(ctx, p, site)
		if err != nil && o.another(err) {
			report, err = o.sync(ctx, p, site)
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopping is no failure
		}
		o.busy.Store(false)
		switch {
		case err != nil && first && press.Current() == nil && !o.held(ctx, site):
			return err
		case err != nil:
			failing = true
			o.trouble.Store(&trouble{err, time.Now()})
			p.log.Error("the source could not be taken in; what is held of it stays", "error", err)
			if press.Current() == nil {
				press.Changed() // an edition of what an earlier run has had wholly
			}
			// What stood in the way, such as a full disk, need not be in the source.
			time.AfterFunc(retry, func() { notify(wake) })
			continue
		}
		if failing {
			failing = false
			p.log.Info("the source can be taken in again")
		}
		o.trouble.Store(nil)
		o.last.Store(&look{o.kind, report, time.Now()})
		press.Changed()
		if report.Doubted > 0 {
			// The site may be in the middle of a deployment, which tells of
			// itself again and again: the second look has to be a later one.
			wait := recheck
			if o.live() {
				wait = doubt
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(wait):
				notify(wake)
			}
		}
	}
}

// another takes another source in place of one that turns out not to be there.
func (o *origin) another(err error) bool {
	o.turn.Lock()
	defer o.turn.Unlock()
	return o.other != nil && o.other(err)
}

// live reports whether the pages come over the network.
func (o *origin) live() bool { return o.kind == "crawl" || o.kind == "wordpress" }

// held reports whether the store has all of a live site, by an earlier run.
func (o *origin) held(ctx context.Context, site store.Site) bool {
	v, err := site.Head(ctx)
	if err != nil || v.Site().Pages == 0 {
		return false
	}
	was, err := ingest.IsPrimary(ctx, site, o.from)
	return err == nil && was && o.live()
}

// rest is how long nothing needs to be looked at.
func (o *origin) rest() time.Duration {
	if o.next == nil {
		return rescan
	}
	return min(max(time.Until(o.next()), soonest), rescan)
}

// notify wakes the other side, once for any number of calls.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// look reads the whole source.
func (o *origin) look(ctx context.Context, p *process, site store.Site) (*mirror.Report, error) {
	bar := p.progress("reading " + o.title)
	defer bar.end()
	mo := &mirror.Options{Logger: p.log}
	if o.kind == "crawl" {
		o.shown = bar // the crawl itself knows what is left to do
	} else {
		mo.Progress = func(g mirror.Progress) { bar.show(g.Done, g.Named) }
	}
	return mirror.Sync(ctx, o.from, o.source, site, mo)
}

// sync takes one look at the source.
func (o *origin) sync(ctx context.Context, p *process, site store.Site) (*mirror.Report, error) {
	if !o.live() {
		o.turn.Lock()
		defer o.turn.Unlock()
	}
	return o.take(ctx, p, site)
}

// take does what sync does, for whoever has the turn.
func (o *origin) take(ctx context.Context, p *process, site store.Site) (*mirror.Report, error) {
	start := time.Now()
	report, err := o.look(ctx, p, site)
	if err != nil {
		return report, err
	}
	if src, ok := o.source.(ingest.Originals); ok && !o.tried {
		if o.tried, err = o.rules.Try(ctx, p.log, site, o.from, src); err != nil {
			return report, err
		}
	}
	if report.Doubted == 0 && report.Missed == 0 && (o.complete == nil || o.complete()) {
		gone, doubted, err := ingest.Retire(ctx, o.store.State(), site, o.from, ingest.Sources(o.name)...)
		report.Deleted, report.Doubted = report.Deleted+gone, doubted
		if err != nil {
			return report, err
		}
	}
	if v, err := site.Head(ctx); err == nil { // sources name more than pages
		report.Unchanged = max(0, v.Site().Pages-report.Added-report.Updated)
	}
	if old := o.skipped.Swap(int64(report.SkippedN)); report.Added+report.Updated+report.Deleted > 0 || int64(report.SkippedN) != old {
		p.log.Info("ingested", "added", report.Added, "updated", report.Updated, "deleted", report.Deleted,
			"unchanged", report.Unchanged, "skipped", report.SkippedN, "took", time.Since(start).Round(time.Millisecond))
		logSkips(p.log, groupSkips(report.Skipped))
	}
	return report, nil
}
