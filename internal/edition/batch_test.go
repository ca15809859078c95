package edition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
)

// batchedStore reports changes that belong to no batch.
type batchedStore struct {
	artifact.Store
	t       *testing.T
	batches atomic.Int32
	kept    chan string // receives the names of kept versions
	down    atomic.Bool // only artifacts that are already open can be read
}

type batchKey struct{}

var errDown = fmt.Errorf("bucket is down: %w", millrace.ErrUnavailable)

func (s *batchedStore) Batch(ctx context.Context, f func(ctx context.Context) error) error {
	if s.down.Load() {
		return errDown
	}
	s.batches.Add(1)
	return f(context.WithValue(ctx, batchKey{}, true))
}

func (s *batchedStore) Stat(ctx context.Context, name string) (artifact.Info, error) {
	if s.down.Load() {
		return artifact.Info{}, errDown
	}
	return s.Store.Stat(ctx, name)
}

func (s *batchedStore) Put(ctx context.Context, name string, r io.Reader) error {
	if ctx.Value(batchKey{}) == nil {
		s.t.Errorf("put %s: not in a batch", name)
	}
	err := s.Store.Put(ctx, name, r)
	if strings.HasPrefix(name, "dcz/") {
		s.kept <- name
	}
	return err
}

func (s *batchedStore) Delete(ctx context.Context, name string) error {
	if ctx.Value(batchKey{}) == nil {
		s.t.Errorf("delete %s: not in a batch", name)
	}
	return s.Store.Delete(ctx, name)
}

// Publication, deferred work, kept versions and collection change artifacts in few batches.
func TestBatches(t *testing.T) {
	for name, proto := range map[string]millrace.Publisher{"chunks": listProtocol{}, "artifacts": &deferringProtocol{}} {
		t.Run(name, func(t *testing.T) {
			site := tall()
			store := &batchedStore{Store: newArtifacts(), t: t, kept: make(chan string, 100)}
			s := serverIn(t, site, proto, store, nil)
			s.grace = time.Nanosecond
			publish(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); s.keepVersions(ctx) }()
			for i := range 3 {
				site.set("/30", strings.Repeat(fmt.Sprint("other ", i), 400))
				before := store.batches.Load()
				publish(t, s)
				// Building, the check before the swap, the retired edition, and collection, each at
				// most twice because of deferred artifacts, and the deferred work.
				if n := store.batches.Load() - before; n > 9 {
					t.Errorf("an edit takes %d batches", n)
				}
			}
			for _, e := range s.Current().large {
				s.dictionaries.sent <- e
			}
			for range s.Current().large {
				<-store.kept
			}
			cancel()
			<-done
		})
	}
}

// While the artifact store is down, nothing is published, and a follower keeps its edition
// without building one.
func TestArtifactStoreDown(t *testing.T) {
	site := tall()
	store := &batchedStore{Store: newArtifacts(), t: t}
	one, two := serverIn(t, site, listProtocol{}, store, nil), serverIn(t, site, listProtocol{}, store, nil)
	publish(t, one)
	if err := two.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	site.set("/30", "new")
	before := one.Current()
	store.down.Store(true)
	if _, err := one.Publish(t.Context()); !errors.Is(err, millrace.ErrUnavailable) || one.Current() != before {
		t.Errorf("publish: %v", err)
	}
	store.down.Store(false)
	publish(t, one)
	store.down.Store(true)
	before = two.Current()
	if err := two.follow(t.Context()); !errors.Is(err, millrace.ErrUnavailable) || two.Current() != before {
		t.Errorf("follow: %v", err)
	}
	store.down.Store(false)
	if err := two.follow(t.Context()); err != nil || two.Current() == before || two.Current().rebuilt {
		t.Errorf("follow: %v", err)
	}
}
