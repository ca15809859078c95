package index

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"sync"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/chunk"
	"github.com/millrace/millrace/internal/search"
)

// item is a page to index.
type item struct {
	url, version string
	gone         bool
	page         *millrace.Page // If nil, take fetches the page if its version differs from the indexed one.
	list         []leaf
	texts        *pageTexts
	err          error
	once         sync.Once
	weight       int // size in units of aheadUnit
}

// leaf is a passage of an item.
type leaf struct {
	chunk.Passage
	hash int64
	// The following fields are valid if ready is set. For a page in the index, only changed
	// passages are analyzed.
	ready bool
	entry search.Entry
	print int64
}

// cut divides the page into passages.
func (it *item) cut() {
	if it.page.Kind == millrace.Archive {
		return // the page only lists links to other pages
	}
	list := chunk.Passages(it.page)
	it.texts = new(pageTexts)
	it.list = make([]leaf, len(list))
	for i, p := range list {
		l := &it.list[i]
		l.Passage = p
		l.hash = hashOf(it.text(l), p.Type)
		it.texts.add(&p)
	}
}

// text returns the searchable text of a passage.
func (it *item) text(l *leaf) search.Text {
	return search.Text{Title: it.page.Title, Language: it.page.Language, Headings: slices.Concat(l.Headings, l.Inside), Text: l.Text}
}

// analyze computes the data of a passage that the index stores.
func (l *leaf) analyze(x *search.Indexer, t search.Text) {
	l.entry, l.print, l.ready = x.Entry(t), int64(search.Fingerprint(t.Text)), true
}

// analyzeAll divides the page and analyzes all passages, once.
func (it *item) analyzeAll(x *search.Indexer) {
	it.once.Do(func() {
		it.cut()
		for i := range it.list {
			l := &it.list[i]
			l.analyze(x, it.text(l))
			l.Passage = chunk.Passage{ID: l.ID}
		}
		it.page.Blocks = nil
	})
}

// Limits of the items that wait to be written.
const (
	aheadPages   = 64
	aheadUnit    = 16 << 10 // bytes of text in one unit; at most aheadPages units wait
	aheadWorkers = 3        // maximum number of goroutines that analyze pages, in addition to the writer
)

// ahead reads and analyzes pages in other goroutines while the caller writes, because analysis
// takes as long as writing. It continues between transactions. The result depends only on the
// page, not on the goroutine that analyzed it.
func ahead(ctx context.Context, pages iter.Seq2[*item, error]) iter.Seq2[*item, error] {
	return func(yield func(*item, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var done sync.WaitGroup
		defer done.Wait()
		defer cancel()
		units := make(chan struct{}, aheadPages)
		queue := make(chan *item, aheadPages)
		jobs := make(chan *item, aheadPages)
		for range min(runtime.GOMAXPROCS(0)-1, aheadWorkers) {
			done.Go(func() {
				x := search.NewIndexer()
				for it := range jobs {
					it.analyzeAll(x)
				}
			})
		}
		done.Go(func() {
			defer close(queue)
			defer close(jobs)
			for it, err := range pages {
				if err != nil {
					it = &item{err: err, page: new(millrace.Page)}
				}
				it.weight = min(aheadPages, 1+size(it.page.Blocks)/aheadUnit)
				for range it.weight {
					select {
					case units <- struct{}{}:
					case <-ctx.Done():
						return
					}
				}
				queue <- it
				select {
				case jobs <- it:
				default: // the writer analyzes it
				}
			}
		})
		x := search.NewIndexer()
		for it := range queue {
			it.analyzeAll(x)
			if !yield(it, it.err) {
				return
			}
			it.page, it.list, it.texts = nil, nil, nil // free the memory, because the queue of jobs may still contain the item
			for range it.weight {
				<-units
			}
		}
		if err := ctx.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// size returns the size of the text of blocks in bytes.
func size(blocks []millrace.Block) (n int) {
	for i := range blocks {
		b := &blocks[i]
		n += len(b.Text) + size(b.Blocks)
		for j := range b.Items {
			n += len(b.Items[j].Text) + size(b.Items[j].Blocks)
		}
		for _, row := range b.Rows {
			for j := range row {
				n += len(row[j].Text)
			}
		}
	}
	return n
}
