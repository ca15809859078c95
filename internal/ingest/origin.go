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

// Origin is the source of a site's pages, with its settings. [Origin.Run] keeps the site in sync
// with it. Set the exported fields before the first call. Fallback may change Source, Kind, From,
// Next and Complete later.
type Origin struct {
	Kind   string // Mirror, or the name of an origin; empty for any other Source
	Name   string // the site's name in the store
	From   string // name of the source in the site's records
	Title  string // display name of the source
	Base   string // base URL of the pages
	Store  store.Store
	Source millrace.Source // If nil, another process updates the site.
	// Watch calls changed when something may have changed. If nil, the source is not watched.
	Watch func(ctx context.Context, changed func()) error
	// Next returns the time of the next scan. If nil, there is one every five minutes.
	Next func() time.Time
	// Complete reports whether the last scan covered the whole site. If nil, every scan does.
	Complete func() bool
	// Fallback replaces a source that failed with an error, and reports whether it did. If nil, no
	// source is replaced.
	Fallback func(error) bool
	// SiteTitle is the title of the site. If empty, the title of the source is used.
	SiteTitle string
	Rules     Rules // extraction rules; Sync tests them on some pages and warns of those that match nothing
	// Progress shows the progress of a long step. If nil, progress is not shown.
	Progress func(title string) Progress
	Logger   *slog.Logger

	// Files are the site's own files, if they can be served unchanged, else nil.
	Files origin.Files

	siteTitle func(ctx context.Context) (string, error) // see origin.Source, or nil if unknown

	close    func() error  // closes the source. If nil, nothing to close.
	way      origin.Origin // origin that opened the source; its Name is empty if no origin did
	tried    bool          // the rules were tested
	progress Progress
	last     atomic.Pointer[Scan]
	failure  atomic.Pointer[Failure]
	skipped  atomic.Int64 // pages skipped by the last scan

	busy    atomic.Bool                 // the source is being read, or soon will be
	follows atomic.Pointer[func() bool] // set while another process reads the source: reports whether its first scan is running
	turn    sync.Mutex                  // held by Update, Original, and Sync of a source that is not live
}

// Progress shows the progress of a step, until End is called.
type Progress interface {
	Show(done, total int) // shows the progress; total may grow
	End()                 // hides the progress
}

// noProgress shows nothing.
type noProgress struct{}

func (noProgress) Show(int, int) {}
func (noProgress) End()          {}

// StartProgress starts to show the progress of a step.
func (o *Origin) StartProgress(title string) Progress {
	if o.Progress == nil {
		return noProgress{}
	}
	return o.Progress(title)
}

// Scan is the result of one scan of a source.
type Scan struct {
	Kind   string // kind of the source
	Report *mirror.Report
	Time   time.Time
}

// Failure is a failed scan.
type Failure struct {
	Err  error
	Time time.Time
}

// Publisher publishes the stored pages.
type Publisher interface {
	Changed()        // reports that the site may have changed
	Published() bool // reports whether an edition is published
}

// Last returns the last scan that succeeded, or nil if there was none.
func (o *Origin) Last() *Scan { return o.last.Load() }

// SetLastScan sets the last scan to that of another origin of the same site.
func (o *Origin) SetLastScan(last *Scan) { o.last.Store(last) }

// Failure returns the newest scan if it failed, else nil.
func (o *Origin) Failure() *Failure { return o.failure.Load() }

// LastScan returns the time of the last scan, or zero if there was none, and whether it failed.
func (o *Origin) LastScan() (at time.Time, failed bool) {
	if f := o.Failure(); f != nil {
		return f.Time, true
	}
	if l := o.Last(); l != nil {
		at = l.Time
	}
	return at, false
}

// Busy reports whether the source is being read, or soon will be. If another process
// reads it, Busy returns true until that process's first scan is complete.
func (o *Origin) Busy() bool {
	if follows := o.follows.Load(); follows != nil && (*follows)() {
		return true
	}
	return o.busy.Load()
}

// first reports whether no scan of the site has completed yet.
func (o *Origin) first(ctx context.Context, site store.Site) bool {
	was, err := IsPrimary(ctx, site, o.From)
	return err == nil && !was
}

// SetBusy makes Busy return true until the source is read.
func (o *Origin) SetBusy() { o.busy.Store(o.Source != nil) }

// Intervals between scans.
const (
	rescan      = 5 * time.Minute  // between scans of a whole source, in case a watch has missed a change
	soonest     = time.Minute      // minimum between two scans of a live site
	retry       = time.Minute      // after a failed scan
	again       = 10 * time.Second // after another process held the lease
	recheck     = 30 * time.Second // before a folder's scan that must confirm deletions
	recheckLive = 10 * time.Minute // before a live site's scan that must confirm deletions
)

// Run keeps the site in sync with the source until the context ends. Only one process at a time
// reads the source; the others publish the pages that it stores.
func (o *Origin) Run(ctx context.Context, site store.Site, to Publisher) error {
	if o.Source == nil {
		return nil
	}
	hold := lease.Hold
	first := func() bool { return o.first(ctx, site) }
	for {
		acquired := false
		err := hold(ctx, o.Store.Leases(), o.Lease(), func(ctx context.Context, l store.Lease) error {
			acquired = true
			o.follows.Store(nil)
			if err := o.scan(ctx, site.Fenced(l), to); err != nil {
				return err
			}
			return context.Cause(ctx)
		})
		conflict := errors.Is(err, millrace.ErrConflict)
		if conflict && !acquired {
			o.follows.Store(&first)
		}
		o.busy.Store(false)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the scan was stopped
		case conflict && !acquired:
			o.Logger.Info("another process reads the source; publishing its pages", "source", o.Title)
		case err != nil && !conflict && !to.Published():
			return err
		default:
			o.Logger.Warn("stopped reading the source; trying again", "source", o.Title, "err", err)
			if conflict {
				break // lease.Wait waits for the lease
			}
			select { // wait before the next attempt, because the disk may be full, for example
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

// scan reads the source when it may have changed, until the context ends.
func (o *Origin) scan(ctx context.Context, site store.Site, to Publisher) error {
	wake := make(chan struct{}, 1)
	if o.Watch == nil {
		notify(wake)
	} else {
		go func() {
			// Watch calls its function at once, which starts the first scan.
			if err := o.Watch(ctx, func() { notify(wake) }); err != nil && ctx.Err() == nil {
				o.Logger.Error("could not watch source", "err", err)
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
			return nil //nolint:nilerr // the scan was stopped
		}
		o.busy.Store(false)
		switch {
		case err != nil && first && !to.Published() && !o.hasStored(ctx, site):
			return err
		case err != nil:
			failing = true
			o.failure.Store(&Failure{err, time.Now()})
			o.Logger.Error("could not read source; keeping stored pages", "err", err)
			if !to.Published() {
				to.Changed() // publish what an earlier run has completed
			}
			// Try again, because the cause may not be in the source, such as a full disk.
			time.AfterFunc(retry, func() { notify(wake) })
			continue
		}
		if failing {
			failing = false
			o.Logger.Info("source can be read again")
		}
		o.failure.Store(nil)
		o.last.Store(&Scan{o.Kind, report, time.Now()})
		to.Changed()
		if report.UnconfirmedDeletions > 0 {
			// The site may be in the middle of a deployment, so confirm deletions later.
			wait := recheck
			if o.Live() {
				wait = recheckLive
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

// SyncAny calls Sync. If that fails and Fallback provides another source, it syncs with that
// source.
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

// Original returns the HTML from which a page was extracted, and the extraction options without
// the rules. If the source has no HTML, Original returns ErrNotFound.
func (o *Origin) Original(ctx context.Context, ref millrace.Ref) ([]byte, *extract.Options, error) {
	o.turn.Lock()
	src, ok := o.Source.(Originals)
	o.turn.Unlock()
	if !ok {
		return nil, nil, fmt.Errorf("original of %s: %w: the source has no HTML", ref.URL, millrace.ErrNotFound)
	}
	return src.Original(ctx, ref)
}

// IsTextOnly reports whether the source is a folder that has no HTML files to serve unchanged.
func (o *Origin) IsTextOnly() bool { return o.way.Folder && o.Files == nil }

// Live reports whether the pages come over the network.
func (o *Origin) Live() bool { return o.way.Name != "" && !o.way.Folder }

// hasStored reports whether an earlier run has stored all of a live site.
func (o *Origin) hasStored(ctx context.Context, site store.Site) bool {
	v, err := site.Head(ctx)
	if err != nil || v.Site().Pages == 0 {
		return false
	}
	was, err := IsPrimary(ctx, site, o.From)
	return err == nil && was && o.Live()
}

// rest returns the time until the next scan is due.
func (o *Origin) rest() time.Duration {
	if o.Next == nil {
		return rescan
	}
	return min(max(time.Until(o.Next()), soonest), rescan)
}

// notify sends to c unless a notification is waiting there.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// read reads the whole source.
func (o *Origin) read(ctx context.Context, site store.Site) (*mirror.Report, error) {
	bar := o.StartProgress("reading " + o.Title)
	defer bar.End()
	mo := &mirror.Options{Logger: o.Logger}
	if o.way.Progress {
		o.progress = bar
	} else {
		mo.Progress = func(g mirror.Progress) { bar.Show(g.Done, g.Found) }
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

// take implements Sync. The caller holds turn, unless the source is live.
func (o *Origin) take(ctx context.Context, site store.Site) (*mirror.Report, error) {
	start := time.Now()
	report, err := o.read(ctx, site)
	if err != nil {
		return report, err
	}
	if err := o.saveTitle(ctx); err != nil {
		return report, err
	}
	if src, ok := o.Source.(Originals); ok && !o.tried {
		if o.tried, err = o.Rules.Test(ctx, o.Logger, site, o.From, src); err != nil {
			return report, err
		}
	}
	if report.UnconfirmedDeletions == 0 && report.Unavailable == 0 && (o.Complete == nil || o.Complete()) {
		gone, unconfirmed, err := Retire(ctx, o.Store.State(), site, o.From, Sources(o.Name)...)
		report.Deleted, report.UnconfirmedDeletions = report.Deleted+gone, unconfirmed
		if err != nil {
			return report, err
		}
	}
	if err := o.keepSkips(ctx, site, report); err != nil {
		return report, err
	}
	if v, err := site.Head(ctx); err == nil { // use the number of pages, because sources also list other URLs
		report.Unchanged = max(0, v.Site().Pages-report.Added-report.Updated)
	}
	if old := o.skipped.Swap(int64(report.SkippedN)); report.Added+report.Updated+report.Deleted > 0 || int64(report.SkippedN) != old {
		o.Logger.Info("ingested", "added", report.Added, "updated", report.Updated, "deleted", report.Deleted,
			"unchanged", report.Unchanged, "skipped", report.SkippedN, "duration", time.Since(start).Round(time.Millisecond))
		LogSkips(o.Logger, GroupSkips(report.Skipped))
	}
	return report, nil
}

// Update fetches single pages again. If gone is set, it deletes them instead, unless the source is
// read as a single stream.
func (o *Origin) Update(ctx context.Context, site store.Site, to Publisher, urls []string, gone bool) (millrace.Counts, error) {
	// Hold the lock during the update, because concurrent updates of a folder would report each
	// other's pages. The update of a folder takes little time.
	o.turn.Lock()
	defer o.turn.Unlock()
	if o.Source == nil {
		return millrace.Counts{}, fmt.Errorf("update: %w: the source cannot update single pages", millrace.ErrUnavailable)
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
	case o.way.SingleStream:
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
		report, err = mirror.Update(ctx, o.From, o.Source, site, names, gone, &mirror.Options{Logger: o.Logger})
	}
	t := report.Counts
	if t.Added+t.Updated+t.Deleted > 0 {
		to.Changed()
	}
	o.Logger.Info("changed URLs read", "urls", len(urls), "added", t.Added, "updated", t.Updated, "deleted", t.Deleted,
		"unchanged", t.Unchanged, "skipped", report.SkippedN)
	LogSkips(o.Logger, GroupSkips(report.Skipped))
	if err == nil && report.Unavailable > 0 {
		err = fmt.Errorf("update: %w: %d of %d pages are temporarily unavailable", millrace.ErrUnavailable, report.Unavailable, len(urls))
	}
	return t, err
}

// show shows the progress of a crawl.
func (o *Origin) show(done, known int) {
	if o.progress != nil {
		o.progress.Show(done, known)
	}
}

// CompactEvery is the interval between compactions of a site.
const CompactEvery = time.Hour

// Times for which a site keeps superseded versions, because readers may still use them, and changes
// in its log, because clients must learn of deletions.
const (
	superseded = time.Hour

	// Retention is the time for which the log of a site keeps changes.
	Retention = 30 * 24 * time.Hour
)

// Compact compacts a site, unless another process is doing so. retention is the time for which the
// log keeps changes, such as Retention.
func Compact(ctx context.Context, st store.Store, name string, site store.Site, retention time.Duration) error {
	acquired := false
	err := lease.Hold(ctx, st.Leases(), "compact "+name, func(ctx context.Context, l store.Lease) error {
		acquired = true
		return site.Fenced(l).Compact(ctx, superseded, retention)
	})
	if !acquired && errors.Is(err, millrace.ErrConflict) {
		return nil
	}
	return err
}
