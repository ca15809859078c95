package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/sqlite"
)

// follow publishes what others put into a mirror.
func (o *origin) follow(ctx context.Context, p *process, site store.Site, press *edition.Press) error {
	seq := uint64(math.MaxUint64) // none
	var r retaking
	for {
		start := time.Now()
		again := false
		v, err := site.Head(ctx)
		if errors.Is(err, millrace.ErrConflict) {
			if again, err = r.due(ctx, o, site, start); errors.Is(err, millrace.ErrConflict) {
				return err
			}
			if again {
				if err = site.Derive(ctx, nil); err == nil {
					v, err = site.Head(ctx)
				}
			}
		} else if err == nil {
			r.seen = sqlite.Derivation{}
		}
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // stopping is no failure
		case err != nil:
			p.log.Error("looking for changes of the mirror; what was published stays", "error", err)
		case v != nil && v.Site().Seq != seq:
			seq = v.Site().Seq
			o.changed(ctx, p, site, press)
		}
		if again {
			r.done(time.Now(), time.Since(start))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(max(peek, 20*time.Since(start))):
		}
	}
}

// retaking is when a server makes the pages of a mirror again, because others
// have made them by a configuration of theirs. Whoever pulls does so in every
// run, and knows nothing of what this server hides; a build does once, and the
// next one may follow soon. Another server would do so again and again, as often
// as this one.
type retaking struct {
	seen  sqlite.Derivation // that was under way at the last look
	other bool              // it is no pull that the pages are taken from now
	times int               // they were taken from one that does not pull, each soon after the last
	until time.Time         // how long that is
}

// patience is how often pages are taken from somebody who does not pull before
// that is another server: what was there before the server read its rules again,
// and two tries of a build, are not.
const patience = 3

// contested is how long pages that were taken from somebody who does not pull
// have to stay taken for the count to begin anew, at least: longer than two
// servers need for a turn each.
const contested = 5 * time.Minute

// due says whether the pages are to be made now. Somebody else who is at it is
// let finish: two who derive at once have each other begin anew. ErrConflict:
// another server will not leave the pages to this one.
func (r *retaking) due(ctx context.Context, o *origin, site store.Site, now time.Time) (bool, error) {
	own, ok := site.(*sqlite.Site)
	if !ok {
		return true, nil
	}
	pulls, err := o.store.Site(ctx, o.name, mirrorConfig(o.name))
	if err != nil {
		return false, err
	}
	d, err := own.Derivation(ctx)
	if err != nil {
		return false, err
	}
	seen := r.seen
	r.seen = d
	if d.UnderWay && d != seen {
		return false, nil
	}
	r.other = d.By != "" && d.By != own.Fingerprint() && d.By != pulls.Fingerprint()
	if !now.Before(r.until) {
		r.times = 0
	}
	if r.other && r.times == patience {
		return false, fmt.Errorf("another millrace publishes this mirror with another --base-url, --listen or rule of what to hide, "+
			"so that each makes its pages again after the other: give each the same, or a copy of the file: %w", millrace.ErrConflict)
	}
	return true, nil
}

// done says that the pages have been made again, and how long that took with
// what is made of them.
func (r *retaking) done(at time.Time, took time.Duration) {
	if r.other {
		// Another server takes as long, and looks as seldom after it.
		r.times, r.until = r.times+1, at.Add(max(contested, 100*took))
	}
}
