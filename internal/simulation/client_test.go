package simulation

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// mirrored is a sink whose pages the test can read.
type mirrored interface {
	millrace.Sink
	millrace.SyncState
	// restart drops all state that is not durable.
	restart(ctx context.Context) error
	pages(ctx context.Context) (map[string]*millrace.Page, error)
	exact() bool // reports whether it stores dates unchanged
}

// client keeps a mirror of the site in one protocol. It must never lose an existing page. A
// page that is missing after a pull must be absent from an edition that the pull may have
// seen.
type client struct {
	w         *world
	p         protocol.Protocol
	name      string
	rng       *rand.Rand
	slow      int // see slowness
	clock     skew
	noted     atomic.Bool // the reader has reported a note
	http      *fetch.Client
	sink      mirrored
	src       millrace.Source
	lastPages map[string]*millrace.Page
	pulls     int
	complete  int // number of pulls, and of complete ones
}

func newClient(w *world, p protocol.Protocol, sink mirrored) *client {
	c := &client{w: w, p: p, sink: sink, name: fmt.Sprintf("client %s %T", p.Name, sink)}
	c.rng = w.rand(c.name)
	c.slow = slowness[c.rng.IntN(len(slowness))]
	if c.rng.IntN(2) == 0 {
		c.clock.set(between(c.rng, -maxSkew, maxSkew))
	}
	c.http = fetch.New(&fetch.Options{Dial: w.net.dial, Rand: c.rng.Float64})
	return c
}

func (c *client) close() { c.http.CloseIdleConnections() }

// run pulls at random times until faults and changes end.
func (c *client) run(ctx context.Context) {
	for !c.w.settling.Load() && ctx.Err() == nil {
		sleep(ctx, between(c.rng, 0, 12*time.Second))
		if c.src == nil || c.rng.IntN(4) == 0 {
			if err := c.sink.restart(ctx); err != nil {
				c.w.broke("%s: %v", c.name, err)
				return
			}
			c.src = c.reader()
		}
		running, kill := context.WithCancel(ctx)
		var killer *time.Timer
		if c.w.chance(c.rng, .3) {
			killer = time.AfterFunc(between(c.rng, 0, 10*time.Second), kill)
			c.src = nil // the next run represents another process
		}
		c.pull(running)
		if killer != nil {
			killer.Stop()
		}
		kill()
	}
}

// reader returns a reader without memory.
func (c *client) reader() millrace.Source {
	return c.p.NewReader(c.http.HTTP(), base, &protocol.ReaderOptions{Now: c.clock.now, Note: func(n protocol.Note) {
		c.noted.Store(true)
		c.w.logf("%s: %s at %s: %s", c.name, n.Rule, n.URL, n.Text)
	}})
}

// slack is the maximum age of the edition that a pull sees: the delay of a replica plus
// the duration of a configuration change.
const slack = 20 * time.Second

// pull runs one pull, and checks that no page was lost.
func (c *client) pull(ctx context.Context) *mirror.Report {
	start := time.Now()
	c.noted.Store(false)
	src, sink := c.src, &lossy{c.sink, c}
	if src == nil {
		src = c.reader()
	}
	if c.w.broken.hideListEnd {
		src = endlessSource{src}
	}
	report, err := mirror.Sync(ctx, c.p.Name+" "+base, src, sink, &mirror.Options{
		Batch: 1 + c.rng.IntN(10), Concurrency: 1 + c.rng.IntN(4),
	})
	c.w.logf("%s: %+v, asked %d, skipped %d, unconfirmed %d, %v", c.name, report.Counts, report.Requested, report.SkippedN, report.UnconfirmedDeletions, err)
	c.pulls++
	whole := err == nil
	if whole {
		c.complete++
	}
	now, err := c.sink.pages(context.WithoutCancel(ctx))
	if err != nil {
		c.w.broke("%s: %v", c.name, err)
		return report
	}
	for u := range c.lastPages {
		if now[u] == nil && !c.w.oracle.lacked(c.p.Name, u, start.Add(-slack)) {
			c.w.fail("%s lost %s, which existed all the time", c.name, u)
		}
	}
	c.lastPages = now
	if whole && !c.noted.Load() && report.SkippedN+report.Unconfirmed+report.UnconfirmedDeletions == 0 {
		c.w.checkFresh(c.name, start, &c.p, now)
	}
	return report
}

// lossy is a sink whose replies are sometimes lost.
type lossy struct {
	mirrored
	c *client
}

// Apply applies a batch, and sometimes returns an error afterwards.
func (s *lossy) Apply(ctx context.Context, from string, batch []millrace.Change) (millrace.Counts, error) {
	w, rng := s.c.w, s.c.rng
	(&process{slow: s.c.slow}).work(ctx, len(batch))
	if w.chance(rng, .01) {
		return millrace.Counts{}, fmt.Errorf("the batch was not applied: %w", millrace.ErrUnavailable)
	}
	if w.broken.forget && rng.IntN(3) == 0 {
		batch = slices.Clone(batch)
		batch[0].Page = nil
	}
	t, err := s.mirrored.Apply(ctx, from, batch)
	if err == nil && w.chance(rng, .02) {
		err = errForgotten
	}
	return t, err
}

// endlessSource is a source that never reports that a list was complete.
type endlessSource struct{ millrace.Source }

// Changes marks every checkpoint as incomplete.
func (u endlessSource) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		for c, err := range u.Source.Changes(ctx, since) {
			if c.Checkpoint != nil {
				m := *c.Checkpoint
				m.Complete = false
				c.Checkpoint = &m
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// memorySink keeps pages unchanged.
type memorySink struct {
	mu     sync.Mutex
	cursor millrace.Cursor
	refs   map[string]millrace.Ref
	stored map[string]*millrace.Page
}

func (s *memorySink) exact() bool                   { return true }
func (s *memorySink) restart(context.Context) error { return nil }

// Apply implements millrace.Sink.
func (s *memorySink) Apply(ctx context.Context, _ string, batch []millrace.Change) (t millrace.Counts, err error) {
	if err := ctx.Err(); err != nil {
		return t, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refs == nil {
		s.refs, s.stored = make(map[string]millrace.Ref), make(map[string]*millrace.Page)
	}
	for _, c := range batch {
		switch c.Kind {
		case millrace.Put:
			if c.Page != nil {
				if c.Page.Version != "" {
					c.Version = c.Page.Version
				}
				s.stored[c.URL] = c.Page
				t.Updated++
			}
			s.refs[c.URL] = c.Ref
		case millrace.Delete:
			delete(s.refs, c.URL)
			delete(s.stored, c.URL)
			t.Deleted++
		case millrace.KindCheckpoint:
			s.cursor = c.Checkpoint.Cursor
		}
	}
	return t, nil
}

// Cursor implements millrace.SyncState.
func (s *memorySink) Cursor(context.Context, string) (millrace.Cursor, error) { return s.cursor, nil }

// KnownRefs implements millrace.SyncState.
func (s *memorySink) KnownRefs(_ context.Context, _ string, urls ...string) iter.Seq2[millrace.Ref, error] {
	return func(yield func(millrace.Ref, error) bool) {
		s.mu.Lock()
		refs := maps.Clone(s.refs)
		s.mu.Unlock()
		if len(urls) == 0 {
			urls = slices.Sorted(maps.Keys(refs))
		}
		for _, u := range urls {
			if ref, ok := refs[u]; ok && !yield(ref, nil) {
				return
			}
		}
	}
}

func (s *memorySink) pages(context.Context) (map[string]*millrace.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.stored), nil
}

// fileSink is a mirror in a store, like that of `millrace pull`.
type fileSink struct {
	w     *world
	proto string
	store.Site
}

func (s *fileSink) exact() bool { return false }

func (s *fileSink) restart(ctx context.Context) error {
	db, err := stores.Open(ctx, filepath.Join(s.w.dir, "mirror-"+s.proto+".db"), &store.Options{Now: time.Now})
	if err != nil {
		return err
	}
	s.w.mu.Lock()
	s.w.leftOpen = append(s.w.leftOpen, db)
	s.w.mu.Unlock()
	s.Site, err = db.Site(ctx, "mirror of "+base, base)
	return err
}

func (s *fileSink) pages(ctx context.Context) (map[string]*millrace.Page, error) {
	v, err := s.Head(ctx)
	if err != nil {
		return nil, err
	}
	return scan(ctx, v)
}

func scan(ctx context.Context, v millrace.View) (map[string]*millrace.Page, error) {
	out := make(map[string]*millrace.Page)
	for p, err := range v.Scan(ctx, millrace.Scan{WithBlocks: true}) {
		if err != nil {
			return nil, err
		}
		out[p.URL] = p
	}
	return out, nil
}
