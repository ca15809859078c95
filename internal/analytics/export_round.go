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

// round hands on one window of events. It reports whether it has come further;
// then there may be more.
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
		if _, doubted := e.doubts[ev.Number]; doubted {
			last = append(last, ev) // or it would be asked for nothing else
		} else if !e.done[ev.Number] {
			todo = append(todo, ev)
		}
	}
	if todo = append(todo, last...); len(todo) > 0 {
		err = e.deliver(ctx, e.kind.group(todo))
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
	failed := e.position.Update(context.WithoutCancel(ctx), func(p **exportPosition) error {
		if *p == nil || (*p).Number != e.at {
			return fmt.Errorf("place of the export: %w: another process has moved it", millrace.ErrConflict)
		}
		*p = &exportPosition{to}
		return nil
	})
	if failed != nil {
		e.begun = false // begin again where the other one is
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
		e.o.Logger.WarnContext(ctx, "events are lost to a receiver: they are too old, or damaged in the store",
			"receiver", e.target.String(), "events", lost, "up_to", to)
	}
	return true, err
}

// begin finds where the exporter is. A new receiver gets the events of the last
// day. Before the first event there is nothing to begin with.
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

// window reads the events that are next, and where they end: the number up to
// which there are no others. head is the newest number.
func (e *Exporter) window(ctx context.Context, head uint64) (events []store.Event, end uint64, err error) {
	q := store.EventQuery{After: e.at, Limit: e.kind.window + min(len(e.done), mostAhead)}
	if e.kind.maxAge > 0 {
		q.From = e.o.Now().Add(-e.kind.maxAge)
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

// deliver posts groups one by one, until all are or the receiver does not take
// any. A group that is refused is posted in halves. What is refused alone is given
// up, but only if the receiver has taken something else: otherwise anything may be
// wrong. So is a single event that the receiver fails at time and again, while it
// takes others.
func (e *Exporter) deliver(ctx context.Context, groups [][]store.Event) error {
	taken, tries := 0, 0
	var last error
	failed := make(map[uint64]int) // how often an event may fail, by number
	for ; len(groups) > 0 && (taken > 0 || tries < mostRefused); tries++ {
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
			failed[group[0].Number] = mostDoubts
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

// giveUp gives up the events that have failed too often. It returns the last
// error if others have to be posted again.
func (e *Exporter) giveUp(ctx context.Context, taken int, failed map[uint64]int, last error) error {
	if taken == 0 {
		return last
	}
	given := 0
	for number, most := range failed {
		if e.doubts[number]++; e.doubts[number] >= most {
			e.finish(number)
			given++
		}
	}
	if given > 0 {
		e.note(func(l *Lag) { l.Refused += uint64(given) })
		e.o.Logger.WarnContext(ctx, "events are given up that a receiver refuses, as it takes others", "receiver", e.target.String(), "events", given, "error", last)
	}
	if given < len(failed) {
		return last
	}
	return nil
}

// finish notes that there is nothing more to do for an event.
func (e *Exporter) finish(number uint64) {
	e.done[number] = true
	delete(e.doubts, number)
}

// took notes a group that the receiver has.
func (e *Exporter) took(ctx context.Context, group []store.Event, ignored string) {
	for _, ev := range group {
		e.finish(ev.Number)
	}
	e.note(func(l *Lag) {
		if ignored == "" {
			l.Sent += uint64(len(group))
			return
		}
		if l.Ignored == 0 { // it will be the same with all of them
			e.o.Logger.WarnContext(ctx, "a receiver takes events and does not count them", "receiver", e.target.String(), "reason", ignored)
		}
		l.Ignored += uint64(len(group))
	})
}
