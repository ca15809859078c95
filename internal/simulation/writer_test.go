package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/store"
)

// folderWriter changes the origin and mirrors it into the store.
func (w *world) folderWriter(l *process) error {
	_, site, err := w.open(l)
	if err != nil {
		return err
	}
	for l.ctx.Err() == nil {
		w.sync(l, site, true)
		if w.settling.Load() {
			return errDone
		}
		sleep(l.ctx, pause(l.rng))
		for range 1 + l.rng.IntN(4)*l.rng.IntN(3) {
			w.logf("origin: %s", w.origin.change())
		}
		if l.rng.IntN(12) == 0 {
			err := site.Compact(l.ctx, 30*time.Second, 45*time.Second)
			w.logf("%s compacts: %v", l.name, err)
		}
	}
	return l.ctx.Err()
}

// pause is sometimes short, so that two edits happen within one second.
func pause(rng *rand.Rand) time.Duration {
	if rng.IntN(3) == 0 {
		return between(rng, time.Millisecond, 200*time.Millisecond)
	}
	return between(rng, 500*time.Millisecond, 6*time.Second)
}

// sync scans the origin once, or twice if a list needs confirmation.
func (w *world) sync(l *process, site store.Site, faulty bool) bool {
	for range 2 {
		src := source{w.origin, w, l, faulty}
		report, err := mirror.Sync(l.ctx, "folder", src, saving{site, w, l}, &mirror.Options{Batch: 1 + l.rng.IntN(12), Concurrency: 1 + l.rng.IntN(3)})
		w.logf("%s: %+v, skipped %d, unconfirmed %d, %v", l.name, report.Counts, report.SkippedN, report.UnconfirmedDeletions, err)
		w.notify(l.rng)
		if report.UnconfirmedDeletions == 0 || err != nil {
			return err == nil && report.SkippedN == 0
		}
	}
	return true
}

// notify sends one replica, or none, a change notification.
func (w *world) notify(rng *rand.Rand) {
	i := rng.IntN(w.replicas + 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if i < w.replicas {
		if l := w.lives[replicaName(i)]; l != nil && l.gate != nil {
			l.server.Changed()
		}
	}
}

// api is the second source. It applies its own batches, and records which of them were
// acknowledged.
type api struct {
	rng   *rand.Rand
	rev   int
	acked map[string]entry // by absolute URL
	next  map[string]entry // with the unacknowledged batch; nil = none
}

func newAPI(rng *rand.Rand) *api { return &api{rng: rng, acked: make(map[string]entry)} }

// batch returns a batch of changes, and the state after it.
func (a *api) batch() (batch []millrace.Change) {
	a.next = maps.Clone(a.acked)
	for range 1 + a.rng.IntN(6) {
		a.rev++
		path := fmt.Sprintf("/api/%d", a.rng.IntN(12))
		c := millrace.Change{Ref: millrace.Ref{URL: base + path[1:]}}
		if a.rng.IntN(4) == 0 {
			c.Kind = millrace.Delete
			delete(a.next, c.URL)
		} else {
			e := entry{url: path, rev: a.rev}
			c.Page, c.Version = e.page(), e.version()
			a.next[c.URL] = e
		}
		batch = append(batch, c)
	}
	mark := &millrace.Checkpoint{Cursor: millrace.Cursor(fmt.Sprint(a.rev))}
	return append(batch, millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: mark})
}

// apiWriter applies batches. After every start, it checks that the store has all acknowledged
// batches, and the unacknowledged one completely or not at all.
func (w *world) apiWriter(l *process) error {
	_, site, err := w.open(l)
	if err != nil {
		return err
	}
	a := w.api
	got := make(map[string]string)
	for ref, err := range site.KnownRefs(l.ctx, "api") {
		if err != nil {
			return err
		}
		got[ref.URL] = ref.Version
	}
	switch {
	case maps.Equal(got, versions(a.acked)):
	case a.next != nil && maps.Equal(got, versions(a.next)):
		a.acked = a.next
	default:
		w.fail("the store has %v from the api, acknowledged %v, in progress %v", got, versions(a.acked), versions(a.next))
	}
	a.next = nil
	for l.ctx.Err() == nil {
		if w.settling.Load() {
			return errDone
		}
		sleep(l.ctx, pause(l.rng))
		counts, err := saving{site, w, l}.Apply(l.ctx, "api", a.batch())
		w.logf("%s: %+v, %v", l.name, counts, err)
		if err != nil {
			return err
		}
		a.acked, a.next = a.next, nil
		w.notify(l.rng)
	}
	return l.ctx.Err()
}

func versions(entries map[string]entry) map[string]string {
	out := make(map[string]string)
	for u, e := range entries {
		out[u] = e.version()
	}
	return out
}
