package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/millrace/millrace"
)

// updateBatch is the maximum number of pages that [Update] keeps in memory.
const updateBatch = 8

// Update syncs single pages between the runs of [Sync]. urls are the URLs of the pages at the
// source. If gone is true, Update deletes the pages without a request; a later run may add them
// again. If the source reports that a page does not exist, Update deletes the page at once. If a
// page cannot be fetched, it stays unchanged and is in the report.
//
// The report is never nil. If Update returns an error, the report describes the work done before
// the error.
func Update(ctx context.Context, from string, src millrace.Source, sink millrace.Sink, urls []string, gone bool, o *Options) (*Report, error) {
	if o == nil {
		o = &Options{}
	}
	r := &run{from: from, src: src, sink: sink, o: *o, report: &Report{}}
	if r.o.Concurrency <= 0 {
		r.o.Concurrency = 4
	}
	if r.o.Logger == nil {
		r.o.Logger = slog.New(slog.DiscardHandler)
	}
	r.syncState, _ = sink.(millrace.SyncState)
	seen := make(map[string]bool, len(urls))
	urls = slices.DeleteFunc(slices.Clone(urls), func(u string) bool {
		twice := seen[u]
		seen[u] = true
		return twice
	})
	for some := range slices.Chunk(urls, updateBatch) {
		if err := r.update(ctx, some, gone); err != nil {
			return r.report, fmt.Errorf("update %s: %w", from, err)
		}
	}
	return r.report, nil
}

// update fetches pages and applies their changes.
func (r *run) update(ctx context.Context, urls []string, gone bool) error {
	known := make(map[string]millrace.Ref)
	if r.syncState != nil {
		if err := collect(known, r.syncState.KnownRefs(ctx, r.from, urls...)); err != nil {
			return err
		}
	}
	steps := make([]step, len(urls))
	var wg sync.WaitGroup
	turns := make(chan struct{}, r.o.Concurrency)
	for i, u := range urls {
		ref, is := known[u]
		if !is {
			ref = millrace.Ref{URL: u}
		}
		if gone {
			steps[i].change = millrace.Change{Kind: millrace.Delete, Ref: ref}
			steps[i].same = !is && r.syncState != nil
			continue
		}
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			steps[i] = r.fetch(ctx, ref, is)
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return err // the errors of the pages may be mere consequences of this error
	}
	var batch []millrace.Change
	for _, s := range steps {
		if s.requested {
			r.report.Requested++
		}
		switch {
		case s.err != nil:
			r.skip(s.change.URL, s.err)
		case s.same:
			r.report.Unchanged++
		default:
			batch = append(batch, s.change)
		}
	}
	if len(batch) == 0 {
		return nil
	}
	t, err := r.sink.Apply(ctx, r.from, batch)
	r.report.Add(t)
	return err
}

// fetch fetches the current state of a page.
func (r *run) fetch(ctx context.Context, have millrace.Ref, known bool) step {
	s := step{change: millrace.Change{Kind: millrace.Put, Ref: have}, requested: true}
	p, err := r.src.Page(ctx, have)
	switch {
	case err == nil:
		s.change.Page, s.change.Version = p, p.Version
	case errors.Is(err, millrace.ErrUnmodified):
		s.same = true
	case errors.Is(err, millrace.ErrNotFound) && known:
		s.change = millrace.Change{Kind: millrace.Delete, Ref: have}
	default:
		s.err = err
	}
	return s
}
