package replica

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

var discard = slog.New(slog.DiscardHandler)

func never() bool { return false }

// process is a process of a site that can be ended.
type process struct {
	*Replicas
	end func()
}

func create(t *testing.T, st store.Store, name, version string, builder func() bool) *Replicas {
	t.Helper()
	r, err := New(t.Context(), st, name, version, builder, discard)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func start(t *testing.T, st store.Store, version string, builder func() bool) process {
	t.Helper()
	r := create(t, st, "https://www.example.com/", version, builder)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { r.Run(ctx) })
	end := func() { cancel(); all.Wait() }
	t.Cleanup(end)
	return process{r, end}
}

func TestCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(nil)
		want := func(n int, all ...process) {
			t.Helper()
			time.Sleep(heartbeat + time.Second)
			for _, p := range all {
				if got := p.Count(); got != n {
					t.Errorf("process %s counts %d, want %d", p.self.Name, got, n)
				}
			}
		}
		a := start(t, st, "1", never)
		want(1, a)
		b := start(t, st, "1", func() bool { return true })
		c := start(t, st, "2", never)
		other := create(t, st, "https://www.example.org/", "1", never)
		if err := other.heartbeat(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(3, a, b, c)
		list, err := a.List(t.Context())
		var versions []string
		builders := 0
		for _, p := range list {
			versions = append(versions, p.Version)
			if p.Builder {
				builders++
			}
			if p.Name == "" || time.Since(p.Started) < heartbeat || time.Since(p.Seen) > heartbeat {
				t.Errorf("%+v", p)
			}
		}
		if slices.Sort(versions); err != nil || !slices.Equal(versions, []string{"1", "1", "2"}) || builders != 1 {
			t.Errorf("%v, %d builders, %v", versions, builders, err)
		}
		c.end()
		want(2, a, b)
		// A killed process is counted until its lifetime ends.
		if err := create(t, st, "https://www.example.com/", "1", never).heartbeat(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(3, a, b)
		time.Sleep(lifetime)
		want(2, a, b)
		b.end()
		want(1, a)
	})
}

// down is a store that can be down.
type down struct {
	store.Store
	is atomic.Bool
}

func (d *down) Now(ctx context.Context) (time.Time, error) {
	if d.is.Load() {
		return time.Time{}, errors.New("down")
	}
	return d.Store.Now(ctx)
}

// While the store is down, the last known number is used. Afterwards, all processes are counted
// again.
func TestStoreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &down{Store: memory.New(nil)}
		a, b := start(t, st, "1", never), start(t, st, "1", never)
		time.Sleep(heartbeat + time.Second)
		st.is.Store(true)
		time.Sleep(time.Hour)
		if a.Count() != 2 || b.Count() != 2 {
			t.Errorf("%d and %d", a.Count(), b.Count())
		}
		st.is.Store(false)
		time.Sleep(2 * heartbeat)
		if a.Count() != 2 || b.Count() != 2 {
			t.Errorf("%d and %d", a.Count(), b.Count())
		}
	})
}

// The clock is that of the store.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(&store.Options{Now: func() time.Time { return time.Now().Add(10 * time.Minute) }})
		a := start(t, st, "1", never)
		time.Sleep(time.Second)
		if d := time.Until(a.Now()); d != 10*time.Minute {
			t.Errorf("%v ahead", d)
		}
		if a.Count() != 1 {
			t.Errorf("%d", a.Count())
		}
		if none := (*Replicas)(nil); none.Count() != 1 || time.Until(none.Now()).Abs() > time.Second {
			t.Error("without replicas")
		}
	})
}
