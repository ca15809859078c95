package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/origin/crawl"
	"github.com/millrace/millrace/origin/folder"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/sqlite"
)

// origin is where the pages come from, and the store that keeps them.
type origin struct {
	kind  string // folder, markdown, wordpress, crawl or mirror
	name  string // of the site in the store
	from  string // of the source in the site's memory
	title string // for people
	base  string // of the C-URLs
	path  string // of the store
	store *sqlite.Store

	folder *folder.Folder  // the files of a folder of HTML
	source millrace.Source // nil: a mirror, that somebody else keeps fresh
	close  func() error    // of source; nil = nothing to close
	// watch calls back when something may have changed; nil = nothing tells.
	watch func(ctx context.Context, changed func()) error
	// next says when another look is worth it; nil = every rescan.
	next func() time.Time
	// complete says whether the last look was at the whole site; nil = always.
	complete func() bool
	// other gives another source in place of one that turns out not to be
	// there; nil = there is no other.
	other    func(error) bool
	learning learning
	school   *school // of a source that can be learned from
	// shown takes the progress bar in place of the mirror's own count.
	shown *progress
	last  atomic.Pointer[look]
	// trouble is why the newest look has failed; nil = it has not.
	trouble atomic.Pointer[trouble]

	skipped atomic.Int64 // pages, by the newest look

	derived atomic.Bool // the pages are in line with the configuration
	turn    sync.Mutex  // of updates with what they use: looks at a folder, and source
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

// ingest keeps the store equal to the source, and tells the press.
func (o *origin) ingest(ctx context.Context, p *process, site store.Site, press *edition.Press) error {
	bar := p.progress("deriving")
	err := site.Derive(ctx, bar.show)
	bar.end()
	if err != nil {
		return err
	}
	o.derived.Store(true)
	if o.source == nil {
		return o.follow(ctx, p, site, press)
	}
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
		if err := mine(ctx, site); err != nil {
			return err
		}
		report, err := o.sync(ctx, p, site)
		if err != nil && o.another(err) {
			report, err = o.sync(ctx, p, site)
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopping is no failure
		}
		switch {
		case err != nil && first && press.Current() == nil && !o.held(ctx, site):
			return err
		case err != nil:
			failing = true
			o.trouble.Store(&trouble{err, time.Now()})
			p.log.Error("the source could not be taken in; what is held of it stays", "error", err)
			if press.Current() == nil {
				o.changed(ctx, p, site, press) // an edition of what an earlier run has had wholly
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
		o.changed(ctx, p, site, press)
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
	was, err := active(ctx, site, o.from)
	return err == nil && was && o.live()
}

// rest is how long nothing needs to be looked at.
func (o *origin) rest() time.Duration {
	if o.next == nil {
		return rescan
	}
	return min(max(time.Until(o.next()), soonest), rescan)
}

// changed indexes what is new, and tells the press, which indexes the rest as
// it publishes: what is published can be searched.
func (o *origin) changed(ctx context.Context, p *process, site store.Site, press *edition.Press) {
	bar := p.progress("indexing " + o.title)
	err := site.Index(ctx, bar.show)
	bar.end()
	if err != nil && ctx.Err() == nil {
		p.log.Error("indexing; publishing tries again", "error", err)
	}
	press.Changed()
}

// mine says so when another process has given the store a configuration of
// its own: neither of the two could publish any more.
func mine(ctx context.Context, site store.Site) error {
	_, err := site.Head(ctx)
	if errors.Is(err, millrace.ErrConflict) {
		return fmt.Errorf("another millrace uses this store with another --base-url, --listen or rule of what to hide: "+
			"start this one again, and give each its own --store FILE: %w", err)
	}
	return nil // anything else comes up again, where it can be told better
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

// revise makes the pages again, by what has just been learned of them. What is
// asked for is on this machine.
func (o *origin) revise(ctx context.Context, p *process, site store.Site, report *mirror.Report) error {
	if src, ok := o.source.(*crawl.Crawl); ok {
		t, err := reread(ctx, site, o.from, src.Reread(ctx))
		report.Updated, report.Deleted = report.Updated+t.Updated, report.Deleted+t.Deleted
		return err
	}
	again, err := o.look(ctx, p, site)
	if err != nil {
		return err
	}
	again.Added, again.Updated, again.Deleted = again.Added+report.Added, again.Updated+report.Updated, again.Deleted+report.Deleted
	*report = *again
	return nil
}

// sync takes one look at the source, and what there is to learn from it.
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
	if pupil, ok := o.source.(learner); ok && (o.school == nil || o.school.pupil != pupil) {
		var err error
		if o.school, err = attend(ctx, o.store.State(), o.name, o.from, o.learning, p.log, pupil); err != nil {
			return nil, err
		}
	}
	report, err := o.look(ctx, p, site)
	if err != nil {
		return report, err
	}
	changed, err := o.school.learn(ctx)
	if changed {
		err = o.revise(ctx, p, site, report)
	}
	if err != nil {
		return report, err
	}
	if report.Doubted == 0 && report.Missed == 0 && (o.complete == nil || o.complete()) {
		gone, doubted, err := retire(ctx, o.store.State(), site, o.from, rolls(o.name)...)
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
