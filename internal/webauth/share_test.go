package webauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// sharing returns a verifier that shares its nonces in a store until stop is called.
func sharing(t *testing.T, st store.State) (v *Verifier, stop func()) {
	t.Helper()
	v = NewVerifier(&VerifierOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { v.Share(ctx, st, "https://www.example.com/", slog.New(slog.DiscardHandler)) })
	stop = func() { cancel(); all.Wait() }
	t.Cleanup(stop)
	time.Sleep(100 * time.Millisecond)
	return v, stop
}

// use uses a nonce that is valid for a minute.
func (v *Verifier) use(text string) bool {
	return v.nonces.use("https://bot.test/", "key", text, v.now().Add(time.Minute), v.now())
}

// A nonce that one process has accepted is refused by all others within two seconds, and after a
// restart of all.
func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(nil).State()
		one, stopOne := sharing(t, st)
		time.Sleep(300 * time.Millisecond)
		two, stopTwo := sharing(t, st)
		other, _ := sharing(t, memory.New(nil).State())
		for i := range 3 {
			a, b := fmt.Sprint("a", i), fmt.Sprint("b", i)
			if !one.use(a) || !two.use(b) {
				t.Error("a new nonce is refused")
			}
			time.Sleep(2 * time.Second)
			if one.use(b) || two.use(a) || two.use(b) {
				t.Error("a used nonce is accepted")
			}
			if !other.use(a) {
				t.Error("a nonce of another site is refused")
			}
		}
		one.use("last")
		stopOne()
		stopTwo()
		three, _ := sharing(t, st)
		time.Sleep(2 * time.Second)
		if three.use("a2") || three.use("last") || !three.use("new") {
			t.Error("after a restart")
		}
	})
}

// The log is bounded: expired segments are deleted, and so are the oldest segments above the
// limit.
func TestShareMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memory.New(nil).State()
		one, _ := sharing(t, st)
		two, _ := sharing(t, st)
		segments := func() (n int) {
			for i := range 2000 {
				value, err := st.Value(t.Context(), "https://www.example.com/", fmt.Sprintf("nonces/%d", i))
				if err != nil {
					t.Fatal(err)
				}
				if len(value) > segmentSize {
					t.Errorf("segment %d has %d bytes", i, len(value))
				}
				if len(value) > 0 {
					n++
				}
			}
			return n
		}
		const perSegment = segmentSize / recordSize
		for turn := range 10 {
			for i := range 3 * perSegment {
				v := []*Verifier{one, two}[i%2]
				if !v.use(fmt.Sprint(turn, " ", i)) {
					t.Fatal("a new nonce is refused")
				}
			}
			time.Sleep(3 * time.Second)
			for i := range 3 * perSegment {
				if one.use(fmt.Sprint(turn, " ", i)) || two.use(fmt.Sprint(turn, " ", i)) {
					t.Fatalf("round %d: nonce %d is accepted again", turn, i)
				}
			}
			time.Sleep(2 * time.Minute)
		}
		if n := segments(); n > 5 {
			t.Errorf("%d segments", n)
		}
		for i := range (maxSegments + 10) * perSegment {
			if one.use(fmt.Sprint("many ", i)); i%maxNonces == 0 {
				time.Sleep(2 * time.Second)
			}
		}
		time.Sleep(2 * time.Second)
		if n := segments(); n > maxSegments+1 {
			t.Errorf("%d segments", n)
		}
		if last := fmt.Sprint("many ", (maxSegments+10)*perSegment-1); two.use(last) {
			t.Error("the newest nonce is accepted again")
		}
	})
}

// broken is a State that can be down.
type broken struct {
	store.State
	is atomic.Bool
}

func (b *broken) Value(ctx context.Context, namespace, key string) ([]byte, error) {
	if b.is.Load() {
		return nil, errors.New("down")
	}
	return b.State.Value(ctx, namespace, key)
}

// While the store is down, each process refuses its own nonces. Afterwards, all processes refuse
// all used nonces.
func TestShareDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &broken{State: memory.New(nil).State()}
		one, _ := sharing(t, st)
		two, _ := sharing(t, st)
		time.Sleep(time.Second)
		st.is.Store(true)
		if !one.use("a") || one.use("a") || !two.use("b") {
			t.Error("while the store is down")
		}
		time.Sleep(10 * time.Second)
		st.is.Store(false)
		time.Sleep(3 * time.Second)
		if one.use("b") || two.use("a") {
			t.Error("a used nonce is accepted")
		}
	})
}
