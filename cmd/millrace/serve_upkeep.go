package main

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/store"
)

// fitting learns from what is published how its words are used, or has it
// embedded, so that a search finds by meaning, too. Until it is done, and when it
// fails, searches compare words.
func fitting(ctx context.Context, p *process, site store.Site, press *edition.Press) error {
	select {
	case <-ctx.Done():
		return nil
	case <-press.Ready():
	}
	var seq uint64
	told := false
	for {
		wait := refit
		if now := press.Current().View.Site().Seq; now != seq {
			start := time.Now()
			err := site.Fit(ctx, nil)
			switch {
			case ctx.Err() != nil:
				return nil //nolint:nilerr // stopping is no failure
			case err == nil:
				seq, told = now, false
			case !told:
				told = true
				p.log.Warn("searches compare words only", "error", err)
			}
			wait = max(refit, 20*time.Since(start))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// upkeeping compacts the store now and then.
func upkeeping(ctx context.Context, p *process, site store.Site) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(upkeep):
		}
		if err := site.Compact(ctx, keep, horizon); err != nil && ctx.Err() == nil {
			p.log.Error("compacting the store", "error", err)
		}
	}
}
