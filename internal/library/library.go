// Package library searches the sites of a store. Each site has its own index next to the
// store.
package library

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/mcp"
	"github.com/millrace/millrace/store"
)

// Options configure a [Library].
type Options struct {
	Logger   *slog.Logger   // If nil, nothing is logged.
	Label    string         // label of the sites; if empty, all sites
	Embedder index.Embedder // If nil, the index learns from the site's own words.
	// Progress receives the progress of a step, counted in unit. An empty title ends the previous
	// step. If nil, progress is not reported.
	Progress func(title, unit string, done, total int)
}

// Library provides the sites of a store with their indexes. It implements [mcp.Library] and
// [mcp.Indexer]. Its methods are safe for concurrent use.
type Library struct {
	store store.Store
	path  string
	o     Options
	turn  chan struct{} // contains a value while an index is updated

	mu      sync.Mutex
	indexes map[string]*index.Index // by name of the site
}

// New returns the library of a store at a path. The caller must close the store.
func New(st store.Store, path string, o *Options) *Library {
	l := &Library{store: st, path: path, turn: make(chan struct{}, 1), indexes: make(map[string]*index.Index)}
	if o != nil {
		l.o = *o
	}
	if l.o.Logger == nil {
		l.o.Logger = slog.New(slog.DiscardHandler)
	}
	if l.o.Progress == nil {
		l.o.Progress = func(string, string, int, int) {}
	}
	return l
}

// Close closes the indexes; the library opens them again when needed.
func (l *Library) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, x := range l.indexes {
		errs = append(errs, x.Close())
	}
	clear(l.indexes)
	return errors.Join(errs...)
}

const (
	openIndexes = 100              // maximum number of open indexes
	refresh     = 10 * time.Minute // interval of updates
)

// Names implements [mcp.Library].
func (l *Library) Names(ctx context.Context) ([]string, error) {
	if l.o.Label != "" {
		return ingest.SitesWithLabel(ctx, l.store, l.o.Label)
	}
	return ingest.SiteNames(ctx, l.store)
}

// Site implements [mcp.Library].
func (l *Library) Site(ctx context.Context, name string) (*mcp.Site, error) {
	site, v, err := ingest.Head(ctx, l.store, name)
	if err != nil {
		return nil, err
	}
	x, err := l.index(ctx, name)
	if err != nil {
		return nil, err
	}
	out := &mcp.Site{Name: name, View: x.View(v)}
	terms, err := ingest.SiteTerms(ctx, l.store.State(), site)
	if err != nil {
		return nil, err
	}
	out.Terms = terms.Terms
	return out, nil
}

// index opens the index of a site.
func (l *Library) index(ctx context.Context, name string) (*index.Index, error) {
	l.mu.Lock()
	x, n := l.indexes[name], len(l.indexes)
	l.mu.Unlock()
	if x != nil {
		return x, nil
	}
	if n >= openIndexes {
		if err := l.Close(); err != nil {
			return nil, err
		}
	}
	x, err := index.Open(ctx, index.File(l.path, name), &index.Options{Logger: l.o.Logger, Embedder: l.o.Embedder})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.indexes[name]; other != nil {
		return other, x.Close()
	}
	l.indexes[name] = x
	return x, nil
}

// Index implements [mcp.Indexer].
func (l *Library) Index(ctx context.Context, name string, progress func(done, total int)) error {
	_, v, err := ingest.Head(ctx, l.store, name)
	if err != nil {
		return err
	}
	x, err := l.index(ctx, name)
	if err != nil {
		return err
	}
	return l.update(ctx, x, v, progress)
}

// update updates an index to a view. Only one index is updated at a time.
func (l *Library) update(ctx context.Context, x *index.Index, v millrace.View, progress func(done, total int)) error {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return x.Update(ctx, v, progress)
}

// prepare updates the index of a site to a view, and then fits the model of the index. If another
// process locks the index, prepare leaves it as is. note is the reason why a search by similarity is
// impossible, or nil.
func (l *Library) prepare(ctx context.Context, name string, x *index.Index, v millrace.View) (note, err error) {
	step := func(title, unit string) func(done, total int) {
		return func(done, total int) { l.o.Progress(title+" "+name, unit, done, total) }
	}
	defer l.o.Progress("", "", 0, 0)
	err = l.update(ctx, x, v, step("indexing", "pages"))
	switch {
	case ctx.Err() != nil:
		return nil, err
	case errors.Is(err, millrace.ErrUnavailable):
		l.o.Logger.Warn("index is out of date; searching it as is", "site", name, "err", err)
		return nil, nil
	case err != nil:
		return nil, err
	}
	if err = x.Fit(ctx, step("learning from", "passages")); ctx.Err() != nil {
		return nil, err
	}
	return err, nil
}

// Follow updates the indexes of changed sites immediately and then every ten minutes, until
// the context ends.
func (l *Library) Follow(ctx context.Context) {
	seen := make(map[string]uint64)
	for {
		names, err := l.Names(ctx)
		for _, name := range names {
			if ctx.Err() != nil {
				return
			}
			_, v, err := ingest.Head(ctx, l.store, name)
			if err != nil || v.Site().Seq == seen[name] {
				continue // unchanged, or not complete yet
			}
			seen[name] = v.Site().Seq
			x, err := l.index(ctx, name)
			if err == nil {
				var note error
				note, err = l.prepare(ctx, name, x, v)
				err = errors.Join(err, note)
			}
			if err != nil && ctx.Err() == nil {
				l.o.Logger.Warn("index is out of date; searching it as is", "site", name, "err", err)
			}
		}
		if err != nil && ctx.Err() == nil {
			l.o.Logger.Warn("could not list sites", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(refresh):
		}
	}
}
