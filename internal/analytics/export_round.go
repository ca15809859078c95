package analytics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/store"
)

// poster posts events to a receiver of some kind.
type poster interface {
	// group divides events into those that go together in one request. The order
	// of each part is theirs.
	group(events []store.Event) [][]store.Event
	// post posts a group once. If the receiver has taken it and does not count it,
	// ignored says why. Errors wrap a [*fetch.StatusError] if there was an answer.
	post(ctx context.Context, group []store.Event) (ignored string, err error)
}

// round hands on one window of events. It reports whether it has come further;
// then there may be more.
func (e *Exporter) round(ctx context.Context) (moved bool, err error) {
	before := e.at
	if !e.begun {
		if err := e.begin(ctx); err != nil {
			return false, err
		}
		before = e.at
	}
	head, err := e.newest(ctx)
	if err != nil || head <= e.at {
		return false, err
	}
	events, end, err := e.window(ctx, head)
	if err != nil {
		return false, err
	}
	var todo, last []store.Event
	for _, ev := range events {
		if _, doubted := e.doubts[ev.Number]; doubted {
			last = append(last, ev) // or it would be asked for nothing else
		} else if !e.done[ev.Number] {
			todo = append(todo, ev)
		}
	}
	if todo = append(todo, last...); len(todo) > 0 {
		err = e.deliver(ctx, e.receiver.group(todo))
	}
	// All up to the first one that is not done is done, as is what is lost.
	to := end
	for _, ev := range events {
		if !e.done[ev.Number] {
			to = ev.Number - 1
			break
		}
	}
	if to == e.at {
		return false, err
	}
	// What was taken was taken, even if the process is to end. A process whose lease
	// is over may come late: it must not take another one's place back.
	failed := e.place.Update(context.WithoutCancel(ctx), func(p **exportPlace) error {
		if *p == nil || (*p).Number != e.at {
			return fmt.Errorf("place of the export: %w: another process has moved it", millrace.ErrConflict)
		}
		*p = &exportPlace{to}
		return nil
	})
	if failed != nil {
		e.begun = false // begin again where the other one is
		return false, errors.Join(err, failed)
	}
	e.at = to
	e.note(func(l *Lag) {
		e.moves++
		if l.Events = max(head, to) - to; l.Events == 0 {
			l.Since = time.Time{}
		}
	})
	// There may be many years of those that are lost; of those that are done, few.
	lost, lowest, highest := to-before, before+1, to
	for e.done[lowest] {
		lowest++
	}
	for e.done[highest] {
		highest--
	}
	for n := range e.done {
		if n <= to {
			lost--
			delete(e.done, n)
		}
	}
	if lost > 0 {
		e.note(func(l *Lag) { l.Lost += lost })
		e.o.Logger.WarnContext(ctx, "events are lost to a receiver: they are too old, or damaged in the store",
			"receiver", e.target.String(), "events", lost, "first", lowest, "last", highest)
	}
	return true, err
}

// begin finds where the exporter is. A new receiver gets the events of the last
// day. Before the first event there is nothing to begin with.
func (e *Exporter) begin(ctx context.Context) error {
	place, err := e.place.Load(ctx)
	if err != nil {
		return err
	}
	if place == nil {
		at, err := e.newest(ctx)
		if err != nil || at == 0 {
			return err
		}
		for first, err := range e.usage.Events(ctx, e.site, store.EventQuery{From: e.o.Now().Add(-beforeFirst), Limit: 1}) {
			if err != nil {
				return err
			}
			at = first.Number - 1
		}
		place = &exportPlace{at}
		if err := e.place.Save(ctx, place); err != nil {
			return err
		}
	}
	e.at, e.begun = place.Number, true
	return nil
}

// window reads the events that are next, and where they end: the number up to
// which there are no others. head is the newest number.
func (e *Exporter) window(ctx context.Context, head uint64) (events []store.Event, end uint64, err error) {
	q := store.EventQuery{After: e.at, Limit: e.kind.window + min(len(e.done), mostAhead)}
	if e.kind.patience > 0 {
		q.From = e.o.Now().Add(-e.kind.patience)
	}
	for ev, err := range e.usage.Events(ctx, e.site, q) {
		if err != nil {
			return nil, 0, err
		}
		if o := store.OutcomeOf(ev.Status); o != store.Sent && o != store.Unmodified {
			ev.Path = "" // it may be that of a hidden page, which is the owner's to see
		}
		events = append(events, ev)
	}
	if len(events) < q.Limit { // those after the last one, up to head, are lost
		end = head
	}
	if n := len(events); n > 0 {
		end = max(end, events[n-1].Number)
	}
	return events, end, nil
}

const (
	mostRefused = 8    // requests of a round of which the receiver has taken none
	mostDoubts  = 10   // times that an event fails where others are taken
	mostAhead   = 4096 // events that may be handed on before one that is not
)

// refusals are the statuses of an answer that mean what was sent, rather than the
// receiver or who sends.
var refusals = map[int]bool{
	http.StatusBadRequest: true, http.StatusLengthRequired: true, http.StatusRequestEntityTooLarge: true, http.StatusRequestURITooLong: true,
	http.StatusUnsupportedMediaType: true, http.StatusUnprocessableEntity: true, http.StatusRequestHeaderFieldsTooLarge: true,
}

// delivery is what becomes of the groups of one round.
type delivery struct {
	e *Exporter

	mu      sync.Mutex
	queue   [][]store.Event
	flying  int // requests that are under way
	taken   int
	refused []store.Event
	refuses int           // requests that were refused
	doubted []store.Event // the receiver has stumbled, perhaps over them
	err     error         // ends it
	last    error         // of one that is refused or doubted
	ignored string        // what is to be told of that
}

// deliver posts groups, the next one when one is done, until all are or the
// receiver does not take any. A group that is refused is posted in halves. What
// is refused alone is given up, but only if the receiver has taken something else:
// otherwise it may be anything that is wrong. So is, at last, a single event that
// a receiver fails at, time and again, while it takes others.
func (e *Exporter) deliver(ctx context.Context, groups [][]store.Event) error {
	d := &delivery{e: e, queue: groups}
	var posting sync.WaitGroup
	workers := min(e.kind.parallel, len(groups))
	if e.stuck {
		workers = 1 // whether it takes anything again
	}
	for range workers {
		posting.Go(func() {
			for d.step(ctx) {
			}
		})
	}
	posting.Wait()
	e.stuck = d.taken == 0
	if d.ignored != "" {
		e.o.Logger.WarnContext(ctx, "a receiver takes events and does not count them", "receiver", e.target.String(), "reason", d.ignored)
	}
	given := d.refused
	for _, ev := range d.doubted {
		n := e.doubts[ev.Number]
		if d.taken > 0 {
			n++
		}
		if e.doubts[ev.Number] = n; n >= mostDoubts {
			given = append(given, ev)
		} else {
			d.err = cmp.Or(d.err, d.last)
		}
	}
	if d.taken == 0 {
		return cmp.Or(d.err, d.last)
	}
	if len(given) == 0 {
		return d.err
	}
	for _, ev := range given {
		e.finish(ev)
	}
	e.note(func(l *Lag) { l.Refused += uint64(len(given)) })
	e.o.Logger.WarnContext(ctx, "events are given up that a receiver refuses, as it takes others", "receiver", e.target.String(), "events", len(given), "error", d.last)
	return d.err
}

// finish notes that there is nothing more to do for an event.
func (e *Exporter) finish(ev store.Event) {
	e.done[ev.Number] = true
	delete(e.doubts, ev.Number)
}

// step posts the next group, and reports whether there may be another one.
func (d *delivery) step(ctx context.Context) bool {
	d.mu.Lock()
	if d.err != nil || len(d.queue) == 0 || d.taken == 0 && d.refuses+len(d.doubted)+d.flying >= mostRefused {
		d.mu.Unlock()
		return false
	}
	group := d.queue[0]
	d.queue = d.queue[1:]
	d.flying++
	d.mu.Unlock()
	ignored, err := d.e.receiver.post(ctx, group)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flying--
	code := 0
	if status, ok := errors.AsType[*fetch.StatusError](err); ok {
		code = status.Code
	}
	switch {
	case err == nil:
		d.took(group, ignored)
	case code == http.StatusGone && d.e.target.Kind == Webhook:
		d.err = errGone
	case code == http.StatusInternalServerError && d.e.kind.together == 1:
		d.doubted, d.last = append(d.doubted, group[0]), err
	case !refusals[code]:
		d.err = err
	case len(group) > 1:
		d.refuses, d.last = d.refuses+1, err
		half := len(group) / 2
		d.queue = append([][]store.Event{group[:half], group[half:]}, d.queue...)
	default:
		d.refuses, d.last = d.refuses+1, err
		d.refused = append(d.refused, group[0])
	}
	return true
}

// took notes a group that the receiver has.
func (d *delivery) took(group []store.Event, ignored string) {
	d.taken += len(group)
	for _, ev := range group {
		d.e.finish(ev)
	}
	d.e.note(func(l *Lag) {
		if ignored == "" {
			l.Sent += uint64(len(group))
			return
		}
		if l.Ignored == 0 { // it will be the same with all of them
			d.ignored = ignored
		}
		l.Ignored += uint64(len(group))
	})
}
