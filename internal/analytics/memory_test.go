package analytics

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// usageState combines the interfaces of a store that an exporter uses.
type usageState interface {
	store.Usage
	store.State
}

// memory is a simple store.Usage and store.State of one site.
type memory struct {
	store.State
	mu      sync.Mutex
	events  []store.Event
	batches int
	err     error // returned by Record
	state   map[string][]byte
	tidied  []time.Time // times passed to Tidy
}

func (m *memory) Record(_ context.Context, _ string, events []store.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	m.batches++
	for _, e := range events {
		e.Number = uint64(len(m.events) + 1)
		m.events = append(m.events, e)
	}
	return nil
}

// fail makes Record return err from now on; nil = work again.
func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *memory) all() []store.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events)
}

func (m *memory) Events(_ context.Context, _ string, q store.EventQuery) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		all := m.all()
		if q.Newest {
			slices.Reverse(all)
		}
		n := 0
		for _, e := range all {
			if q.After > 0 && (q.Newest && e.Number >= q.After || !q.Newest && e.Number <= q.After) ||
				!q.From.IsZero() && e.Time.Before(q.From) || !q.To.IsZero() && !e.Time.Before(q.To) ||
				q.Bot != "" && e.Bot != q.Bot || q.Protocol != "" && e.Protocol != q.Protocol ||
				q.Endpoint != "" && e.Endpoint != q.Endpoint || q.Path != "" && e.Path != q.Path ||
				q.Outcomes != nil && !slices.Contains(q.Outcomes, store.OutcomeOf(e.Status)) {
				continue
			}
			if !yield(e, nil) {
				return
			}
			if n++; n == q.Limit {
				return
			}
		}
	}
}

func (m *memory) Sums(_ context.Context, _ string, q store.SumQuery) iter.Seq2[store.Sum, error] {
	return func(yield func(store.Sum, error) bool) {
		sums := map[store.Sum]store.Counts{}
		for _, e := range m.all() {
			k := store.Sum{
				Start: e.Time.UTC().Truncate(time.Duration(q.Per)), Per: q.Per, Bot: e.Bot, Family: e.Family, Identity: e.Identity,
				Protocol: e.Protocol, Endpoint: e.Endpoint, Outcome: store.OutcomeOf(e.Status),
			}
			if !q.From.IsZero() && k.Start.Before(q.From) || !q.To.IsZero() && !k.Start.Before(q.To) {
				continue
			}
			c := sums[k]
			c.Events++
			if e.Cached {
				c.Cached++
			}
			if e.HTML > 0 {
				c.HTMLKnown++
			}
			if e.Received > 0 {
				c.HTMLWithReceived += e.HTML
			}
			c.Results, c.Bytes, c.Size = c.Results+e.Results, c.Bytes+e.Bytes, c.Size+e.Size
			c.HTML, c.Received, c.Took = c.HTML+e.HTML, c.Received+e.Received, c.Took+e.Took
			sums[k] = c
		}
		keys := slices.SortedFunc(maps.Keys(sums), func(a, b store.Sum) int {
			return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Bot, b.Bot), cmp.Compare(a.Protocol, b.Protocol),
				cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Identity, b.Identity))
		})
		for _, k := range keys {
			s := k
			s.Counts = sums[k]
			if !yield(s, nil) {
				return
			}
		}
	}
}

func (m *memory) Top(context.Context, string, store.Topic, time.Time, time.Time, int) ([]store.TopItem, error) {
	return nil, nil
}

func (m *memory) Value(_ context.Context, _, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state[key], nil
}

func (m *memory) Swap(_ context.Context, _, key string, old, new []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !bytes.Equal(m.state[key], old) {
		return millrace.ErrConflict
	}
	if m.state == nil {
		m.state = map[string][]byte{}
	}
	m.state[key] = new
	return nil
}

// exported returns the number of the last exported event.
func exported(t *testing.T, s store.State, e *Exporter) uint64 {
	t.Helper()
	place, err := positionOf(s, "site", e.target.Name()).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if place == nil {
		return 0
	}
	return place.Number
}

func (m *memory) Tidy(_ context.Context, _ store.Lease, _ string, events, hours time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tidied = append(m.tidied, events, hours)
	return nil
}
