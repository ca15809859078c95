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

// Site is what an outbox needs of a site of a store. Its methods are those of
// the store's sites.
type Site interface {
	// Head gives what the site is now.
	Head(ctx context.Context) (millrace.View, error)
}

// Outbox tells one receiver of one site. It is for one goroutine.
type Outbox struct {
	Site     Site
	State    store.State // keeps how far the receiver has been told
	Name     string      // of the site, for its receiver and in State
	Receiver string      // names it in the store
	// Deliver hands over events, each a line of JSON with its end, and comes
	// back when the receiver has them. ErrTooLarge: they are too much at once.
	Deliver func(ctx context.Context, lines [][]byte) error
	// Content gives what an event has of a page beside its fields; nil = nothing.
	Content func(p *millrace.Page) string
	// Terms gives what events say about the use of the content, as JSON; nil =
	// nothing.
	Terms func(ctx context.Context) (json.RawMessage, error)
	Most  int // events that are delivered together; 0 = 100
	Bytes int // of those, after which no more are added; 0 = 256 KiB

	known bool   // last is
	last  []byte // the stored value, unless another process has replaced it
	small int    // halves Most and Bytes so often, after an ErrTooLarge
}

// position is how far a receiver has been told.
type position struct {
	Cursor millrace.Cursor `json:"cursor"` // in the log
	// All pages are told before the log goes on from Cursor.
	All   bool   `json:"all,omitempty"`
	Reset bool   `json:"reset,omitempty"` // with All: the receiver has to forget first
	After string `json:"after,omitempty"` // with All: the last page that was told; "" = none
}

// key is the key of the place.
func (o *Outbox) key() string { return "outbox to " + o.Receiver }

// load gives the place, and its form in the store, nil if there is none.
func (o *Outbox) load(ctx context.Context) (p position, stored []byte, err error) {
	if stored, err = o.State.Value(ctx, o.Name, o.key()); err != nil || len(stored) == 0 {
		return p, nil, err
	}
	if json.Unmarshal(stored, &p) != nil {
		p = position{} // of a form that nobody knows: start over
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

// TakenError says that somebody else tells the same receiver. It is a
// [millrace.ErrConflict].
type TakenError struct{ Site string }

// Error says what cannot be told, and why.
func (e *TakenError) Error() string {
	return fmt.Sprintf("another process tells what changes in %s to the same receiver: only one of them may run", e.Site)
}

// Unwrap gives [millrace.ErrConflict].
func (e *TakenError) Unwrap() error { return millrace.ErrConflict }

// Skip leaves out all that has happened until now, for a receiver that has not
// been told of anything yet.
func (o *Outbox) Skip(ctx context.Context) error {
	_, kept, err := o.load(ctx)
	if err != nil || kept != nil {
		return err
	}
	v, err := o.Site.Head(ctx)
	if err != nil {
		return err
	}
	t := &delivery{Outbox: o}
	return t.save(ctx, position{Cursor: v.Site().At(v.Site().Seq)})
}

// Flush tells all that there is to tell, and says how many events that were. A
// receiver that has never been told anything is told everything.
// A [*TakenError]: another process tells the same receiver.
// Errors of Deliver are given as they are; nothing is lost by them.
func (o *Outbox) Flush(ctx context.Context) (told int, err error) {
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
				return t.sent, nil // nothing has ever happened
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
			refused = true // what is lost may be the view's, which is old by now
		case lost && !t.at.All:
			// The receiver of a store that is new is told nothing of it.
			if err := t.save(ctx, position{Cursor: site.At(site.Seq), All: true, Reset: t.stored != nil}); err != nil {
				return t.sent, err
			}
		default:
			return t.sent, err
		}
	}
}

// errLost says that a view does not have what it was asked for any more.
var errLost = errors.New("the log does not reach back so far")

func lost(err error) error {
	if errors.Is(err, millrace.ErrConflict) {
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}

// log tells what has changed since the place, up to a view.
func (t *delivery) log(ctx context.Context, v millrace.View) error {
	defer t.clear()
	var (
		site = v.Site()
		done = t.at.Cursor // all before it is told, or in lines
		at   time.Time     // of the commit that is read
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
			case errors.Is(err, millrace.ErrNotFound) && c.New: // hidden
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

// all tells every page from the place on. What changes meanwhile is told by the
// log, once all are.
func (t *delivery) all(ctx context.Context, v millrace.View) error {
	defer t.clear()
	site := v.Site()
	at := t.at
	if at.Reset && at.After == "" {
		if err := t.add(ctx, &Event{Time: site.Time, Site: t.Name, Change: Reset, Seq: site.Seq}, at); err != nil {
			return err
		}
	}
	for p, err := range v.Scan(ctx, millrace.Scan{After: at.After, Bodies: t.Content != nil}) {
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

// add delivers what there is, if it is enough; then before is where the telling
// has come to. Then it adds an event.
func (t *delivery) add(ctx context.Context, e *Event, before position) error {
	most, size := max(1, cmp.Or(t.Most, 100)>>t.small), cmp.Or(t.Bytes, 256<<10)>>t.small
	if len(t.lines) >= most || t.size >= size {
		if err := t.deliver(ctx, before); err != nil {
			return err
		}
	}
	line, err := e.encode()
	if err != nil {
		return fmt.Errorf("the change of %s: %w", e.URL, err)
	}
	t.lines, t.size = append(t.lines, line), t.size+len(line)
	return nil
}

func (t *delivery) clear() { t.lines, t.size = nil, 0 }

// deliver delivers what there is, and keeps how far that is.
func (t *delivery) deliver(ctx context.Context, to position) error {
	if err := t.send(ctx, t.lines); err != nil {
		return err
	}
	t.sent += len(t.lines)
	t.clear()
	return t.save(ctx, to)
}

// send delivers lines, in ever smaller parts if the receiver wants it so, at last
// without content: what cannot be told must not keep back all that follows.
func (t *delivery) send(ctx context.Context, lines [][]byte) error {
	if len(lines) == 0 {
		return nil
	}
	err := t.Deliver(ctx, lines)
	if !errors.Is(err, millrace.ErrTooLarge) {
		return err
	}
	if len(lines) == 1 {
		bare, ok := omit(lines[0])
		if !ok {
			return err
		}
		return t.Deliver(ctx, [][]byte{bare})
	}
	t.small = min(t.small+1, 16)
	half := len(lines) / 2
	if err := t.send(ctx, lines[:half]); err != nil {
		return err
	}
	return t.send(ctx, lines[half:])
}

// save keeps how far the telling has come, durably.
func (t *delivery) save(ctx context.Context, to position) error {
	if to == t.at && t.stored != nil {
		return nil
	}
	b, err := json.Marshal(to)
	if err != nil {
		return err
	}
	// What was delivered is delivered, even if the process is to end.
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
