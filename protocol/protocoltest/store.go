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

// Stored is a site with one publication, in a store in memory.
type Stored struct {
	store.Site
	Store *memory.Store
	Pub   store.Publication

	refreshing sync.Mutex
}

// Apply applies changes, and brings the publication up to the site.
func (s *Stored) Apply(ctx context.Context, from string, batch []millrace.Change) (millrace.Tally, error) {
	tally, err := s.Site.Apply(ctx, from, batch)
	if err != nil {
		return tally, err
	}
	s.refreshing.Lock()
	defer s.refreshing.Unlock()
	return tally, s.Pub.Refresh(ctx, store.Lease{}, nil)
}

// Open makes a site below c.Base, and a publication of it. now is the clock of
// the store; nil = time.Now.
func Open(t testing.TB, c store.Config, now func() time.Time) *Stored {
	t.Helper()
	s := &Stored{Store: memory.New(&store.Options{Now: now})}
	var err error
	if s.Site, err = s.Store.Site(t.Context(), "site", c.Base); err != nil {
		t.Fatal(err)
	}
	if s.Pub, err = s.Publication(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return s
}
