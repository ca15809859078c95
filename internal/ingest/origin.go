package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/origin"
	"github.com/millrace/millrace/store"
)

// Mirror is the kind of a site that another process updates.
const Mirror = "mirror"

// Origin is where the pages of a site come from. [Origin.Run] keeps the site equal
// to it. The exported fields are set before the first call, but for Source, Kind,
// From, Next and Complete, which Fallback may change.
type Origin struct {
	Kind   string // how the pages are read: Mirror, or the name of an origin; "" = by a Source of another kind
	Name   string // of the site in the store
	From   string // of the source in the site
	Title  string // for people
	Base   string // of the pages
	Store  store.Store
	Source millrace.Source // nil = another process updates the site
	// Watch calls back when something may have changed; nil = nothing does.
	Watch func(ctx context.Context, changed func()) error
	// Next returns when another scan is worth it; nil = every five minutes.
	Next func() time.Time
	// Complete reports whether the last scan was of the whole site; nil = always.
	Complete func() bool
	// Fallback replaces a source that failed with an error, and reports whether it
	// did; nil = it never does.
	Fallback func(error) bool
	Rules    Rules // of extraction, which are tried on some pages to warn of those that match nothing
	// Progress shows how far a long step is; nil = no one looks.
	Progress func(title string) Progress
	Log      *slog.Logger

	// Files are the site's own files, if they can be served as they are; nil = they
	// cannot.
	Files origin.Files

	close   func() error  // of the source; nil = nothing to close
	way     origin.Origin // that reads the source; without a name = none
	tried   bool          // the rules were
	shown   Progress
	last    atomic.Pointer[Scan]
	failure atomic.Pointer[Failure]
	skipped atomic.Int64 // pages, by the last scan

	busy    atomic.Bool                 // the source is being read, or is going to be
	follows atomic.Pointer[func() bool] // while another process reads it: whether its first scan goes on; nil = none does
	turn    sync.Mutex                  // of updates with what they use: scans of a folder, and source
}

// Progress shows how far a step is, until End.
type Progress interface {
	Show(done, total int) // shows that done of total are done; the total may grow
	End()                 // hides it
}

// noProgress shows nothing.
type noProgress struct{}

func (noProgress) Show(int, int) {}
func (noProgress) End()          {}

// Bar begins to show how far a step is.
func (o *Origin) Bar(title string) Progress {
	if o.Progress == nil {
		return noProgress{}
	}
	return o.Progress(title)
}

// Scan is what one scan of a source has found.
type Scan struct {
	Kind   string // of the origin
	Report *mirror.Report
	Time   time.Time
}

// Failure is a scan that has failed.
type Failure struct {
	Err  error
	Time time.Time
}

// Publisher publishes what is stored.
type Publisher interface {
	Changed()        // the site may have changed
	Published() bool // there is an edition
}

// Last returns the last scan that succeeded; nil = none yet.
func (o *Origin) Last() *Scan { return o.last.Load() }

// Continue makes the last scan of another origin of the site this one's.
func (o *Origin) Continue(last *Scan) { o.last.Store(last) }

// Failure returns the newest scan if it failed; nil = it did not.
func (o *Origin) Failure() *Failure { return o.failure.Load() }

// LastScan returns when the source was scanned last, the zero time for never, and whether
// that failed.
func (o *Origin) LastScan() (at time.Time, failed bool) {
	if f := o.Failure(); f != nil {
		return f.Time, true
	}
	if l := o.Last(); l != nil {
		at = l.Time
	}
	return at, false
}

// Busy reports whether the source is being read, or is going to be. While another
// process reads it, that counts until its first scan is complete.
func (o *Origin) Busy() bool {
	if follows := o.follows.Load(); follows != nil && (*follows)() {
		return true
	}
	return o.busy.Load()
}

// first reports whether no scan of a site is complete yet.
func (o *Origin) first(ctx context.Context, site store.Site) bool {
	was, err := IsPrimary(ctx, site, o.From)
	return err == nil && !was
}

// Expect announces that the source will be read.
func (o *Origin) Expect() { o.busy.Store(o.Source != nil) }

// How often a source is read.
const (
	rescan  = 5 * time.Minute  // the whole source, should a watch have missed something
	soonest = time.Minute      // between two scans of a live site
	retry   = time.Minute      // after a scan that has failed
	again   = 10 * time.Second // after the lease to read a source could not be had
	recheck = 30 * time.Second // the second scan of a folder that is not believed
	doubt   = 10 * time.Minute // the second scan of a live site that is not believed
)

// Run keeps the site equal to the source. One process at a time does; the others
// publish what it stores.
func (o *Origin) Run(ctx context.Context, site store.Site, to Publisher) error {
	if o.Source == nil {
		return nil
	}
	hold := lease.Hold
	first := func() bool { return o.first(ctx, site) }
	for {
		held := false
		err := hold(ctx, o.Store.Leases(), o.Lease(), func(ctx context.Context, l store.Lease) error {
			held = true
			o.follows.Store(nil)
			if err := o.scan(ctx, site.Fenced(l), to); err != nil {
				return err
			}
			return context.Cause(ctx)
		})
		conflict := errors.Is(err, millrace.ErrConflict)
		if conflict && !held {
			o.follows.Store(&first)
		}
		o.busy.Store(false)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // stopping is no failure
		case conflict && !held:
			o.Log.Info("another process reads the source; publishing what it stores", "source", o.Title)
		case err != nil && !conflict && !to.Published():
			return err
		default:
			o.Log.Warn("lost the lease to read the source; trying again", "source", o.Title, "err", err)
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

// Lease names the lease of the process that reads the source.
func (o *Origin) Lease() string { return "scan " + o.Name }

// scan reads the source whenever it may have changed, until the context ends.
func (o *Origin) scan(ctx context.Context, site store.Site, to Publisher) error {
	wake := make(chan struct{}, 1)
	if o.Watch == nil {
		notify(wake)
	} else {
		go func() {
			// It calls back at once, so the first look comes from here too.
			if err := o.Watch(ctx, func() { notify(wake) }); err != nil && ctx.Err() == nil {
				o.Log.Error("watching the source", "error", err)
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
		report, err := o.SyncAny(ctx, site)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopping is no failure
		}
		o.busy.Store(false)
		switch {
		case err != nil && first && !to.Published() && !o.held(ctx, site):
			return err
		case err != nil:
			failing = true
			o.failure.Store(&Failure{err, time.Now()})
			o.Log.Error("the source could not be taken in; what is held of it stays", "error", err)
			if !to.Published() {
				to.Changed() // an edition of what an earlier run has had wholly
			}
			// What stood in the way, such as a full disk, need not be in the source.
			time.AfterFunc(retry, func() { notify(wake) })
			continue
		}
		if failing {
			failing = false
			o.Log.Info("the source can be taken in again")
		}
		o.failure.Store(nil)
		o.last.Store(&Scan{o.Kind, report, time.Now()})
		to.Changed()
		if report.Doubted > 0 {
			// The site may be in the middle of a deployment, which tells of
			// itself again and again: the second look has to be a later one.
			wait := recheck
			if o.Live() {
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

// SyncAny does what Sync does, by another source if that fails and Fallback has one.
func (o *Origin) SyncAny(ctx context.Context, site store.Site) (*mirror.Report, error) {
	report, err := o.Sync(ctx, site)
	if err == nil {
		return report, nil
	}
	o.turn.Lock()
	other := o.Fallback != nil && o.Fallback(err)
	o.turn.Unlock()
	if other {
		return o.Sync(ctx, site)
	}
	return report, err
}

// Original returns the HTML that a page was made of, and how it is extracted but
// for rules. ErrNotFound: the source has no HTML.
func (o *Origin) Original(ctx context.Context, ref millrace.Ref) ([]byte, *extract.Options, error) {
	o.turn.Lock()
	src, ok := o.Source.(Originals)
	o.turn.Unlock()
	if !ok {
		return nil, nil, fmt.Errorf("original of %s: %w: the source has no HTML", ref.URL, millrace.ErrNotFound)
	}
	return src.Original(ctx, ref)
}

// Live reports whether the pages come over the network.
func (o *Origin) Live() bool { return o.way.Name != "" && !o.way.Folder }

// held reports whether the store has all of a live site, by an earlier run.
func (o *Origin) held(ctx context.Context, site store.Site) bool {
	v, err := site.Head(ctx)
	if err != nil || v.Site().Pages == 0 {
		return false
	}
	was, err := IsPrimary(ctx, site, o.From)
	return err == nil && was && o.Live()
}

// rest is how long nothing needs to be looked at.
func (o *Origin) rest() time.Duration {
	if o.Next == nil {
		return rescan
	}
	return min(max(time.Until(o.Next()), soonest), rescan)
}

// notify wakes the other side, once for any number of calls.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// read reads the whole source.
func (o *Origin) read(ctx context.Context, site store.Site) (*mirror.Report, error) {
	bar := o.Bar("reading " + o.Title)
	defer bar.End()
	mo := &mirror.Options{Logger: o.Log}
	if o.way.Progress {
		o.shown = bar
	} else {
		mo.Progress = func(g mirror.Progress) { bar.Show(g.Done, g.Named) }
	}
	return mirror.Sync(ctx, o.From, o.Source, site, mo)
}

// Sync scans the source once.
func (o *Origin) Sync(ctx context.Context, site store.Site) (*mirror.Report, error) {
	if !o.Live() {
		o.turn.Lock()
		defer o.turn.Unlock()
	}
	return o.take(ctx, site)
}

// take does what Sync does; the caller has the turn.
func (o *Origin) take(ctx context.Context, site store.Site) (*mirror.Report, error) {
	start := time.Now()
	report, err := o.read(ctx, site)
	if err != nil {
		return report, err
	}
	if src, ok := o.Source.(Originals); ok && !o.tried {
		if o.tried, err = o.Rules.Try(ctx, o.Log, site, o.From, src); err != nil {
			return report, err
		}
	}
	if report.Doubted == 0 && report.Missed == 0 && (o.Complete == nil || o.Complete()) {
		gone, doubted, err := Retire(ctx, o.Store.State(), site, o.From, Sources(o.Name)...)
		report.Deleted, report.Doubted = report.Deleted+gone, doubted
		if err != nil {
			return report, err
		}
	}
	if v, err := site.Head(ctx); err == nil { // sources name more than pages
		report.Unchanged = max(0, v.Site().Pages-report.Added-report.Updated)
	}
	if old := o.skipped.Swap(int64(report.SkippedN)); report.Added+report.Updated+report.Deleted > 0 || int64(report.SkippedN) != old {
		o.Log.Info("ingested", "added", report.Added, "updated", report.Updated, "deleted", report.Deleted,
			"unchanged", report.Unchanged, "skipped", report.SkippedN, "took", time.Since(start).Round(time.Millisecond))
		LogSkips(o.Log, GroupSkips(report.Skipped))
	}
	return report, nil
}

// Update brings single pages up to date.
func (o *Origin) Update(ctx context.Context, site store.Site, to Publisher, urls []string, gone bool) (millrace.Counts, error) {
	// A folder is looked at in a moment; two looks would tell of each other's pages.
	o.turn.Lock()
	defer o.turn.Unlock()
	if o.Source == nil {
		return millrace.Counts{}, fmt.Errorf("update: %w: pages cannot be asked for singly here", millrace.ErrUnavailable)
	}
	names := make([]string, len(urls))
	for i, u := range urls {
		names[i] = canon.Absolute(o.Base, u)
		if !strings.HasPrefix(names[i], o.Base) {
			return millrace.Counts{}, fmt.Errorf("update: %w: %s is not in %s", millrace.ErrInvalid, u, o.Base)
		}
	}
	var report *mirror.Report
	var err error
	switch {
	case o.way.Whole:
		if report, err = o.take(ctx, site); report == nil {
			return millrace.Counts{}, err
		}
		report.Unchanged = max(0, len(urls)-report.Added-report.Updated-report.Deleted)
	case o.way.ByFile:
		for i, n := range names {
			names[i] = canon.Relative(o.Base, n)
		}
		fallthrough
	default:
		report, err = mirror.Update(ctx, o.From, o.Source, site, names, gone, &mirror.Options{Logger: o.Log})
	}
	t := report.Counts
	if t.Added+t.Updated+t.Deleted > 0 {
		to.Changed()
	}
	o.Log.Info("told of changes", "urls", len(urls), "added", t.Added, "updated", t.Updated, "deleted", t.Deleted,
		"unchanged", t.Unchanged, "skipped", report.SkippedN)
	LogSkips(o.Log, GroupSkips(report.Skipped))
	if err == nil && report.Missed > 0 {
		err = fmt.Errorf("update: %w: %d of %d pages cannot be had for now", millrace.ErrUnavailable, report.Missed, len(urls))
	}
	return t, err
}

// show shows how far a crawl is.
func (o *Origin) show(done, known int) {
	if o.shown != nil {
		o.shown.Show(done, known)
	}
}

// CompactEvery is how often a site is compacted.
const CompactEvery = time.Hour

// How long a site keeps what is superseded, which may still be read, and the
// deletions that clients ask for.
const (
	superseded = time.Hour
	forgotten  = 30 * 24 * time.Hour
)

// Compact compacts a site, unless another process is compacting it.
func Compact(ctx context.Context, st store.Store, name string, site store.Site) error {
	held := false
	err := lease.Hold(ctx, st.Leases(), "compact "+name, func(ctx context.Context, l store.Lease) error {
		held = true
		return site.Fenced(l).Compact(ctx, superseded, forgotten)
	})
	if !held && errors.Is(err, millrace.ErrConflict) {
		return nil
	}
	return err
}
