package crawl

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/internal/fetch"
)

// Limits on waiting for a site that has stopped responding, such as a site that is restarting.
const (
	maxPauses = 2 // maximum number of pauses per run
	maxPause  = time.Minute
)

// shouldRetry reports whether to send a request again. If the request was not sent because the host
// is paused, shouldRetry first waits for the end of the pause. It does so at most maxPauses times
// per run.
func (r *run) shouldRetry(ctx context.Context, err error) bool {
	rest, ok := errors.AsType[*fetch.PauseError](err)
	if !ok || r.pauses >= maxPauses || rest.Asked { // the time in a Retry-After is usually too long to wait
		return false
	}
	wait := min(max(rest.Wait, 0), maxPause)
	if t := r.o.MaxTime; t > 0 && r.now().Sub(r.started)+wait >= t {
		r.pauses = maxPauses
		return false
	}
	r.pauses++
	r.log.Info("site stopped responding; waiting", "site", r.scope.base, "retry_in", wait, "err", err)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// postponed stores a result if its request was not sent because the host is paused. It reports
// whether it has stored the result.
func (r *run) postponed(res *result) bool {
	if _, ok := errors.AsType[*fetch.PauseError](res.err); !ok || r.pauses >= maxPauses {
		return false
	}
	r.asked--
	r.resting = append(r.resting, res)
	return true
}

// resume fetches the postponed addresses when no fetch is in progress: first one address, then
// the others.
func (r *run) resume(ctx context.Context) error {
	res, others := r.resting[0], r.resting[1:]
	for r.shouldRetry(ctx, res.err) {
		res = r.outages.ask(res.task)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.resting = nil
	for _, o := range others {
		r.again = append(r.again, o.task)
	}
	return r.take(res)
}
