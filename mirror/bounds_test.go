package mirror_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
)

// If many pages are missing again after a confirmed loss, the new loss must be confirmed, too.
func TestPrimaryRuleUnconfirmedAgain(t *testing.T) {
	src, to := &site{pages: pages(100)}, newSink()
	run(t, src, to, nil)
	lose := func(left, unconfirmed, deleted int) {
		t.Helper()
		src.pages = pages(left)
		if r := run(t, src, to, nil); r.UnconfirmedDeletions != unconfirmed || r.Deleted != deleted {
			t.Errorf("with %d pages left: unconfirmed %d, deleted %d, want %d and %d", left, r.UnconfirmedDeletions, r.Deleted, unconfirmed, deleted)
		}
	}
	lose(75, 25, 0)
	lose(10, 90, 0) // another 65 pages are missing
	lose(0, 100, 0) // all pages are missing
	lose(0, 0, 100)
}

// stuck is a sink that blocks until it is released.
type stuck struct {
	*sink
	once  sync.Once
	start chan struct{}
	sizes []int
	bytes int // size of the originals of pages
}

func (s *stuck) Apply(ctx context.Context, from string, batch []millrace.Change) (millrace.Counts, error) {
	s.once.Do(func() { <-s.start })
	s.sizes = append(s.sizes, len(batch))
	for _, c := range batch {
		if c.Page != nil {
			s.bytes += len(c.Page.Original)
		}
	}
	return s.sink.Apply(ctx, from, batch)
}

// If the sink is slower than the source, only a limited number of pages wait in memory.
func TestPagesAheadAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, to := &site{pages: pages(999)}, &stuck{sink: newSink(), start: make(chan struct{})}
		done := make(chan struct{})
		go func() {
			defer close(done)
			run(t, src, to, nil)
		}()
		synctest.Wait()
		if n := len(src.takeAsked()); n > 250 {
			t.Errorf("%d pages were requested before the first batch is applied", n)
		}
		close(to.start)
		<-done
	})
}

// big is a source of pages whose text is all in tables, lists and quotes.
type big struct{ *site }

func (b big) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	p, err := b.site.Page(ctx, have)
	if err == nil {
		text := strings.Repeat("x", 200<<10)
		p.Blocks = []millrace.Block{
			{Type: millrace.TableBlock, Rows: [][]millrace.Cell{{{Text: text}, {Text: text}}}},
			{Type: millrace.ListBlock, Items: []millrace.Item{{Text: text, Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: text}}}}},
			{Type: millrace.QuoteBlock, Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: text}}},
		}
	}
	return p, err
}

func TestBatchesAreBoundedInBytes(t *testing.T) {
	to := &stuck{sink: newSink(), start: make(chan struct{})}
	close(to.start)
	run(t, big{&site{pages: pages(20)}}, to, &mirror.Options{Batch: 1000})
	for _, n := range to.sizes {
		if n > 6 {
			t.Errorf("%d pages of 1 MB in one batch", n)
		}
	}
}

// heavy is a source of pages with large originals.
type heavy struct{ *site }

func (h heavy) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	p, err := h.site.Page(ctx, have)
	if err == nil {
		p.Original = make([]byte, 1<<20)
	}
	return p, err
}

// The limits of batches and waiting pages include the originals. The original of a page arrives
// together with the page.
func TestOriginalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, to := heavy{&site{pages: pages(50)}}, &stuck{sink: newSink(), start: make(chan struct{})}
		done := make(chan struct{})
		go func() {
			defer close(done)
			run(t, src, to, &mirror.Options{Batch: 1000, Concurrency: 2})
		}()
		synctest.Wait()
		// A batch of 4, 4 waiting pages, and one more in each of two goroutines.
		if n := len(src.takeAsked()); n > 10 {
			t.Errorf("%d pages of 1 MB were requested before the first batch is applied", n)
		}
		close(to.start)
		<-done
		for _, n := range to.sizes {
			if n > 5 {
				t.Errorf("%d pages of 1 MB in one batch", n)
			}
		}
		if to.bytes != 50<<20 {
			t.Errorf("%d bytes of originals have arrived", to.bytes)
		}
	})
}
