package main

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/store"
)

const (
	retry  = time.Minute      // after an update of the index that has failed
	refit  = 10 * time.Second // between two looks whether there is something to learn
	upkeep = time.Hour        // between two compactions
)

// following keeps the search index up to date with what is published. Publication
// does not wait for it.
func following(ctx context.Context, p *process, x *index.Index, title string, press *edition.Press) error {
	select {
	case <-ctx.Done():
		return nil
	case <-press.Ready():
	}
	failing := false
	for {
		moved := press.Moved()
		bar := p.progress("indexing " + title)
		err := x.Update(ctx, press.Current().View, bar.show)
		bar.end()
		wait := time.Hour
		if err != nil && ctx.Err() == nil {
			if wait = retry; !failing {
				p.log.Warn("search index is not up to date", "err", err)
			}
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-moved:
		case <-time.After(wait):
		}
	}
}

// fitting learns from the search index how the words of the site are used, or
// asks an embedder, so that searches find by meaning. Until it is done, and when
// it fails, searches compare words. It does nothing before the first search.
func fitting(ctx context.Context, p *process, x *index.Index, press *edition.Press) error {
	select {
	case <-ctx.Done():
		return nil
	case <-press.Ready():
	}
	var seq uint64
	failing := false
	for {
		wait := refit
		if v := press.Current().View; x.Wanted() && v.Site().Seq != seq {
			start := time.Now()
			err := x.Update(ctx, v, nil) // after the one under way
			if err == nil {
				err = x.Fit(ctx, nil)
			}
			switch {
			case ctx.Err() != nil:
				return nil //nolint:nilerr // stopping is no failure
			case err == nil:
				seq = v.Site().Seq
			case !failing:
				p.log.Warn("searches compare words only", "err", err)
			}
			failing = err != nil
			wait = max(refit, 20*time.Since(start))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// upkeeping compacts the store now and then, and deletes old search indexes.
func upkeeping(ctx context.Context, p *process, o *origin, site store.Site, x *index.Index) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(upkeep):
		}
		if err := ingest.Compact(ctx, o.Store, o.Name, site); err != nil && ctx.Err() == nil {
			p.log.Error("compacting the store", "error", err)
		}
		if err := x.Tidy(); err != nil {
			p.log.Warn("could not delete old search indexes", "err", err)
		}
	}
}
