package origintest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/store"
)

// stopTimeout is the maximum time for an action to end, even on a slow machine.
const stopTimeout = 10 * time.Second

// maxAfterEnd is the maximum number of changes that a stream may yield after its context has ended.
const maxAfterEnd = 4

func stopped(f *fixture) {
	before := workers()
	n := newRefStore(nil)
	all := n.read(f.Context(), f.source(n.knownRefs), "")
	f.checkStream(all, "the stream")
	for stop := 1; stop <= len(all.puts)+len(all.skips)+len(all.marks); stop++ {
		none, seen := newRefStore(nil), 0
		for _, err := range f.source(none.knownRefs).Changes(f.Context(), "") {
			var skip *millrace.SkipError
			if err != nil && !errors.As(err, &skip) {
				f.Fatalf("stream failed before it was stopped: %v", err)
			}
			if seen++; seen == stop {
				break
			}
		}
		if seen < stop {
			f.Errorf("stream has %d changes, an earlier one had at least %d", seen, stop)
			break
		}
	}
	f.noWorkers(before, "consumers that stopped")
	again := newRefStore(nil)
	f.checkStream(again.read(f.Context(), f.source(again.knownRefs), ""), "the stream after stopped streams")
}

func streamCanceled(f *fixture) {
	before := workers()
	for _, stop := range []int{0, 1, 2, size / 2, size - 2*maxAfterEnd} {
		ctx, cancel := context.WithCancel(f.Context())
		if stop == 0 {
			cancel()
		}
		when, none := fmt.Sprintf("a stream whose context ended after %d changes", stop), newRefStore(nil)
		src := f.source(none.knownRefs)
		f.runWithTimeout(when, func() {
			seen := 0
			var last error
			for c, err := range src.Changes(ctx, "") {
				last = err
				if seen++; seen == stop {
					cancel()
				}
				switch {
				case seen <= stop:
				case err == nil && c.Kind == millrace.KindCheckpoint:
					f.Errorf("%s: it yields a checkpoint", when)
				case seen > stop+maxAfterEnd:
					f.Errorf("%s: it does not end", when)
					return
				}
			}
			if !errors.Is(last, context.Canceled) {
				f.Errorf("%s: last error is %v, want context.Canceled", when, last)
			}
		})
		cancel()
	}
	f.noWorkers(before, "contexts that ended")
}

func pageCanceled(f *fixture) {
	before := workers()
	n := newRefStore(nil)
	s := n.read(f.Context(), f.source(n.knownRefs), "")
	f.checkStream(s, "the stream")
	src := f.source(n.knownRefs)
	ctx, cancel := context.WithCancel(f.Context())
	cancel()
	for _, c := range s.puts[:3] {
		f.runWithTimeout("a page", func() {
			if p, err := src.Page(ctx, millrace.Ref{URL: c.URL}); !errors.Is(err, context.Canceled) {
				f.Errorf("page %s after its context has ended: %v, %v", c.URL, p, err)
			}
		})
	}
	rng := rand.New(rand.NewPCG(2, 9))
	for i := range 60 {
		c := s.puts[i%len(s.puts)]
		if isAlias(c) {
			continue
		}
		ctx, cancel := context.WithCancel(f.Context())
		stop := time.AfterFunc(time.Duration(rng.IntN(1500))*time.Microsecond, cancel)
		f.runWithTimeout("a page", func() {
			p, err := src.Page(ctx, millrace.Ref{URL: c.URL})
			if err != nil && !errors.Is(err, context.Canceled) || err == nil && p == nil {
				f.Errorf("page %s, whose context ends during the fetch: %v, %v", c.URL, p, err)
			}
		})
		stop.Stop()
		cancel()
	}
	f.noWorkers(before, "contexts that ended")
	if site, ok := f.site.(Troubled); ok && site.Trouble(Hung) == nil {
		ctx, cancel := context.WithTimeout(f.Context(), 100*time.Millisecond)
		f.runWithTimeout("a page of a site that hangs", func() {
			if p, err := src.Page(ctx, millrace.Ref{URL: s.puts[0].URL}); !errors.Is(err, context.DeadlineExceeded) {
				f.Errorf("page %s of a site that hangs: %v, %v", s.puts[0].URL, p, err)
			}
		})
		cancel()
		f.noWorkers(before, "a context that ended while the site hung")
		f.must(site.Trouble(Working))
	}
}

func runCanceled(f *fixture) {
	before := workers()
	path := f.newStore()
	for stop := 0; stop < size; stop += 4 {
		p := f.start(path)
		ctx, cancel := context.WithCancel(f.Context())
		if stop == 0 {
			cancel()
		}
		f.runWithTimeout("a run", func() {
			_, err := mirror.Sync(ctx, from, p.src, p.site, &mirror.Options{Batch: 3, Progress: func(g mirror.Progress) {
				if g.Done >= stop {
					cancel()
				}
			}})
			if ctx.Err() != nil && !errors.Is(err, context.Canceled) {
				f.Errorf("a run whose context ended after %d pages ends with %v", stop, err)
			}
		})
		cancel()
		f.noWorkers(before, "a canceled run")
		_, pages := f.readStore(path)
		f.checkInvented(pages, "after a canceled run")
	}
	f.sync(path)
	f.check(path, "after canceled runs")
}

// failingSink is a sink that fails after a number of calls.
type failingSink struct {
	store.Site
	left int
}

func (b *failingSink) Apply(ctx context.Context, from string, batch []millrace.Change) (millrace.Counts, error) {
	if b.left--; b.left < 0 {
		return millrace.Counts{}, fmt.Errorf("the disk is full: %w", millrace.ErrUnavailable)
	}
	return b.Site.Apply(ctx, from, batch)
}

// runBroken interrupts runs after each possible number of batches, first for a new copy and then
// for changes.
func runBroken(f *fixture) {
	path := f.newStore()
	for _, when := range []string{"from the start", "over changes"} {
		if when == "over changes" {
			f.alter()
		}
		broken := 0
		for left := 0; ; left++ {
			p := f.start(path)
			// One worker and small batches give the most points at which a run can be interrupted.
			_, err := mirror.Sync(f.Context(), from, p.src, &failingSink{p.site, left}, &mirror.Options{Batch: 2, Concurrency: 1})
			if err == nil {
				break
			}
			if broken++; broken > 20*size {
				f.Fatalf("runs %s did not end: %v", when, err)
			}
			_, pages := f.readStore(path)
			f.checkInvented(pages, "after an interrupted run")
		}
		f.check(path, "after runs "+when+" that were interrupted")
		if broken == 0 {
			f.Errorf("no run %s was interrupted", when)
		}
	}
}

// workers returns the goroutines of this module by their IDs, without tests and servers.
func workers() map[string]string {
	out := map[string]string{}
	for stack := range strings.SplitSeq(stacks(), "\n\n") {
		id, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
		if strings.Contains(stack, "github.com/millrace/millrace/") && !foreignStack.MatchString(stack) {
			out[id] = stack
		}
	}
	return out
}

// foreignStack matches the stacks of goroutines that were not started by an origin.
var foreignStack = regexp.MustCompile(`(?m)^(testing\.\(\*[MT]\)|testing\.tRunner|main\.main|net/http\.\(\*conn\)\.serve)`)

// stacks returns the stacks of all goroutines.
func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

// noWorkers fails the test if goroutines remain that did not exist before.
func (f *fixture) noWorkers(before map[string]string, whose string) {
	f.Helper()
	deadline := time.Now().Add(stopTimeout)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		left := workers()
		for id := range before {
			delete(left, id)
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			for _, stack := range left {
				f.Errorf("%s left a goroutine behind:\n%s", whose, stack)
			}
			return
		}
		<-tick.C
	}
}
