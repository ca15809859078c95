package simulation

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/testkit"
)

var (
	simSeed = flag.Uint64("sim.seed", 1, "the first seed to run")
	simN    = flag.Uint64("sim.n", 0, "how many seeds to run from -sim.seed on; 0 = 4, 1 with -short, 64 at full length, or 1 with -sim.seed")
)

// TestSimulation runs the seeds.
func TestSimulation(t *testing.T) {
	n := *simN
	if n == 0 {
		n = uint64(testkit.Size(1, 4, 64))
		flag.Visit(func(f *flag.Flag) {
			if f.Name == "sim.seed" {
				n = 1
			}
		})
	}
	for seed := *simSeed; seed < *simSeed+n; seed++ {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			t.Parallel()
			w := simulate(t, seed, broken{})
			t.Log(w.stats())
			if len(w.violations) > 0 {
				t.Errorf("seed %d: %s\nthe last events:\n%s", seed, strings.Join(w.violations, "\n"), w.lastEvents())
			}
		})
	}
}

// broken selects the part that the test breaks.
type broken struct {
	dropDeletion bool // the origin still lists deleted pages
	hideListEnd  bool // clients never receive the end of a list
	oldBody      bool // one replica sends its first body with every validator
	forget       bool // sinks keep the refs of pages that they delete
	isolated     bool // one replica never sees editions of the other
	exposed      bool // one replica hides nothing
	omit         bool // the builder publishes no more changes
	part         bool // the builder never publishes the files of a change
}

// TestBroken breaks one part at a time, and expects a violation of the matching invariant. It
// tries several seeds, since not every run finds the fault.
func TestBroken(t *testing.T) {
	testkit.Soak(t)
	for name, c := range map[string]struct {
		broken
		want string // part of the text of the violation
	}{
		"a source that drops deletions":    {broken{dropDeletion: true}, "the store differs from its sources"},
		"a client that gets no deletions":  {broken{hideListEnd: true}, "differs from map(Carry, view)"},
		"a handler that serves old bodies": {broken{oldBody: true}, "the body does not match its validator"},
		"a sink that forgets":              {broken{forget: true}, "differs from map(Carry, view)"},
		"a replica that does not follow":   {broken{isolated: true}, "is too old"},
		"a replica that hides nothing":     {broken{exposed: true}, "hidden"},
		"a builder that omits changes":     {broken{omit: true}, "is not fresh"},
		"a builder that omits a part":      {broken{part: true}, "is not fresh"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen []string
			for seed := uint64(1); seed <= 5; seed++ {
				w := simulate(t, seed, c.broken)
				if slices.ContainsFunc(w.violations, func(v string) bool { return strings.Contains(v, c.want) }) {
					return
				}
				seen = append(seen, w.violations...)
			}
			t.Errorf("no violation with %q; found %q", c.want, seen)
		})
	}
}

// runFor is the duration of changes and faults, on the bubble's clock.
const runFor = 40 * time.Second

// simulate runs one seed to its end, or to its first violation.
func simulate(t *testing.T, seed uint64, b broken) *world {
	t.Helper()
	var w *world
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t.Context(), dir, seed, b)
		defer w.end()
		for i := range w.replicas {
			w.spawn(replicaName(i), w.replica(i))
		}
		w.spawn("folder writer", w.folderWriter)
		w.spawn("api writer", w.apiWriter)
		for _, c := range w.clients {
			w.actors.Go(func() { c.run(w.ctx) })
		}
		w.actors.Go(w.setClock)
		if w.steady {
			w.actors.Go(w.watchFreshness)
		} else {
			w.actors.Go(w.faults)
		}
		w.sleep(runFor)
		w.settling.Store(true)
		w.actors.Wait() // wait for the last pulls and restarts
		w.settle()
	})
	return w
}

// sleep waits on the bubble's clock, or until the run ends.
func (w *world) sleep(d time.Duration) { sleep(w.ctx, d) }

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
