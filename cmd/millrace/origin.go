package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/origin/folder"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/sqlite"
)

// origin is where the pages come from, and the store that keeps them.
type origin struct {
	name   string         // of the site in the store
	base   string         // of the C-URLs
	path   string         // of the store
	folder *folder.Folder // nil: a mirror, that somebody else keeps fresh
	store  *sqlite.Store  // nil: not open yet
}

func (o *origin) openFolder(c *serveCommand, p *process) error {
	dir, err := filepath.Abs(c.Source)
	if err != nil {
		return err
	}
	if o.folder, err = folder.New(dir, &folder.Options{Base: o.base, Logger: p.log}); err != nil {
		return err
	}
	o.name, o.path = "folder "+dir, c.Store
	if o.path == "" {
		if o.path, err = p.storePath(dir); err != nil {
			return err
		}
	}
	if exposed(dir, o.path) {
		return usageError(fmt.Sprintf("--store %s: it is in the folder that is served, so that everybody could read what is hidden; keep it elsewhere", o.path))
	}
	return nil
}

// exposed reports whether a file is in a folder, and under no name there that
// is hidden from visitors.
func exposed(dir, file string) bool {
	var names [2]string
	for i, name := range []string{dir, filepath.Dir(file)} {
		abs, err := filepath.Abs(name)
		if err != nil {
			return false
		}
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			abs = real
		}
		names[i] = abs
	}
	rel, err := filepath.Rel(names[0], filepath.Join(names[1], filepath.Base(file)))
	return err == nil && !strings.HasPrefix(rel, ".") && !strings.Contains(rel, string(filepath.Separator)+".")
}

func (o *origin) openMirror(ctx context.Context, c *serveCommand, p *process) error {
	if c.Store != "" {
		return usageError("--store: a mirror is its own store")
	}
	var err error
	o.path = c.Source
	if o.store, err = sqlite.Open(ctx, o.path, &sqlite.Options{Logger: p.log}); err != nil {
		return err
	}
	names, err := o.store.Sites(ctx)
	if err == nil {
		o.name, err = choose(names, c.Site, c.Source)
	}
	if err != nil {
		return errors.Join(err, o.store.Close())
	}
	o.base = o.name
	return nil
}

// choose gives the one site of a mirror that is meant.
func choose(names []string, want, file string) (string, error) {
	var sites []string
	for _, n := range names {
		if strings.Contains(n, "://") {
			sites = append(sites, n)
		}
		if want != "" && strings.TrimSuffix(n, "/") == strings.TrimSuffix(want, "/") {
			return n, nil
		}
	}
	switch {
	case len(sites) == 0:
		return "", fmt.Errorf("%s: %w: no mirrored site in it", file, millrace.ErrNotFound)
	case want != "" || len(sites) > 1:
		return "", usageError(fmt.Sprintf("name one of the sites in %s with --site: %s", file, strings.Join(sites, ", ")))
	}
	return sites[0], nil
}

// ingest keeps the store equal to the source, and tells the press.
func (o *origin) ingest(ctx context.Context, p *process, site store.Site, press *edition.Press) error {
	bar := p.progress("deriving")
	err := site.Derive(ctx, bar.show)
	bar.end()
	if err != nil {
		return err
	}
	if o.folder == nil {
		return o.follow(ctx, p, site, press)
	}
	wake := make(chan struct{}, 1)
	go func() {
		// It calls back at once, so the first look comes from here too.
		if err := o.folder.Watch(ctx, func() { notify(wake) }); err != nil && ctx.Err() == nil {
			p.log.Error("watching the folder", "error", err)
			notify(wake)
		}
	}()
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-time.After(rescan):
		}
		if err := mine(ctx, site); err != nil {
			return err
		}
		report, err := o.sync(ctx, p, site)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopping is no failure
		}
		switch {
		case err != nil && first && press.Current() == nil:
			return err
		case err != nil:
			p.log.Error("the folder could not be taken in; what was published stays", "error", err)
			// What stood in the way, such as a full disk, need not be in the folder.
			time.AfterFunc(retry, func() { notify(wake) })
			continue
		}
		press.Changed()
		if report.Doubted > 0 {
			// The folder may be in the middle of a deployment, which tells of
			// itself again and again: the second look has to be a later one.
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(recheck):
				notify(wake)
			}
		}
	}
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

// follow publishes what others put into a mirror.
func (o *origin) follow(ctx context.Context, p *process, site store.Site, press *edition.Press) error {
	seq := uint64(math.MaxUint64) // none
	for {
		start := time.Now()
		v, err := site.Head(ctx)
		if errors.Is(err, millrace.ErrConflict) {
			// Whoever pulls knows nothing of what this server hides.
			if err = site.Derive(ctx, nil); err == nil {
				v, err = site.Head(ctx)
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // stopping is no failure
		case err != nil:
			p.log.Error("looking for changes of the mirror; what was published stays", "error", err)
		case v.Site().Seq != seq:
			seq = v.Site().Seq
			press.Changed()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(look, 20*time.Since(start))):
		}
	}
}

// notify wakes the other side, once for any number of calls.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sync takes one look at the whole folder.
func (o *origin) sync(ctx context.Context, p *process, site store.Site) (*mirror.Report, error) {
	start, bar := time.Now(), p.progress("reading "+filepath.Base(strings.TrimPrefix(o.name, "folder ")))
	report, err := mirror.Sync(ctx, o.name, o.folder, site, &mirror.Options{
		Logger:   p.log,
		Progress: func(g mirror.Progress) { bar.show(g.Done, g.Named) },
	})
	bar.end()
	if err != nil {
		return report, err
	}
	if report.Added+report.Updated+report.Deleted > 0 {
		p.log.Info("ingested", "added", report.Added, "updated", report.Updated, "deleted", report.Deleted,
			"unchanged", report.Unchanged, "skipped", report.SkippedN, "took", time.Since(start).Round(time.Millisecond))
		for i, s := range report.Skipped {
			if i == shownSkips {
				p.log.Warn("and more were skipped", "count", report.SkippedN-i)
				break
			}
			p.log.Warn("skipped", "url", s.URL, "reason", s.Reason)
		}
	}
	return report, nil
}
