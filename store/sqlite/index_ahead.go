package sqlite

import (
	"encoding/json"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace"
	passages "github.com/millrace/millrace/internal/chunk"
	"github.com/millrace/millrace/internal/search"
)

// sheaf is a page as an index takes it in.
type sheaf struct {
	bytes  int
	meta   []byte
	blocks []byte
	page   *millrace.Page // without spans
	list   []leaf
	err    error
	taken  atomic.Bool // somebody makes it
	made   chan struct{}
}

// leaf is a passage of it.
type leaf struct {
	passages.Passage
	hash int64
	// What is written of it, once it is made: of a page that is there already,
	// only for what has changed.
	ready bool
	entry search.Entry
	print int64
	data  []byte
}

// cut decodes the page and divides it.
func (s *sheaf) cut() {
	if s.page, s.err = decodeBare(s.meta, s.blocks); s.err != nil || s.page.Kind == millrace.Archive {
		return // which only points at other pages
	}
	list := passages.Passages(s.page)
	s.list = make([]leaf, len(list))
	for i, p := range list {
		l := &s.list[i]
		l.Passage = p
		l.hash = hashOf(s.text(l), p.Type)
	}
}

// text gives what is searched of a passage.
func (s *sheaf) text(l *leaf) search.Text {
	return search.Text{Title: s.page.Title, Language: s.page.Language, Headings: slices.Concat(l.Headings, l.Inside), Text: l.Text}
}

// analyse makes what is written of a passage.
func (l *leaf) analyse(x *search.Indexer, t search.Text) (err error) {
	l.entry, l.print = x.Entry(t), int64(search.Fingerprint(t.Text))
	l.data, err = json.Marshal(passageText{l.Type, l.Headings, l.Inside, l.Text})
	l.ready = err == nil
	return err
}

// whole cuts the page and analyses all of it.
func (s *sheaf) whole(x *search.Indexer) {
	s.cut()
	for i := range s.list {
		l := &s.list[i]
		if s.err == nil {
			s.err = l.analyse(x, s.text(l))
		}
		l.Passage = passages.Passage{ID: l.ID}
	}
	s.meta, s.blocks = nil, nil
	if s.page != nil {
		s.page.Blocks = nil
	}
}

// ahead makes sheaves on the other processors while one writes: analysing takes
// as long as writing does. It goes on between two transactions. What is made
// depends on the page alone, so that the index is the same whoever made it.
type ahead struct {
	jobs    chan *sheaf
	done    sync.WaitGroup
	waiting map[int64]*sheaf // by the sequence numbers of their entries
	bytes   int              // of the pages that wait
}

// Bounds of what waits to be written.
const (
	aheadPages = 64
	aheadBytes = 1 << 20
	aheadMost  = 3 // processors beside the one that writes
)

// newAhead starts as many goroutines as there are processors left.
func newAhead() *ahead {
	a := &ahead{jobs: make(chan *sheaf, aheadPages), waiting: make(map[int64]*sheaf)}
	for range min(runtime.GOMAXPROCS(0)-1, aheadMost) {
		a.done.Go(func() {
			x := search.NewIndexer()
			for s := range a.jobs {
				s.make(x)
			}
		})
	}
	return a
}

// make makes a sheaf, unless somebody else does.
func (s *sheaf) make(x *search.Indexer) {
	if s.taken.CompareAndSwap(false, true) {
		s.whole(x)
		close(s.made)
	}
}

// room reports whether another page may be read.
func (a *ahead) room() bool {
	return len(a.waiting) < aheadPages && (a.bytes < aheadBytes || len(a.waiting) == 0)
}

// put gives a page to be made.
func (a *ahead) put(seq int64, s *sheaf) {
	s.made = make(chan struct{})
	a.waiting[seq] = s
	a.bytes += s.bytes
	select {
	case a.jobs <- s:
	default: // it waits for who writes
	}
}

// get gives a page that was put. Who waits for one that nobody has begun makes
// it with x.
func (a *ahead) get(seq int64, x *search.Indexer) *sheaf {
	s := a.waiting[seq]
	a.forget(seq)
	s.make(x)
	<-s.made
	return s
}

func (a *ahead) forget(seq int64) {
	a.bytes -= a.waiting[seq].bytes
	delete(a.waiting, seq)
}

// only forgets the pages that are not among the next ones: another process has
// taken them in.
func (a *ahead) only(rows []indexRow) {
	next := make(map[int64]bool, len(rows))
	for _, r := range rows {
		next[r.seq] = r.meta != nil
	}
	for seq, s := range a.waiting {
		if !next[seq] {
			s.taken.Store(true)
			a.forget(seq)
		}
	}
}

// drop lets go of what a page was made of: it may still stand among the jobs.
func (s *sheaf) drop() { s.meta, s.blocks, s.page, s.list = nil, nil, nil, nil }

// stop ends the goroutines. What they have not begun nobody needs any more.
func (a *ahead) stop() {
	for _, s := range a.waiting {
		s.taken.Store(true)
	}
	close(a.jobs)
	a.done.Wait()
}
