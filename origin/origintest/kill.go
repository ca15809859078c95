package origintest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/store"
)

// killableStore is the store of a process that may be killed. A killed process no longer changes
// the store.
type killableStore struct {
	store.Site
	mu   sync.Mutex
	dead bool
}

func (m *killableStore) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
}

func (m *killableStore) Apply(ctx context.Context, from string, batch []millrace.Change) (millrace.Counts, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return millrace.Counts{}, errors.New("killed")
	}
	return m.Site.Apply(ctx, from, batch)
}

// kill starts a run over the site, and kills it at a step, either at once or after a delay. It
// reports whether the run was killed before its end.
func (f *fixture) kill(path string, step int, later time.Duration) bool {
	f.Helper()
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	p := f.start(path)
	site := &killableStore{Site: p.site}
	die := func() {
		site.die()
		cancel()
	}
	seen := 0
	_, err := mirror.Sync(ctx, from, p.src, site, &mirror.Options{Batch: 3, Progress: func(mirror.Progress) {
		if seen++; seen != step {
			return
		}
		if later == 0 {
			die()
		} else {
			time.AfterFunc(later, die)
		}
	}})
	site.mu.Lock()
	defer site.mu.Unlock()
	if err != nil && !site.dead {
		f.Fatalf("run failed before it was killed: %v", err)
	}
	return err != nil
}

func runKilled(f *fixture) {
	rounds := testkit.Size(2, 2, 6)
	rng := rand.New(rand.NewPCG(11, 4))
	path := f.newStore()
	for _, c := range []struct {
		when  string
		steps int // minimum number of steps of a run
	}{{"from the start", size - 1}, {"over changes", 3}} {
		if c.when == "over changes" {
			f.alter()
		}
		killed := 0
		for round := range rounds {
			var later time.Duration
			if round%2 == 1 {
				later = time.Duration(1 + rng.Int64N(int64(15*time.Millisecond)))
			}
			if f.kill(path, 1+rng.IntN(c.steps), later) {
				killed++
			}
			_, pages := f.readStore(path)
			f.checkInvented(pages, "after a killed run")
		}
		f.sync(path)
		f.check(path, "after runs "+c.when+" that were killed")
		if killed == 0 {
			f.Errorf("none of %d runs %s was killed", rounds, c.when)
		}
	}
}
