package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// wantCode fails unless an error has a code.
func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	if got := millrace.ErrorCode(err); got != code {
		t.Errorf("%s: code %q of %v, want %q", what, got, err, code)
	}
}

func TestHoldRenewsAndReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := memory.New(nil).Leases()
		var first store.Lease
		err := lease.Hold(t.Context(), leases, "job", func(ctx context.Context, l store.Lease) error {
			first = l
			time.Sleep(time.Hour)
			wantCode(t, "a second holder", lease.Hold(ctx, leases, "job", nil), "lease-held")
			if err := lease.Hold(ctx, leases, "other", func(context.Context, store.Lease) error { return nil }); err != nil {
				t.Errorf("another lease: %v", err)
			}
			return ctx.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		failed := errors.New("failed")
		err = lease.Hold(t.Context(), leases, "job", func(_ context.Context, l store.Lease) error {
			if l.Fence <= first.Fence || l.Holder == first.Holder {
				t.Errorf("lease %+v after %+v", l, first)
			}
			return failed
		})
		if !errors.Is(err, failed) {
			t.Errorf("error of the function: %v", err)
		}
	})
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := memory.New(nil).Leases()
		if _, err := leases.Acquire(t.Context(), "job", "crashed", time.Minute); err != nil {
			t.Fatal(err)
		}
		var running, runs atomic.Int32
		begun := time.Now()
		for range 3 {
			go func() {
				err := lease.Wait(t.Context(), leases, "job", func(ctx context.Context, _ store.Lease) error {
					if running.Add(1) != 1 || time.Since(begun) < time.Minute {
						t.Errorf("the function runs after %v", time.Since(begun))
					}
					time.Sleep(20 * time.Second)
					running.Add(-1)
					runs.Add(1)
					return ctx.Err()
				})
				if err != nil {
					t.Error(err)
				}
			}()
		}
		time.Sleep(3 * time.Minute)
		if runs.Load() != 3 {
			t.Errorf("%d runs", runs.Load())
		}
		if _, err := leases.Acquire(t.Context(), "job", "another", time.Hour); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantCode(t, "a wait that ends early", lease.Wait(ctx, leases, "job", nil), "timeout")
		wantCode(t, "a lease without a name", lease.Wait(t.Context(), leases, "", nil), "bad-lease")
	})
}

// faulty is a Leases that can be disconnected from its store.
type faulty struct {
	store.Leases
	fails atomic.Bool
}

func (f *faulty) Acquire(ctx context.Context, name, holder string, d time.Duration) (store.Lease, error) {
	if f.fails.Load() {
		return store.Lease{}, millrace.ErrUnavailable
	}
	return f.Leases.Acquire(ctx, name, holder, d)
}

func TestShortFailureKeepsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := &faulty{Leases: memory.New(nil).Leases()}
		err := lease.Hold(t.Context(), leases, "job", func(ctx context.Context, _ store.Lease) error {
			for range 20 {
				leases.fails.Store(true)
				time.Sleep(5 * time.Second)
				leases.fails.Store(false)
				time.Sleep(5 * time.Second)
			}
			return ctx.Err()
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A holder that cannot renew its lease is canceled before another one can get it, and
// writes nothing after that.
func TestLostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(nil)
		leases := &faulty{Leases: s.Leases()}
		site, err := s.Site(t.Context(), "main", "https://example.com/")
		if err != nil {
			t.Fatal(err)
		}
		page := millrace.Change{Ref: millrace.Ref{URL: "/a"}, Page: &millrace.Page{Title: "A", Known: millrace.FieldTitle}}
		apply := func(l store.Lease) error {
			_, err := site.Fenced(l).Apply(t.Context(), "test", []millrace.Change{page})
			return err
		}
		err = lease.Hold(t.Context(), leases, "job", func(ctx context.Context, l store.Lease) error {
			if err := apply(l); err != nil {
				t.Errorf("with the lease: %v", err)
			}
			leases.fails.Store(true)
			begun := time.Now()
			<-ctx.Done()
			if d := time.Since(begun); d > 10*time.Second {
				t.Errorf("canceled after %v", d)
			}
			wantCode(t, "cause", context.Cause(ctx), "lease-lost")
			wantCode(t, "expired", apply(l), "lease-lost")
			_, err := s.Leases().Acquire(t.Context(), "job", "another", time.Minute)
			if err != nil {
				t.Errorf("another holder: %v", err)
			}
			wantCode(t, "a release by another holder", apply(l), "lease-lost")
			return ctx.Err()
		})
		wantCode(t, "hold", err, "lease-lost")
		wantCode(t, "the lease of the other holder stays", lease.Hold(t.Context(), s.Leases(), "job", nil), "lease-held")
	})
}

// A process that was stopped for longer than its lease has lost it, even if no other
// holder has taken it.
func TestStoppedHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var skipped atomic.Int64
		s := memory.New(&store.Options{Now: func() time.Time { return time.Now().Add(time.Duration(skipped.Load())) }})
		err := lease.Hold(t.Context(), s.Leases(), "job", func(ctx context.Context, _ store.Lease) error {
			skipped.Store(int64(time.Minute))
			<-ctx.Done()
			return ctx.Err()
		})
		wantCode(t, "hold", err, "lease-lost")
		if err := lease.Hold(t.Context(), s.Leases(), "job", func(context.Context, store.Lease) error { return nil }); err != nil {
			t.Errorf("the next holder: %v", err)
		}
	})
}

func TestCanceledHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := memory.New(nil).Leases()
		ctx, cancel := context.WithCancel(t.Context())
		err := lease.Hold(ctx, leases, "job", func(ctx context.Context, _ store.Lease) error {
			cancel()
			return ctx.Err()
		})
		wantCode(t, "hold", err, "canceled")
		if err := lease.Hold(t.Context(), leases, "job", func(context.Context, store.Lease) error { return nil }); err != nil {
			t.Errorf("the lease was not released: %v", err)
		}
	})
}

// A clock change ends a lease: f is canceled before another holder's work can overlap.
func TestClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var offset atomic.Int64
			st := memory.New(&store.Options{Now: func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }})
			site, err := st.Site(t.Context(), "https://mill.example/", "https://mill.example/")
			if err != nil {
				t.Fatal(err)
			}
			var first store.Lease
			err = lease.Hold(t.Context(), st.Leases(), "job", func(ctx context.Context, l store.Lease) error {
				first = l
				offset.Store(int64(by))
				start := time.Now()
				<-ctx.Done()
				if took := time.Since(start); took > time.Minute {
					t.Errorf("canceled after %v", took)
				}
				if _, err := site.Fenced(l).Apply(t.Context(), "me", nil); !errors.Is(err, millrace.ErrConflict) {
					t.Errorf("apply with a lost lease: %v", err)
				}
				return ctx.Err()
			})
			wantCode(t, "the first holder", err, "lease-lost")
			err = lease.Hold(t.Context(), st.Leases(), "job", func(_ context.Context, l store.Lease) error {
				if l.Fence <= first.Fence {
					t.Errorf("lease %+v after %+v", l, first)
				}
				return nil
			})
			if err != nil {
				t.Errorf("the next holder: %v", err)
			}
		})
	}
}
