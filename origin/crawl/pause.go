package crawl

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/internal/fetch"
)

// Bounds of the wait for a site that has stopped answering, such as one that is
// restarting.
const (
	maxPauses = 2 // of one run
	maxPause  = time.Minute
)

// rested waits as long as a host is to be left alone, if that is why a request
// was not sent and the run has not waited too often. It reports whether the
// request is to be sent again.
func (r *run) rested(ctx context.Context, err error) bool {
	rest, ok := errors.AsType[*fetch.RestError](err)
	if !ok || r.pauses >= maxPauses || rest.Asked { // for longer than anybody waits
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

// postponed keeps a task that was not sent because the host rests.
func (r *run) postponed(res *result) bool {
	if _, ok := errors.AsType[*fetch.RestError](res.err); !ok || r.pauses >= maxPauses {
		return false
	}
	r.asked--
	r.resting = append(r.resting, res)
	return true
}

// resume asks for what was postponed, when nothing is under way any more: for
// one address first, and for the others when that is settled.
func (r *run) resume(ctx context.Context) error {
	res, others := r.resting[0], r.resting[1:]
	for r.rested(ctx, res.err) {
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
