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
	atOnce    = 4096 // events in one transaction of the store
	firstWait = time.Second
	maxWait   = time.Minute
	lastCall  = 10 * time.Second // to store what is left when Run ends
	tidyFirst = time.Minute
	tidyEvery = time.Hour
	// tidyDoubt is how much the clock may have been set since the last Tidy: what
	// it throws away by a wrong time is gone.
	tidyDoubt = 10 * time.Minute
)

// Run stores what comes until the context ends, and then what is left. While the
// store cannot take anything, it is asked again and again, ever less often.
// Beside that it tidies the store up. It can be called again.
func (r *Recorder) Run(ctx context.Context) {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { r.tidying(ctx) })
	tick := time.NewTicker(r.o.Every)
	defer tick.Stop()
	var wait time.Duration // 0 = the store takes events
	var told uint64        // of those that were dropped
	var toldAt time.Time
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastCall)
			defer cancel()
			if err := r.Flush(last); err != nil {
				r.o.Logger.Error("the last requests of machines could not be recorded", "error", err)
			}
			return
		case <-tick.C:
		case <-r.wake:
		}
		switch err := r.Flush(ctx); {
		case err != nil && ctx.Err() == nil:
			if wait == 0 {
				r.o.Logger.Warn("what machines ask for cannot be recorded for now", "error", err)
			}
			wait = min(max(2*wait, firstWait), maxWait)
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		case err == nil && wait > 0:
			wait = 0
			r.o.Logger.Info("what machines ask for is recorded again")
		}
		if n := r.Dropped(); n > told && time.Since(toldAt) > warnInterval {
			r.o.Logger.Warn("more is asked for than can be recorded: what is missing is in no sum", "missing", n-told)
			told, toldAt = n, time.Now()
		}
	}
}

// Flush stores all that has come. After an error, what was not stored waits.
func (r *Recorder) Flush(ctx context.Context) error {
	r.storing.Lock()
	defer r.storing.Unlock()
	if err := r.store(ctx); err != nil { // what waits since an error
		return err
	}
	r.take()
	r.fill(ctx)
	return r.store(ctx)
}

// store stores what was taken out of the buffer.
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
			r.o.Logger.Error("the store refuses what is to be recorded", "events", len(some), "error", err)
			r.mu.Lock()
			r.dropped += uint64(len(some))
			r.mu.Unlock()
		case err != nil:
			return fmt.Errorf("recording %d events: %w", len(r.taken)-done, err)
		}
		done += len(some)
	}
	return nil
}

// fill completes the events that were just taken.
func (r *Recorder) fill(ctx context.Context) {
	var pages []*store.Event
	for i := range r.taken {
		e := &r.taken[i]
		if r.o.QueryKey != nil && e.Query != "" {
			e.Query = hashed(r.o.QueryKey, e.Query)
		}
		if e.HTML < 0 { // the rest of a page, whose first part was an event of its own
			e.HTML = 0
			continue
		}
		if whole(e) {
			e.Results = 1
			pages = append(pages, e)
		}
		e.HTML = max(0, e.HTML)
	}
	if r.o.HTMLSizes == nil || len(pages) == 0 {
		return
	}
	if err := r.weights.fill(ctx, r.o.HTMLSizes, pages, r.o.Now()); err != nil && ctx.Err() == nil {
		r.o.Logger.Warn("what pages are as HTML is not known for some requests", "error", err)
	}
	for _, e := range pages {
		e.Received = max(0, e.Received)
	}
}

// whole reports whether an answer has told a machine all of one page, or that it
// stands as the machine has it. A HEAD, a part and a redirect have not.
func whole(e *store.Event) bool {
	return e.Endpoint == store.EndpointFetch && e.Path != "" && e.HTML >= 0 &&
		(e.Status == http.StatusOK && e.Bytes > 0 || e.Status == http.StatusNotModified)
}

// hashed returns a keyed hash that replaces a query. Equal queries have equal
// hashes. It starts with a mark of its own.
func hashed(key []byte, query string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(query))
	return "#" + hex.EncodeToString(mac.Sum(nil)[:12])
}

// tidying has the store forget and sum up what is old.
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
		if set.Abs() > tidyDoubt {
			r.o.Logger.Warn("the clock was set; nothing recorded is tidied up until it has been right for an hour", "by", set.Round(time.Second).String())
			continue
		}
		if err := r.tidy(ctx, now); err != nil && ctx.Err() == nil {
			r.o.Logger.Warn("what is recorded of machines could not be tidied up", "error", err)
		}
	}
}

// tidy tidies up once, unless another process does.
func (r *Recorder) tidy(ctx context.Context, now time.Time) error {
	f := func(ctx context.Context, l store.Lease) error {
		return r.usage.Tidy(ctx, l, r.site, now.Add(-r.o.Keep), now.Add(-r.o.KeepHours))
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
