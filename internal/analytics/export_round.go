package analytics

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/store"
)

// round exports one window of events. It reports whether the position has advanced, in which case
// there may be more events.
func (e *Exporter) round(ctx context.Context) (moved bool, err error) {
	if !e.begun {
		if err := e.begin(ctx); err != nil {
			return false, err
		}
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
		if _, failed := e.failures[ev.Number]; failed {
			last = append(last, ev) // after the others, because it may fail again
		} else if !e.done[ev.Number] {
			todo = append(todo, ev)
		}
	}
	if todo = append(todo, last...); len(todo) > 0 {
		err = e.deliver(ctx, e.kind.group(todo))
	}
	// Lost events count as done. The new position is the last event before the first one that is
	// not done.
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
	// Save the position even during a shutdown. A process that has lost its lease
	// must not overwrite the position of another.
	failed := e.position.Update(context.WithoutCancel(ctx), func(p **exportPosition) error {
		if *p == nil || (*p).Number != e.at {
			return fmt.Errorf("save export position: %w: another process has moved it", millrace.ErrConflict)
		}
		*p = &exportPosition{to}
		return nil
	})
	if failed != nil {
		e.begun = false // continue from the position of the other process
		return false, errors.Join(err, failed)
	}
	lost := to - e.at
	e.at = to
	for n := range e.done {
		if n <= to {
			lost--
			delete(e.done, n)
		}
	}
	if lost > 0 {
		e.note(func(l *Lag) { l.Lost += lost })
		e.o.Logger.WarnContext(ctx, "events lost for a receiver: too old or damaged",
			"receiver", e.target.String(), "events", lost, "event", to)
	}
	return true, err
}

// begin loads the position. A new receiver starts with the events of the last day.
// begin does nothing if the store has no event.
func (e *Exporter) begin(ctx context.Context) error {
	place, err := e.position.Load(ctx)
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
		place = &exportPosition{at}
		if err := e.position.Save(ctx, place); err != nil {
			return err
		}
	}
	e.at, e.begun = place.Number, true
	return nil
}

// window returns the next events. end is the number of the last event that the window covers, and
// head is the number of the newest event in the store.
func (e *Exporter) window(ctx context.Context, head uint64) (events []store.Event, end uint64, err error) {
	q := store.EventQuery{After: e.at, Limit: e.kind.window + min(len(e.done), maxAhead)}
	if e.kind.maxAge > 0 {
		q.From = e.o.Now().Add(-e.kind.maxAge)
	}
	for ev, err := range e.usage.Events(ctx, e.site, q) {
		if err != nil {
			return nil, 0, err
		}
		if o := store.OutcomeOf(ev.Status); o != store.Sent && o != store.Unmodified {
			ev.Path = "" // the page may be hidden
		}
		events = append(events, ev)
	}
	if len(events) < q.Limit { // the events between the last one and head are lost
		end = head
	}
	if n := len(events); n > 0 {
		end = max(end, events[n-1].Number)
	}
	return events, end, nil
}

const (
	maxRefused  = 8    // maximum number of refused requests in a round in which none is accepted
	maxFailures = 10   // number of failures with status 500 after which an event is dropped
	maxAhead    = 4096 // maximum number of events exported after one that has failed
)

// refusals are the statuses that reject the content of a request, not the sender.
var refusals = map[int]bool{
	http.StatusBadRequest: true, http.StatusLengthRequired: true, http.StatusRequestEntityTooLarge: true, http.StatusRequestURITooLong: true,
	http.StatusUnsupportedMediaType: true, http.StatusUnprocessableEntity: true, http.StatusRequestHeaderFieldsTooLarge: true,
}

// deliver posts groups one by one. If the receiver has accepted none, deliver stops after
// maxRefused requests. It splits a refused group into halves and posts them again. It drops a
// refused single event, and an event that fails maxFailures times, but only if the receiver accepts
// others.
func (e *Exporter) deliver(ctx context.Context, groups [][]store.Event) error {
	taken, tries := 0, 0
	var last error
	failed := make(map[uint64]int) // failures by event number
	for ; len(groups) > 0 && (taken > 0 || tries < maxRefused); tries++ {
		group := groups[0]
		groups = groups[1:]
		ignored, err := e.post(ctx, group)
		code := 0
		if status, ok := errors.AsType[*fetch.StatusError](err); ok {
			code = status.Code
		}
		switch {
		case err == nil:
			taken += len(group)
			e.took(ctx, group, ignored)
			continue
		case code == http.StatusGone && e.target.Kind == Webhook:
			return errGone
		case code == http.StatusInternalServerError && e.kind.together == 1:
			failed[group[0].Number] = maxFailures
		case refusals[code] && len(group) == 1:
			failed[group[0].Number] = 1
		case refusals[code]:
			half := len(group) / 2
			groups = append([][]store.Event{group[:half], group[half:]}, groups...)
		default:
			_ = e.giveUp(ctx, taken, failed, last)
			return err
		}
		last = err
	}
	return e.giveUp(ctx, taken, failed, last)
}

// giveUp drops the events that failed too often. If other events must be posted again, or the
// receiver accepted none, it returns last.
func (e *Exporter) giveUp(ctx context.Context, taken int, failed map[uint64]int, last error) error {
	if taken == 0 {
		return last
	}
	given := 0
	for number, most := range failed {
		if e.failures[number]++; e.failures[number] >= most {
			e.finish(number)
			given++
		}
	}
	if given > 0 {
		e.note(func(l *Lag) { l.Refused += uint64(given) })
		e.o.Logger.WarnContext(ctx, "receiver refused events; dropping them", "receiver", e.target.String(), "events", given, "err", last)
	}
	if given < len(failed) {
		return last
	}
	return nil
}

// finish marks an event as done.
func (e *Exporter) finish(number uint64) {
	e.done[number] = true
	delete(e.failures, number)
}

// took marks a group as received.
func (e *Exporter) took(ctx context.Context, group []store.Event, ignored string) {
	for _, ev := range group {
		e.finish(ev.Number)
	}
	e.note(func(l *Lag) {
		if ignored == "" {
			l.Sent += uint64(len(group))
			return
		}
		if l.Ignored == 0 { // log the reason once; it is the same for every group
			e.o.Logger.WarnContext(ctx, "receiver does not count events", "receiver", e.target.String(), "reason", ignored)
		}
		l.Ignored += uint64(len(group))
	})
}
