package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
)

// Options are the options of [Sync]. The zero value is ready to use.
type Options struct {
	Concurrency int // number of concurrent fetches. If zero, 4.
	Batch       int // maximum number of changes per transaction of the sink. If zero, 200.
	Failures    int // the run ends after this number of consecutive unavailable pages. If zero, 20.

	// Fallback fetches a page that the source names but cannot return, and returns the name of the
	// protocol that it used. If Fallback is nil, Sync skips such pages.
	Fallback func(ctx context.Context, ref millrace.Ref) (p *millrace.Page, protocol string, err error)
	// Enough is called before each page is fetched. If Enough returns an error, the run applies the
	// pages that are being fetched and ends; the next run continues. Enough may be nil.
	Enough func() error
	// Progress is called often, from one goroutine. It may be nil.
	Progress func(Progress)
	Logger   *slog.Logger // If nil, nothing is logged.
}

// Progress is the progress of a run.
type Progress struct {
	Found int // number of pages that the source has named so far
	Done  int // number of named pages that are finished
}

// Report is the result of a run.
type Report struct {
	millrace.Counts
	Requested  int   // number of pages requested from the source
	Unmodified int   // number of requested pages that have not changed
	Fetched    int   // number of received pages, requested or not, without aliases
	Text       int64 // bytes of text in the received pages, including titles
	// Unconfirmed is the number of received pages that do not match the hash sent with them
	// ([millrace.Page].Unconfirmed).
	Unconfirmed          int
	Skipped              []Skip         // the first 100,000 skipped pages
	SkippedN             int            // total number of skipped pages
	Unavailable          int            // number of skipped pages that were unavailable; the next run requests them again
	Fallbacks            map[string]int // number of pages fetched with another protocol, by the name of the protocol
	Fallback             error          // reason for the first use of Options.Fallback, or nil if not used
	UnconfirmedDeletions int            // number of missing pages that are kept until the next run confirms their deletion; see Sync
}

// Skip is a page that the run left unchanged, with the reason.
type Skip struct {
	URL    string `json:"url"`
	Code   string `json:"code"` // error code of the reason
	Reason string `json:"reason"`
}

const maxSkips = 100_000

// Sync applies the changes of a source since the last run to a sink. from identifies the source in
// the sink by its origin and protocol.
//
// Applied changes are durable. After an interruption, the next run repeats at most one batch and
// the pages that were being fetched. The source's cursor advances only after all pages that it
// covers have arrived, in the versions that the source named.
//
// Pages that are missing from a complete list are deleted. If a list is suddenly empty, or at
// least a fifth of its pages is missing, Sync keeps these pages until the next run confirms the loss.
// Report.UnconfirmedDeletions counts them.
//
// The report is never nil. If Sync returns an error, the report describes the work done before the
// error.
func Sync(ctx context.Context, from string, src millrace.Source, sink millrace.Sink, o *Options) (*Report, error) {
	if o == nil {
		o = &Options{}
	}
	r := &run{from: from, src: src, sink: sink, o: *o, report: &Report{}}
	if r.o.Concurrency <= 0 {
		r.o.Concurrency = 4
	}
	if r.o.Batch <= 0 {
		r.o.Batch = 200
	}
	if r.o.Failures <= 0 {
		r.o.Failures = 20
	}
	if r.o.Logger == nil {
		r.o.Logger = slog.New(slog.DiscardHandler)
	}
	r.syncState, _ = sink.(millrace.SyncState)
	err := r.do(ctx)
	if errors.Is(err, millrace.ErrConflict) && r.state.Cursor != "" {
		r.o.Logger.Info("source refused the cursor; starting over", "source", from)
		r.fresh = true
		err = r.do(ctx)
	}
	if isTruncated(err) && r.prog == (Progress{}) && r.report.SkippedN == 0 && ctx.Err() == nil {
		err = r.do(ctx) // the list ended early, and nothing was applied
	}
	return r.report, err
}

// run is one call of Sync.
type run struct {
	from      string
	src       millrace.Source
	sink      millrace.Sink
	syncState millrace.SyncState // nil if the sink does not implement it
	o         Options
	report    *Report

	state       state // state in the sink at the start of the run
	fresh       bool  // ignore state.Cursor
	seen        seen
	batch       batch
	complete    []millrace.Checkpoint // checkpoints of complete lists, which are applied after the stream has ended
	last        *millrace.Checkpoint  // latest checkpoint of the stream
	failed      bool                  // a page is missing, so the cursor does not advance
	mismatch    uint64                // hash of the pages whose version differs from the list; see noteMismatch
	consecutive atomic.Int32          // number of consecutive unavailable pages
	prog        Progress
	limit       memoryLimit // limits the pages that wait to be applied
}

// batch is a set of changes for one transaction of the sink.
type batch struct {
	changes []millrace.Change
	since   time.Time // time of the first change
	size    int       // approximate size of the pages in bytes
}

const (
	batchBytes = 4 << 20
	batchAge   = time.Second
)

// do runs three stages: one goroutine reads the stream, others fetch pages, and the calling
// goroutine applies changes.
func (r *run) do(ctx context.Context) error {
	var err error
	if r.syncState != nil {
		stored, err := r.syncState.Cursor(ctx, r.from)
		if err != nil {
			return err
		}
		r.state = parseState(stored)
	}
	r.seen, r.complete, r.last, r.failed, r.mismatch, r.prog, r.batch = seen{}, nil, nil, false, 0, Progress{}, batch{}
	r.consecutive.Store(0)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	steps := r.stream(ctx)
	for s := range steps {
		r.limit.give(s.size)
		if err == nil {
			if err = r.take(ctx, s); err != nil {
				cancel(err) // cancel the goroutines, and drain the channel until they have ended
			}
		}
	}
	if err != nil {
		// Apply the received pages even if the source has failed.
		return errors.Join(err, r.flush(context.WithoutCancel(ctx)))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.finish(ctx)
}

// take applies one step of the stream.
func (r *run) take(ctx context.Context, s step) error {
	switch {
	case s.skip != nil:
		r.skip(s.skip.URL, s.skip.Err)
	case s.err != nil && s.requested:
		return r.miss(s)
	case s.err != nil:
		return s.err
	case s.change.Kind == millrace.KindCheckpoint:
		r.last = s.change.Checkpoint
		if s.change.Checkpoint.Complete {
			r.complete = append(r.complete, *s.change.Checkpoint)
			return nil
		}
		return r.mark(ctx, s.change.Checkpoint.Cursor)
	case s.same:
		r.report.Unchanged++
	default:
		if err := r.put(ctx, s.change); err != nil {
			return err
		}
	}
	if s.requested {
		r.report.Requested++
		if s.change.Page == nil {
			r.report.Unmodified++
		}
		r.noteMismatch(s.change.URL, s.listed, s.got)
	}
	if s.via != "" {
		if r.report.Fallbacks == nil {
			r.report.Fallbacks, r.report.Fallback = map[string]int{}, s.cause
		}
		r.report.Fallbacks[s.via]++
	}
	r.prog.Found = max(r.prog.Found, s.named)
	if s.change.Kind != millrace.KindCheckpoint {
		r.prog.Done++
	}
	if r.o.Progress != nil {
		r.o.Progress(r.prog)
	}
	return nil
}

// skip records a page that stays unchanged.
func (r *run) skip(url string, why error) {
	r.report.SkippedN++
	if errors.Is(why, millrace.ErrUnavailable) {
		r.report.Unavailable++
	}
	if len(r.report.Skipped) < maxSkips {
		r.report.Skipped = append(r.report.Skipped, Skip{url, millrace.ErrorCode(why), why.Error()})
	}
}

// miss handles a page that the source has named but not returned.
func (r *run) miss(s step) error {
	r.report.Requested++
	r.prog.Done++
	r.failed = true
	r.skip(s.change.URL, s.err)
	if int(r.consecutive.Load()) >= r.o.Failures {
		return millrace.Coded("too-many-failures", fmt.Errorf("gave up after %d unavailable pages in a row: %w", r.o.Failures, s.err))
	}
	return nil
}

// put adds a change to the batch, and applies the batch when it is full.
func (r *run) put(ctx context.Context, c millrace.Change) error {
	if len(r.batch.changes) == 0 {
		r.batch.since = time.Now()
	}
	r.batch.changes = append(r.batch.changes, c)
	if c.Page != nil {
		r.batch.size += pageSize(c.Page)
		if c.Page.Known != 0 { // otherwise, the page is only an alias
			_, text := measure(c.Page.Blocks)
			r.report.Fetched++
			if c.Page.Unconfirmed {
				r.report.Unconfirmed++
			}
			r.report.Text += int64(len(c.Page.Title) + text)
		}
	}
	if len(r.batch.changes) >= r.o.Batch || r.batch.size >= batchBytes || time.Since(r.batch.since) > batchAge {
		return r.flush(ctx)
	}
	return nil
}

// pageSize returns the approximate size of a page in bytes.
func pageSize(p *millrace.Page) int {
	parts, text := measure(p.Blocks)
	return 64*parts + text + len(p.Original)
}

// measure returns the number of parts of blocks, at all levels, and the size of their text in
// bytes.
func measure(blocks []millrace.Block) (parts, text int) {
	inner := func(blocks []millrace.Block) {
		p, t := measure(blocks)
		parts, text = parts+p, text+t
	}
	parts = len(blocks)
	for _, b := range blocks {
		text += len(b.Text)
		inner(b.Blocks)
		parts += len(b.Items)
		for _, it := range b.Items {
			text += len(it.Term) + len(it.Text)
			inner(it.Blocks)
		}
		for _, row := range b.Rows {
			parts += len(row)
			for _, c := range row {
				text += len(c.Text)
			}
		}
	}
	return parts, text
}

// flush applies the batch.
func (r *run) flush(ctx context.Context) error {
	if len(r.batch.changes) == 0 {
		return nil
	}
	t, err := r.sink.Apply(ctx, r.from, r.batch.changes)
	r.batch = batch{} // a rejected batch is not retried
	if err != nil {
		return err
	}
	r.report.Add(t)
	return nil
}

// mark applies the batch together with a new cursor. It keeps the previous cursor if an earlier
// page is missing or has another version, or if deletions are unconfirmed.
func (r *run) mark(ctx context.Context, c millrace.Cursor) error {
	if r.failed || r.mismatch != 0 || len(r.complete) > 0 {
		return r.flush(ctx)
	}
	r.state.Cursor = c
	r.batch.changes = append(r.batch.changes, markChange(state{Cursor: c, Mismatch: r.state.Mismatch}))
	return r.flush(ctx)
}

func markChange(s state) millrace.Change {
	return millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: s.encode()}}
}
