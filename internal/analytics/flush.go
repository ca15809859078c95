package analytics

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/store"
)

const (
	atOnce    = 4096 // maximum number of events in one transaction of the store
	firstWait = time.Second
	maxWait   = time.Minute
	lastCall  = 10 * time.Second // time limit for storing the pending events when Run ends
	tidyFirst = time.Minute
	tidyEvery = time.Hour
	// maxClockStep is the maximum change of the clock after which the recorder still deletes
	// events.
	maxClockStep = 10 * time.Minute
)

// Run stores events until the context ends, and then stores the pending events. While the store
// fails, Run retries with growing pauses. It also tidies the store. Run can be called again after
// it has returned.
func (r *Recorder) Run(ctx context.Context) {
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { r.tidying(ctx) })
	tick := time.NewTicker(r.o.Every)
	defer tick.Stop()
	var wait time.Duration // current pause between retries. If zero, the last Flush succeeded.
	var reported uint64    // number of dropped events that were logged
	var reportedAt time.Time
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCall)
			defer cancel()
			if err := r.Flush(last); err != nil {
				r.o.Logger.Error("could not store last events", "err", err)
			}
			return
		case <-tick.C:
		case <-r.wake:
		}
		switch err := r.Flush(ctx); {
		case err != nil && ctx.Err() == nil:
			if wait == 0 {
				r.o.Logger.Warn("could not store events; retrying", "err", err)
			}
			wait = min(max(2*wait, firstWait), maxWait)
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		case err == nil && wait > 0:
			wait = 0
			r.o.Logger.Info("storing events again")
		}
		if n := r.Dropped(); n > reported && time.Since(reportedAt) > warnInterval {
			r.o.Logger.Warn("too many events; some were dropped", "dropped", n-reported)
			reported, reportedAt = n, time.Now()
		}
	}
}

// Flush stores all pending events. Events that fail stay pending.
func (r *Recorder) Flush(ctx context.Context) error {
	r.storing.Lock()
	defer r.storing.Unlock()
	if err := r.store(ctx); err != nil { // events that could not be stored before
		return err
	}
	r.take()
	r.fill(ctx)
	return r.store(ctx)
}

// store stores the events taken from the buffer.
func (r *Recorder) store(ctx context.Context) error {
	done := 0
	defer func() {
		left := copy(r.taken, r.taken[done:])
		clear(r.taken[left:])
		r.taken = r.taken[:left]
	}()
	for done < len(r.taken) {
		some := r.taken[done:min(len(r.taken), done+atOnce)]
		err := r.usage.Record(ctx, r.site, some)
		switch {
		case errors.Is(err, millrace.ErrInvalid):
			r.o.Logger.Error("store refuses events; dropping them", "events", len(some), "err", err)
			r.mu.Lock()
			r.dropped += uint64(len(some))
			r.mu.Unlock()
		case err != nil:
			return fmt.Errorf("store %d events: %w", len(r.taken)-done, err)
		}
		done += len(some)
	}
	return nil
}

// fill sets the HTML sizes of the pages in the events taken from the buffer. If a QueryKey is set,
// it replaces queries with hashes.
func (r *Recorder) fill(ctx context.Context) {
	var pages []*store.Event
	for i := range r.taken {
		e := &r.taken[i]
		if r.o.QueryKey != nil && e.Query != "" {
			e.Query = hashed(r.o.QueryKey, e.Query)
		}
		if e.HTML < 0 { // a continuation of a page; the page counts with its first part
			e.HTML = 0
			continue
		}
		if isFullPage(e) {
			e.Results = 1
			pages = append(pages, e)
		}
		e.HTML = max(0, e.HTML)
	}
	if r.o.HTMLSizes == nil || len(pages) == 0 {
		return
	}
	if err := r.weights.fill(ctx, r.o.HTMLSizes, pages, r.o.Now()); err != nil && ctx.Err() == nil {
		r.o.Logger.Warn("could not read HTML sizes; some events lack them", "err", err)
	}
	for _, e := range pages {
		e.Received = max(0, e.Received)
	}
}

// isFullPage reports whether a response is one whole page, or a 304 for one. It returns false for
// responses to HEAD, partial responses and redirects.
func isFullPage(e *store.Event) bool {
	return e.Endpoint == store.EndpointFetch && e.Path != "" && e.HTML >= 0 &&
		(e.Status == http.StatusOK && e.Bytes > 0 || e.Status == http.StatusNotModified)
}

// hashed returns a keyed hash of a query, with the prefix "#". Equal queries have equal hashes.
func hashed(key []byte, query string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(query))
	return "#" + hex.EncodeToString(mac.Sum(nil)[:12])
}

// tidying deletes and summarizes old events periodically.
func (r *Recorder) tidying(ctx context.Context) {
	wait := tidyFirst
	wall, running := r.o.Now(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = tidyEvery
		now := r.o.Now()
		set := now.Round(0).Sub(wall.Round(0)) - time.Since(running)
		wall, running = now, time.Now()
		if set.Abs() > maxClockStep {
			r.o.Logger.Warn("clock was set; pausing event cleanup for an hour", "shift", set.Round(time.Second).String())
			continue
		}
		if err := r.tidy(ctx, now); err != nil && ctx.Err() == nil {
			r.o.Logger.Warn("could not clean up events", "err", err)
		}
	}
}

// tidy tidies the store once, unless another process is tidying it.
func (r *Recorder) tidy(ctx context.Context, now time.Time) error {
	f := func(ctx context.Context, l store.Lease) error {
		return r.usage.Tidy(ctx, l, r.site, now.Add(-r.o.Keep), now.Add(-keepHours))
	}
	if r.o.Leases == nil {
		return f(ctx, store.Lease{})
	}
	err := lease.Hold(ctx, r.o.Leases, "tidy "+r.site, f)
	if millrace.ErrorCode(err) == "lease-held" {
		return nil
	}
	return err
}
