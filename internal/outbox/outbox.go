package outbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// Site is the part of [store.Site] that an Outbox needs.
type Site interface {
	// Head returns the current view of the site.
	Head(ctx context.Context) (millrace.View, error)
}

// Outbox sends the changes of one site to one receiver. It is not safe for
// concurrent use.
type Outbox struct {
	Site     Site
	State    store.State // keeps the position of the receiver
	Name     string      // name of the site, in events and in State
	Receiver string      // name of the receiver in State
	// Deliver sends events, each a line of JSON with a newline at the end. It returns nil when the
	// receiver has accepted them, or ErrTooLarge if the receiver must get fewer at once.
	Deliver func(ctx context.Context, lines [][]byte) error
	// Content returns Event.Content of a page. If nil, there is no content.
	Content func(p *millrace.Page) string
	// Terms returns Event.Terms. If nil, there are no terms.
	Terms     func(ctx context.Context) (json.RawMessage, error)
	MaxEvents int // maximum number of events of one delivery. If zero, 100.
	MaxBytes  int // size in bytes at which a delivery is full. If zero, 256 KiB.

	known bool   // last is set
	last  []byte // the stored value, unless another process has replaced it
	small int    // how many times MaxEvents and MaxBytes are halved, because of ErrTooLarge
}

// position is the position of a receiver in the log, as stored in State.
type position struct {
	Cursor millrace.Cursor `json:"cursor"` // in the log
	// All reports that every page is sent before the log continues at Cursor.
	All   bool   `json:"all,omitempty"`
	Reset bool   `json:"reset,omitempty"` // with All: a Reset comes first
	After string `json:"after,omitempty"` // with All: the last page sent, or ""
}

// key returns the key of the position in the store.
func (o *Outbox) key() string { return "outbox to " + o.Receiver }

// load returns the position and its stored form. If there is no position, stored is nil.
func (o *Outbox) load(ctx context.Context) (p position, stored []byte, err error) {
	if stored, err = o.State.Value(ctx, o.Name, o.key()); err != nil || len(stored) == 0 {
		return p, nil, err
	}
	if json.Unmarshal(stored, &p) != nil {
		p = position{} // unknown format: start over
	}
	return p, stored, nil
}

// delivery is one call of Flush.
type delivery struct {
	*Outbox
	terms  json.RawMessage
	at     position
	stored []byte
	sent   int
	lines  [][]byte
	size   int
}

// TakenError reports that another process sends to the same receiver. It wraps
// [millrace.ErrConflict].
type TakenError struct{ Site string }

// Error implements error.
func (e *TakenError) Error() string {
	return fmt.Sprintf("send changes of %s: another process sends them to the same receiver; stop one of the two", e.Site)
}

// Unwrap returns [millrace.ErrConflict].
func (e *TakenError) Unwrap() error { return millrace.ErrConflict }

// Skip moves a new receiver to the end of the log. It does nothing for a receiver
// with a position.
func (o *Outbox) Skip(ctx context.Context) error {
	_, stored, err := o.load(ctx)
	if err != nil || stored != nil {
		return err
	}
	v, err := o.Site.Head(ctx)
	if err != nil {
		return err
	}
	t := &delivery{Outbox: o}
	return t.save(ctx, position{Cursor: v.Site().At(v.Site().Seq)})
}

// Pending reports whether there are events to send.
func (o *Outbox) Pending(ctx context.Context) (bool, error) {
	p, _, err := o.load(ctx)
	if err != nil {
		return false, err
	}
	v, err := o.Site.Head(ctx)
	if err != nil {
		return false, err
	}
	site := v.Site()
	return p.All || site.Seq > 0 && p.Cursor != site.At(site.Seq), nil
}

// Flush sends all pending events and returns their number. A new receiver gets
// every page. Flush returns a [*TakenError] if another process sends to the same
// receiver, and the errors of Deliver unchanged; a later Flush sends the pending
// events again.
func (o *Outbox) Flush(ctx context.Context) (sent int, err error) {
	t := &delivery{Outbox: o}
	if t.at, t.stored, err = o.load(ctx); err != nil {
		return 0, err
	}
	if o.known && !bytes.Equal(t.stored, o.last) {
		return 0, &TakenError{o.Name}
	}
	o.known, o.last = true, t.stored
	refused := false
	for {
		v, err := o.Site.Head(ctx)
		if err != nil {
			return t.sent, err
		}
		site := v.Site()
		if at, err := site.SeqOf(t.at.Cursor); err == nil && at > site.Seq {
			return t.sent, nil // another process has sent from a newer view
		}
		if o.Terms != nil && t.at.Cursor != site.At(site.Seq) {
			if t.terms, err = o.Terms(ctx); err != nil {
				return t.sent, err
			}
		}
		switch {
		case t.at.All:
			err = t.all(ctx, v)
		case t.at.Cursor == "":
			if site.Seq == 0 {
				return t.sent, nil // the log is empty
			}
			t.at.Cursor = site.At(0)
			fallthrough
		case t.at.Cursor != site.At(site.Seq):
			err = t.log(ctx, v)
		default:
			return t.sent, nil
		}
		lost := errors.Is(err, errLost)
		switch {
		case err == nil:
			refused = false
		case lost && !refused:
			refused = true // the view may be too old, so try again with a newer one
		case lost && !t.at.All:
			// A new receiver gets no reset event.
			if err := t.save(ctx, position{Cursor: site.At(site.Seq), All: true, Reset: t.stored != nil}); err != nil {
				return t.sent, err
			}
		default:
			return t.sent, err
		}
	}
}

// errLost is the error for a view that no longer has the requested part of the log.
var errLost = errors.New("read log: position is too old")

func lost(err error) error {
	if errors.Is(err, millrace.ErrConflict) {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}

// log sends the changes between the position and a view.
func (t *delivery) log(ctx context.Context, v millrace.View) error {
	defer t.clear()
	var (
		site = v.Site()
		done = t.at.Cursor // all changes before it are sent, or in lines
		at   time.Time     // time of the commit that is being read
		seq  uint64
	)
	for c, err := range v.Changes(ctx, t.at.Cursor) {
		if err != nil {
			return lost(err)
		}
		if c.Kind == millrace.KindCheckpoint {
			continue
		}
		if seq == 0 || !c.Time.Equal(at) {
			if seq != 0 {
				done = site.At(seq)
			}
			at = c.Time
			if seq, err = v.SeqAt(ctx, at); err != nil {
				return lost(err)
			}
		}
		e := Event{Time: c.Time, Site: t.Name, Change: Deleted, URL: c.URL, Seq: seq}
		if c.Kind == millrace.Put {
			switch p, err := v.Page(ctx, millrace.Ref{URL: c.URL}); {
			case errors.Is(err, millrace.ErrNotFound) && c.New: // a new page that is hidden
				continue
			case errors.Is(err, millrace.ErrNotFound):
			case err != nil:
				return lost(err)
			default:
				t.put(&e, p)
				if e.Change = Updated; c.New {
					e.Change = Added
				}
			}
		}
		if err := t.add(ctx, &e, position{Cursor: done}); err != nil {
			return err
		}
	}
	return t.deliver(ctx, position{Cursor: site.At(site.Seq)})
}

// all sends every page from the position on. Changes during this time are sent from the log
// afterwards.
func (t *delivery) all(ctx context.Context, v millrace.View) error {
	defer t.clear()
	site := v.Site()
	at := t.at
	if at.Reset && at.After == "" {
		if err := t.add(ctx, &Event{Time: site.Time, Site: t.Name, Change: Reset, Seq: site.Seq}, at); err != nil {
			return err
		}
	}
	for p, err := range v.Scan(ctx, millrace.Scan{After: at.After, WithBlocks: t.Content != nil}) {
		if err != nil {
			return lost(err)
		}
		e := Event{Time: site.Time, Site: t.Name, Change: Added, Seq: site.Seq}
		t.put(&e, p)
		if err := t.add(ctx, &e, at); err != nil {
			return err
		}
		at.After = p.URL
	}
	return t.deliver(ctx, position{Cursor: at.Cursor})
}

// add adds an event. If the pending events fill a delivery, add first delivers them and saves the
// position that precedes the event, before.
func (t *delivery) add(ctx context.Context, e *Event, before position) error {
	most, size := max(1, cmp.Or(t.MaxEvents, 100)>>t.small), cmp.Or(t.MaxBytes, 256<<10)>>t.small
	if len(t.lines) >= most || t.size >= size {
		if err := t.deliver(ctx, before); err != nil {
			return err
		}
	}
	line, err := e.encode()
	if err != nil {
		return fmt.Errorf("encode event of %s: %w", e.URL, err)
	}
	t.lines, t.size = append(t.lines, line), t.size+len(line)
	return nil
}

func (t *delivery) clear() { t.lines, t.size = nil, 0 }

// deliver sends the pending events and saves the new position.
func (t *delivery) deliver(ctx context.Context, to position) error {
	if err := t.send(ctx, t.lines); err != nil {
		return err
	}
	t.sent += len(t.lines)
	t.clear()
	return t.save(ctx, to)
}

// send delivers lines. After ErrTooLarge, it halves the number of lines, and finally omits the
// content of a single event, because an event that is too large must not block later events.
func (t *delivery) send(ctx context.Context, lines [][]byte) error {
	if len(lines) == 0 {
		return nil
	}
	err := t.Deliver(ctx, lines)
	if !errors.Is(err, millrace.ErrTooLarge) {
		return err
	}
	if len(lines) == 1 {
		short, ok := omit(lines[0])
		if !ok {
			return err
		}
		return t.Deliver(ctx, [][]byte{short})
	}
	t.small = min(t.small+1, 16)
	half := len(lines) / 2
	if err := t.send(ctx, lines[:half]); err != nil {
		return err
	}
	return t.send(ctx, lines[half:])
}

// save stores the position.
func (t *delivery) save(ctx context.Context, to position) error {
	if to == t.at && t.stored != nil {
		return nil
	}
	b, err := json.Marshal(to)
	if err != nil {
		return err
	}
	// The events are delivered, so save the position even during a shutdown.
	if err := t.State.Swap(context.WithoutCancel(ctx), t.Name, t.key(), t.stored, b); err != nil {
		if errors.Is(err, millrace.ErrConflict) {
			return &TakenError{t.Name}
		}
		return err
	}
	t.at, t.stored = to, b
	t.known, t.last = true, t.stored
	return nil
}
