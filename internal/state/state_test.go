package state_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func open(t *testing.T) store.State {
	t.Helper()
	return memory.New(nil).State()
}

type count struct{ N int }

// Concurrent updates lose nothing.
func TestUpdate(t *testing.T) {
	j := state.JSON[count]{State: open(t), Namespace: "site", Key: "count"}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := j.Update(t.Context(), func(c *count) error { c.N++; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if c, err := j.Load(t.Context()); err != nil || c.N != 8 {
		t.Errorf("%+v, %v; want 8", c, err)
	}
	stop := errors.New("stop")
	if err := j.Update(t.Context(), func(c *count) error { c.N = 0; return stop }); !errors.Is(err, stop) {
		t.Errorf("error of change: %v", err)
	}
	if c, err := j.Load(t.Context()); err != nil || c.N != 8 {
		t.Errorf("after an error: %+v, %v; want 8", c, err)
	}
}

// swaps counts the writes to a State.
type swaps struct {
	store.State
	n int
}

func (s *swaps) Swap(ctx context.Context, namespace, key string, old, new []byte) error {
	s.n++
	return s.State.Swap(ctx, namespace, key, old, new)
}

// An unchanged value is not written again.
func TestSaveUnchanged(t *testing.T) {
	s := &swaps{State: open(t)}
	j := state.JSON[count]{State: s, Namespace: "site", Key: "count"}
	for range 3 {
		if err := j.Save(t.Context(), count{1}); err != nil {
			t.Fatal(err)
		}
	}
	if s.n != 1 {
		t.Errorf("%d writes, want 1", s.n)
	}
}

// A value of another form counts as absent, or is an error if Strict is set.
func TestOtherForm(t *testing.T) {
	s := open(t)
	if err := s.Swap(t.Context(), "site", "count", nil, []byte(`{"N":3,`)); err != nil {
		t.Fatal(err)
	}
	j := state.JSON[count]{State: s, Namespace: "site", Key: "count"}
	if c, err := j.Load(t.Context()); err != nil || c.N != 0 {
		t.Errorf("%+v, %v; want the zero value", c, err)
	}
	strict := j
	strict.Strict = true
	if _, err := strict.Load(t.Context()); !errors.Is(err, millrace.ErrInvalid) {
		t.Errorf("Strict: %v", err)
	}
	if err := strict.Save(t.Context(), count{1}); !errors.Is(err, millrace.ErrInvalid) {
		t.Errorf("Strict: %v", err)
	}
	if err := j.Save(t.Context(), count{1}); err != nil {
		t.Fatal(err)
	}
	if c, err := j.Load(t.Context()); err != nil || c.N != 1 {
		t.Errorf("%+v, %v; want 1", c, err)
	}
}

// Concurrent calls of Make get the same value, and an invalid value is replaced.
func TestMake(t *testing.T) {
	s := open(t)
	if err := s.Swap(t.Context(), "site", "key", nil, []byte("short")); err != nil {
		t.Fatal(err)
	}
	got := make([]string, 8)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			v, err := state.Make(t.Context(), s, "site", "key", func(b []byte) bool { return len(b) == 10 },
				func() ([]byte, error) { return fmt.Appendf(nil, "%010d", i), nil })
			if err != nil {
				t.Error(err)
			}
			got[i] = string(v)
		})
	}
	all.Wait()
	for _, v := range got {
		if v != got[0] || len(v) != 10 {
			t.Errorf("values %q", got)
		}
	}
}
