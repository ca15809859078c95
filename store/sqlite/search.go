package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"sync"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/search"
)

var _ millrace.Searcher = (*view)(nil)

// searches is what the searches of a site share.
type searches struct {
	analyzers sync.Pool // of *search.Analyzer
	mu        sync.Mutex
	languages struct { // of the pages
		generation, seq int64
		list            []string
	}
	hidden struct { // passages that are no longer current in the view of seq
		generation, seq int64
		list            []int64
	}
	model struct {
		id    int64
		model *search.Model
	}
}

// Search implements [millrace.Searcher].
func (v *view) Search(ctx context.Context, q millrace.Query) (*millrace.Found, error) {
	found, err := v.search(ctx, q)
	if err != nil {
		return nil, explain("search site "+v.site.name, err)
	}
	return found, nil
}

func (v *view) search(ctx context.Context, q millrace.Query) (*millrace.Found, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	asked := v.site.ask(ctx, q.Text)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// Without the caller's context, which would cost a goroutine.
	t, err := v.site.store.read.db.BeginTx(context.Background(), nil) //nolint:contextcheck // see writer
	if err != nil {
		return nil, err
	}
	x := &searching{view: v, snapshot: snapshot{v.site.store.read, t, make(map[string]bool)}, query: q, question: asked}
	defer x.close()
	if err := x.open(); err != nil {
		return nil, err
	}
	a, ok := v.site.searches.analyzers.Get().(*search.Analyzer)
	if !ok {
		a = search.NewAnalyzer()
	}
	defer v.site.searches.analyzers.Put(a)
	return search.Run(ctx, x, a, q)
}

// snapshot reads in one transaction. It takes the statements that the pool has
// already; others are prepared on its own connection, since it could wait for
// another one for ever.
type snapshot struct {
	r      *reader
	t      *sql.Tx
	missed map[string]bool // statements that the pool should have
}

// stmt gives a statement; done has to be called after it.
func (s snapshot) stmt(query string) (st *sql.Stmt, done func(), err error) {
	if st, ok := s.r.stmts.Load(query); ok {
		return s.t.StmtContext(context.Background(), st.(*sql.Stmt)), func() {}, nil
	}
	if !strings.Contains(query, "instr(") { // of which there are many
		s.missed[query] = true
	}
	st, err = s.t.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, nil, err
	}
	return st, func() { st.Close() }, nil
}

// close ends the transaction.
func (s snapshot) close() {
	_ = s.t.Rollback() // nothing was written
	for query := range s.missed {
		_, _ = s.r.stmt(query) //nolint:sqlclosecheck // kept until the store closes; who needs it sees the error
	}
}

func (s snapshot) row(query string, args []any, dest ...any) error {
	st, done, err := s.stmt(query) //nolint:sqlclosecheck // by done
	if err != nil {
		return err
	}
	defer done()
	return st.QueryRowContext(context.Background(), args...).Scan(dest...)
}

func (s snapshot) rows(query string, args []any, f func(scan scanner) error) error {
	st, done, err := s.stmt(query) //nolint:sqlclosecheck // by done
	if err != nil {
		return err
	}
	defer done()
	return each(st, args, f)
}

// searching is one search: the index as a view shows it.
type searching struct {
	*view
	snapshot
	query      millrace.Query
	question   question
	generation *generation
	statistics search.Statistics
	behind     bool // the index has come farther than the view
	// Those are the ones from newer on, and the hidden ones, in order; unless
	// there are so many of these that each passage is looked at instead.
	newer  int64
	hidden []int64
	look   bool
}

var _ search.Index = (*searching)(nil)

// maxLanguages is how many languages of a site a word is read in. A page is
// only found by words that are read in its language.
const maxLanguages = 40

func (x *searching) open() error {
	// Not by the view's own means: they would take a second connection, and
	// searches that each hold one could wait for each other.
	st, err := x.site.state(x.snapshot)
	if err != nil {
		return err
	}
	if st.floor > x.seq {
		return x.gone()
	}
	g, _, err := x.site.generations(x.snapshot)
	switch {
	case err != nil:
		return err
	case g == nil:
		return noIndex("the site has no index: index it first")
	case g.seq < x.seq:
		return noIndex("the index has not come as far as this view: index the site")
	case g.base > x.seq:
		return noIndex("the index begins after this view: search a newer one")
	}
	x.generation = g
	x.statistics.Passages = int(g.passages)
	if g.passages > 0 {
		x.statistics.Length = float64(g.length) / float64(g.passages)
	}
	if x.statistics.Languages, err = x.languages(); err != nil {
		return err
	}
	return x.shown()
}

// maxHidden is how many passages that are no longer current are left out by
// their numbers. They stay until Compact drops them.
const maxHidden = 5000

// shown finds out which passages the view does not show.
func (x *searching) shown() error {
	g := x.generation
	x.newer = g.last() + 1
	if x.behind = g.seq > x.seq; x.behind {
		// Those that the index was filled with are older than any view that it
		// answers, and the others have their numbers in the order of the log.
		low, high := g.first()+1, g.first()|g.next
		for low < high {
			middle := (low + high) / 2
			var id, seq int64
			err := x.row("SELECT id, seq FROM passage WHERE id >= ? AND id < ? ORDER BY id LIMIT 1", []any{middle, high}, &id, &seq)
			switch {
			case absent(err):
				high = middle
			case err != nil:
				return err
			case seq > x.seq:
				high = middle
			default:
				low = id + 1
			}
		}
		x.newer = low
	}
	hidden, err := x.outdated()
	if err != nil {
		return err
	}
	if x.look = len(hidden) > maxHidden; !x.look {
		x.hidden = hidden
	}
	return nil
}

// outdated gives the passages that are no longer current in the view, at most
// one more than maxHidden. They only become fewer.
func (x *searching) outdated() ([]int64, error) {
	s := &x.site.searches
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.hidden
	if h.generation == x.generation.id && h.seq == x.seq {
		return h.list, nil
	}
	var list []int64
	err := x.rows(`SELECT id FROM passage INDEXED BY passage_old WHERE until < 1099511627775 AND until <= ? AND id > ? AND id <= ? LIMIT ?`,
		[]any{x.seq, x.generation.first(), x.generation.last(), maxHidden + 1}, func(scan scanner) error {
			var id int64
			err := scan(&id)
			list = append(list, id)
			return err
		})
	if err != nil {
		return nil, err
	}
	slices.Sort(list)
	h.generation, h.seq, h.list = x.generation.id, x.seq, list
	return list, nil
}

// languages gives the languages of the site's pages, the most common first. A
// page that is gone or has changed its language leaves a sheet until Compact.
func (x *searching) languages() ([]string, error) {
	s := &x.site.searches
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.languages
	if l.generation == x.generation.id && l.seq == x.generation.seq {
		return l.list, nil
	}
	var list []string
	err := x.rows(`SELECT sum(n), lower(substr(language, 1, instr(replace(language, '_', '-') || '-', '-') - 1)) AS l
		FROM (SELECT count(*) AS n, language FROM sheet WHERE generation = ?
			AND EXISTS (SELECT 1 FROM passage WHERE sheet = sheet.id AND until = 1099511627775) GROUP BY language)
		GROUP BY l ORDER BY 1 DESC, 2 LIMIT ?`, []any{x.generation.id, maxLanguages},
		func(scan scanner) error {
			var n int
			var name string
			err := scan(&n, &name)
			list = append(list, name)
			return err
		})
	if err != nil {
		return nil, err
	}
	l.generation, l.seq, l.list = x.generation.id, x.generation.seq, list
	return list, nil
}

// Statistics implements [search.Index].
func (x *searching) Statistics() search.Statistics { return x.statistics }

// Frequency implements [search.Index]. The terms of passages that are no longer
// current are not counted, so a view that may show some looks for them.
func (x *searching) Frequency(term string) (n int, err error) {
	err = x.row("SELECT n FROM term WHERE generation = ? AND term = ?", []any{x.generation.id, term}, &n)
	if !absent(err) {
		return n, err
	}
	if !x.behind {
		return 0, nil
	}
	ids, err := x.Match(search.Match{All: [][]search.Phrase{{{Terms: []string{term}}}}}, lostTerms)
	return len(ids), err
}

// lostTerms is how far a term is counted that no current passage has.
const lostTerms = 100

// Terms implements [search.Index].
func (x *searching) Terms(prefix string, f func(term string, n int) bool) error {
	return x.rows("SELECT term, n FROM term WHERE generation = ? AND term >= ? ORDER BY term", []any{x.generation.id, prefix},
		func(scan scanner) error {
			var term string
			var n int
			if err := scan(&term, &n); err != nil {
				return err
			}
			if !strings.HasPrefix(term, prefix) || !f(term, n) {
				return errEnough
			}
			return nil
		})
}
