package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/export"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/outbox"
	"github.com/millrace/millrace/store"
)

const (
	tellEvery = 500 * time.Millisecond // while a pull goes on
	tellAgain = 10 * time.Second       // after a failure of the store
	printed   = 1000                   // changes that are printed together at most
	posted    = 100                    // and posted
)

// telling tells the changes of all sites, one after the other, so that the
// order of each is kept, and a receiver that is down is asked by one.
type telling struct {
	w      *watching
	boxes  map[string]*box // by the sites' names; of run alone
	bell   chan struct{}
	silent bool // nobody wants to be told any more

	mu      sync.Mutex
	pending map[string]bool // sites that something may have happened to
	busy    map[string]int  // that somebody is pulling
}

// box is the outbox of a site.
type box struct {
	*outbox.Outbox
	site store.Site
}

func newTelling(w *watching) *telling {
	return &telling{w: w, boxes: make(map[string]*box), bell: make(chan struct{}, 1), pending: make(map[string]bool), busy: make(map[string]int)}
}

// wake says that something may have happened to a site.
func (t *telling) wake(name string) {
	t.mu.Lock()
	t.pending[name] = true
	t.mu.Unlock()
	select {
	case t.bell <- struct{}{}:
	default:
	}
}

// follow says that sites are pulled, until release is called.
func (t *telling) follow(names ...string) (release func()) {
	add := func(n int) {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, name := range names {
			if t.busy[name] += n; t.busy[name] == 0 {
				delete(t.busy, name)
			}
		}
	}
	add(1)
	return func() { add(-1) }
}

// take gives the sites to look at, in order.
func (t *telling) take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := slices.Collect(maps.Keys(t.pending))
	for name := range t.busy {
		if !t.pending[name] {
			names = append(names, name)
		}
	}
	clear(t.pending)
	slices.Sort(names)
	return names
}

// run tells until the context ends, or until nothing can be told any more.
func (t *telling) run(ctx context.Context) error {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.bell:
		case <-tick.C:
		}
		names := t.take()
		if len(names) == 0 {
			continue
		}
		known, err := siteNames(ctx, t.w.store)
		if err != nil {
			known = names
		}
		for _, name := range names {
			if !slices.Contains(known, name) {
				continue
			}
			if err := t.flush(ctx, name); err != nil || t.silent {
				return err
			}
		}
	}
}

// outletError is a receiver that cannot be told anything.
type outletError struct{ err error }

func (e *outletError) Error() string { return e.err.Error() }
func (e *outletError) Unwrap() error { return e.err }

// box gives the outbox of a site.
func (t *telling) box(ctx context.Context, name string) (*box, error) {
	if b, ok := t.boxes[name]; ok {
		return b, nil
	}
	site, err := t.w.store.Site(ctx, name, name)
	if err != nil {
		return nil, err
	}
	o := &outbox.Outbox{Site: visibleSite{site}, State: t.w.store.State(), Name: name, Receiver: "standard output", Most: printed, Deliver: t.print}
	if t.w.hook != nil {
		o.Receiver, o.Most = "webhook "+t.w.hook.Key(), posted
		o.Deliver = func(ctx context.Context, lines [][]byte) error { return t.post(ctx, name, lines) }
	}
	o.Terms = func(ctx context.Context) (json.RawMessage, error) { return t.terms(ctx, name) }
	switch t.w.c.Content {
	case "text":
		o.Content = (*millrace.Page).Text
	case "markdown":
		o.Content = (*millrace.Page).Markdown
	}
	t.boxes[name] = &box{o, site}
	return t.boxes[name], nil
}

// terms gives what a site says about the use of its content, as exports have it.
func (t *telling) terms(ctx context.Context, name string) (json.RawMessage, error) {
	u, err := url.Parse(name)
	if err != nil {
		return nil, err
	}
	r, err := ingest.LoadTerms(ctx, t.w.store.State(), u)
	if errors.Is(err, millrace.ErrInvalid) {
		t.w.process.log.Warn("what the site says about the use of its content is not told", "error", err)
		return nil, nil
	}
	if err != nil || len(r.Terms) == 0 {
		return nil, err
	}
	var out []export.Terms
	for _, d := range r.Terms {
		out = append(out, export.Terms{Document: d.URL, Policy: d.Policy})
	}
	return json.Marshal(out)
}

// skip marks a site's present state as sent, with --from now and a receiver that
// has received nothing yet.
func (t *telling) skip(ctx context.Context, name string) error {
	b, err := t.box(ctx, name)
	if err != nil || t.w.c.From != "now" {
		return err
	}
	return b.Skip(ctx)
}

// flush tells what has happened to a site. What goes wrong in the store is
// tried again.
func (t *telling) flush(ctx context.Context, name string) error {
	b, err := t.box(ctx, name)
	if err == nil {
		if err = t.skip(ctx, name); err == nil {
			_, err = b.Flush(ctx)
		}
	}
	if err == nil || ctx.Err() != nil {
		return nil //nolint:nilerr // what is not told yet is told by the next process
	}
	if _, taken := errors.AsType[*outbox.TakenError](err); taken {
		return err
	}
	if refused, ok := errors.AsType[*outletError](err); ok {
		if t.w.hook == nil || !errors.Is(err, millrace.ErrNotFound) {
			return refused.err
		}
		t.silent = true
		t.w.process.log.Error("nothing is posted any more; the mirror is kept on", "error", err)
		return nil
	}
	t.w.process.log.Error("what has changed cannot be told now", "site", name, "again_in", tellAgain, "error", err)
	time.AfterFunc(tellAgain, func() { t.wake(name) })
	return nil
}

// print writes lines to standard output.
func (t *telling) print(_ context.Context, lines [][]byte) error {
	if _, err := t.w.process.stdout.Write(bytes.Join(lines, nil)); err != nil {
		return &outletError{fmt.Errorf("changes cannot be written any more: %w", err)}
	}
	return nil
}

// message is what a webhook gets.
type message struct {
	Type      string          `json:"type"`
	Timestamp json.RawMessage `json:"timestamp"` // of the last change, so that the same changes are the same message
	Data      struct {
		Site    string            `json:"site"`
		Changes []json.RawMessage `json:"changes"`
	} `json:"data"`
}

// post posts changes of a site, and comes back when they are acknowledged.
func (t *telling) post(ctx context.Context, name string, lines [][]byte) error {
	m := message{Type: "site.changed"}
	m.Data.Site = name
	for _, line := range lines {
		m.Data.Changes = append(m.Data.Changes, line)
	}
	var last struct {
		Time json.RawMessage `json:"time"`
	}
	if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil {
		return err
	}
	m.Timestamp = last.Time
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(m); err != nil {
		return err
	}
	err := t.w.hook.Send(ctx, bytes.TrimSuffix(body.Bytes(), []byte("\n")))
	if err == nil || errors.Is(err, millrace.ErrTooLarge) || ctx.Err() != nil {
		return err
	}
	return &outletError{err}
}
