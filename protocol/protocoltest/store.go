package protocoltest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// Stored is a site with one publication in a memory store.
type Stored struct {
	store.Site
	Store *memory.Store
	Pub   store.Publication
}

// queued is a publication that runs only one Refresh at a time.
type queued struct {
	store.Publication
	mu sync.Mutex
}

func (q *queued) Refresh(ctx context.Context, l store.Lease, limit int, progress func(done, total int)) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.Publication.Refresh(ctx, l, limit, progress)
}

// Apply applies changes, and refreshes the publication.
func (s *Stored) Apply(ctx context.Context, from string, batch []millrace.Change) (millrace.Counts, error) {
	counts, err := s.Site.Apply(ctx, from, batch)
	if err != nil {
		return counts, err
	}
	_, err = s.Pub.Refresh(ctx, store.Lease{}, 0, nil)
	return counts, err
}

// Open creates a site below c.Base with a publication. now is the clock of the store; if nil,
// time.Now.
func Open(t testing.TB, c store.Config, now func() time.Time) *Stored {
	t.Helper()
	s := &Stored{Store: memory.New(&store.Options{Now: now})}
	var err error
	if s.Site, err = s.Store.Site(t.Context(), "site", c.Base); err != nil {
		t.Fatal(err)
	}
	pub, err := s.Publication(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	s.Pub = &queued{Publication: pub}
	return s
}
