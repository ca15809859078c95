package sqlite

import (
	"context"
	"fmt"
	"math"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/search"
)

// A generation of an index goes through these stages. While it is filled and
// counted it stands at its base; then it follows the log until it has come as
// far as the one before it, and takes its place.
const (
	filling = iota + 1
	counting
	following
	answering
	leaving
)

// Bounds of one transaction, so that others get their turn to write.
const (
	indexPassages = 1000
	indexBytes    = 2 << 20
	indexPages    = 200
	indexTerms    = 20_000
)

// passageBits is how far a generation's number is shifted in passage.id, and a
// model's in vector.id.
const (
	passageBits = 32
	passageMask = 1<<passageBits - 1
)

// vectorID is where a model keeps the vector of a passage.
func vectorID(model, passage int64) int64 { return model<<passageBits | passage&passageMask }

// generation is one index of a site: its row.
type generation struct {
	id       int64
	format   int
	stage    int
	base     int64
	seq      int64
	after    string
	done     int
	next     int64
	passages int64
	length   int64
	model    int64
	moved    int64
}

func (g *generation) words() string { return fmt.Sprintf("words_%d", g.id) }

// first and last bound the ids of a generation's passages.
func (g *generation) first() int64 { return g.id << passageBits }
func (g *generation) last() int64  { return (g.id+1)<<passageBits - 1 }

const generationColumns = "id, format, stage, base, seq, after, done, next, passages, length, model, moved"

func (g *generation) scan(scan scanner) error {
	return scan(&g.id, &g.format, &g.stage, &g.base, &g.seq, &g.after, &g.done, &g.next, &g.passages, &g.length, &g.model, &g.moved)
}

// generations gives the ones of a site that are not leaving: the one that
// answers, and the one that is being made. nil = there is none.
func (s *Site) generations(q querier) (answers, made *generation, err error) {
	err = q.rows("SELECT "+generationColumns+" FROM generation WHERE site = ? AND stage < 5", []any{s.id}, func(scan scanner) error {
		g := new(generation)
		if err := g.scan(scan); err != nil {
			return err
		}
		if g.stage == answering {
			answers = g
		} else {
			made = g
		}
		return nil
	})
	return answers, made, err
}

// save writes a generation back.
func (w *work) save(g *generation) error {
	return w.exec(`UPDATE generation SET stage = ?, seq = ?, after = ?, done = ?, next = ?, passages = ?, length = ?, model = ?, moved = ?
		WHERE id = ?`, g.stage, g.seq, g.after, g.done, g.next, g.passages, g.length, g.model, g.moved, g.id)
}

// Index implements [store.Site].
func (s *Site) Index(ctx context.Context, progress func(done, total int)) error {
	err := s.index(ctx, forever, progress)
	if err == nil {
		err = s.merge(ctx, math.MaxInt)
	}
	if err != nil {
		return explain("index site "+s.name, err)
	}
	s.store.writer.rest(ctx)
	return nil
}

// index brings the index as far as a sequence number, or as the head if that
// comes first, in small transactions.
func (s *Site) index(ctx context.Context, to int64, progress func(done, total int)) error {
	x := s.indexing()
	defer s.indexed(x)
	for {
		var finished bool
		var done, total int
		err := s.change(ctx, func(w *work) (err error) {
			x.begin(w)
			finished, done, total, err = x.step(ctx, min(to, w.seq))
			return err
		})
		if err != nil {
			return err
		}
		if progress != nil && total > 0 {
			progress(min(done, total), total)
		}
		if finished {
			return nil
		}
	}
}

// indexing gives what makes entries, kept from one publication to the next:
// it remembers stems.
func (s *Site) indexing() *indexing {
	select {
	case x := <-s.indexer:
		return x
	default:
		return &indexing{entries: search.NewIndexer()}
	}
}

func (s *Site) indexed(x *indexing) {
	if x.ahead != nil {
		x.ahead.stop()
	}
	x.work, x.counts, x.ahead = nil, nil, nil
	select {
	case s.indexer <- x:
	default:
	}
}

// indexing is the making of an index, in one transaction after another.
type indexing struct {
	*work
	entries *search.Indexer
	counts  map[string]int // by how much the terms have grown in this transaction
	ahead   *ahead         // nil until an index is filled
}

func (x *indexing) begin(w *work) {
	x.work = w
	if x.counts == nil {
		x.counts = make(map[string]int)
	}
	clear(x.counts)
}

// publish does what is left up to a sequence number in the transaction that
// publishes it. There is little: somebody may have retired the index in
// between, and then this makes it anew.
func (x *indexing) publish(ctx context.Context, w *work, to int64) error {
	x.begin(w)
	for {
		clear(x.counts)
		finished, _, _, err := x.step(ctx, min(to, w.seq))
		if err != nil || finished {
			return err
		}
	}
}

// step does the next part of what is to do.
func (x *indexing) step(ctx context.Context, to int64) (finished bool, done, total int, err error) {
	answers, made, err := x.generations(x)
	if err != nil {
		return false, 0, 0, err
	}
	if made != nil && (made.format != search.Format || made.seq < x.state.horizon) {
		// It has lost the log, or another millrace has begun it.
		if err := x.retire(made); err != nil {
			return false, 0, 0, err
		}
		made = nil
	}
	if answers != nil && answers.seq < x.state.horizon {
		if err := x.retire(answers); err != nil {
			return false, 0, 0, err
		}
		answers = nil
	}
	if made == nil && (answers == nil || answers.format != search.Format) {
		if made, err = x.startGeneration(); err != nil {
			return false, 0, 0, err
		}
	}
	// What answers goes first: views are waiting for it.
	if answers != nil && answers.seq < to {
		err := x.follow(ctx, answers, to)
		return false, int(answers.seq), int(to), err
	}
	if made == nil {
		return true, int(to), int(to), nil
	}
	switch made.stage {
	case filling:
		total, err = x.pagesAt(made.base)
		if err == nil {
			err = x.fill(ctx, made)
		}
		return false, made.done, total, err
	case counting:
		return false, 0, 0, x.count(made)
	}
	if made.seq < to {
		if err := x.follow(ctx, made, to); err != nil || made.seq < to {
			return false, int(made.seq - made.base), int(to - made.base), err
		}
	}
	made.stage = answering
	if answers != nil {
		if err := x.retire(answers); err != nil {
			return false, 0, 0, err
		}
	}
	return true, 1, 1, x.save(made)
}

// pagesAt gives about how many pages a view shows.
func (x *indexing) pagesAt(int64) (n int, err error) {
	err = x.row("SELECT coalesce(sum(pages), 0) FROM section WHERE site = ?", []any{x.id}, &n)
	return n, err
}

// startGeneration makes an empty index that stands at the published view, so that it
// is searched as soon as the index is made, or at the head if there is none.
func (x *indexing) startGeneration() (*generation, error) {
	g := &generation{format: search.Format, stage: filling, base: x.seq, next: 1}
	var published int64
	err := x.row("SELECT seq FROM published WHERE site = ? ORDER BY number DESC LIMIT 1", []any{x.id}, &published)
	if err != nil && !absent(err) {
		return nil, err
	}
	if err == nil && published >= max(x.floor, x.state.horizon) {
		g.base = published
	}
	g.seq = g.base
	err = x.row("INSERT INTO generation (site, format, stage, base, seq) VALUES (?, ?, ?, ?, ?) RETURNING id",
		[]any{x.id, g.format, g.stage, g.base, g.seq}, &g.id)
	if err != nil {
		return nil, err
	}
	err = x.exec("CREATE VIRTUAL TABLE " + g.words() +
		" USING fts5(title, headings, body, content = '', contentless_delete = 1, tokenize = 'ascii')")
	if err != nil {
		return nil, err
	}
	return g, x.tune(g)
}

// retire takes a generation out of use; Compact drops what it has.
func (x *indexing) retire(g *generation) error {
	g.stage = leaving
	return x.save(g)
}

// indexRow is an entry as an index reads it.
type indexRow struct {
	seq  int64
	kind int
	body int64
	url  string
	meta []byte
}

// rowsOf reads entries until there is enough for one transaction.
func (x *indexing) rowsOf(query string, args ...any) (rows []indexRow, err error) {
	size := 0
	err = x.rows(query, args, func(scan scanner) error {
		var r indexRow
		if err := scan(&r.seq, &r.kind, &r.body, &r.url, &r.meta); err != nil {
			return err
		}
		r.seq &= forever
		rows = append(rows, r)
		if size += len(r.meta); size > indexBytes {
			return errEnough
		}
		return nil
	})
	return rows, err
}

// fill takes the next pages in that a view at the generation's base shows.
func (x *indexing) fill(ctx context.Context, g *generation) error {
	rows, err := x.rowsOf(`SELECT id, kind, body, url, meta FROM entry INDEXED BY entry_url
		WHERE site = ? AND url > ? AND until > ? AND id <= ? AND kind < 3 ORDER BY url LIMIT ?`,
		x.id, g.after, g.base, x.entryID(g.base), indexPages)
	if err != nil {
		return err
	}
	if x.ahead != nil {
		x.ahead.only(rows)
	}
	if len(rows) == 0 {
		g.stage, g.after = counting, ""
		return x.save(g)
	}
	if x.ahead == nil {
		x.ahead = newAhead()
	}
	next, n := 0, g.next // what is read next, and what is written
	for i, r := range rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		for ; next < len(rows) && (next <= i || x.ahead.room()); next++ {
			if err := x.readAhead(rows[next]); err != nil {
				return fmt.Errorf("%s: %w", rows[next].url, err)
			}
		}
		if r.meta != nil { // else it has been replaced, and no view shows it any more
			page := x.ahead.get(r.seq, x.entries)
			if err := x.take(g, r.seq, page); err != nil {
				return fmt.Errorf("%s: %w", r.url, err)
			}
			page.drop()
		}
		g.after = r.url
		g.done++
		if g.next-n > indexPassages {
			break
		}
	}
	if err := x.raise(g, n); err != nil {
		return err
	}
	if err := x.thin(g); err != nil {
		return err
	}
	return x.save(g)
}

// readAhead reads a page that is soon taken in, unless the transaction before
// has done it.
func (x *indexing) readAhead(r indexRow) error {
	if r.meta == nil || x.ahead.waiting[r.seq] != nil {
		return nil
	}
	s, err := x.read(r)
	if err == nil {
		x.ahead.put(r.seq, s)
	}
	return err
}

// count counts in how many passages each term stands, once they are all there.
func (x *indexing) count(g *generation) error {
	if g.after == "" {
		if more, err := x.mergeWords(g, -fillPages); err != nil || more {
			return err
		}
		for _, o := range []struct {
			name  string
			value int
		}{{"automerge", 0}, {"crisismerge", crisisSegments}} {
			if err := x.setWords(g, o.name, o.value); err != nil {
				return err
			}
		}
	}
	vocabulary := g.words() + "_terms"
	if err := x.exec("CREATE VIRTUAL TABLE IF NOT EXISTS temp." + vocabulary + " USING fts5vocab(main, " + g.words() + ", row)"); err != nil {
		return err
	}
	n, err := x.work.count("INSERT INTO term (generation, term, n) SELECT ?, term, doc FROM temp."+vocabulary+
		" WHERE term > ? ORDER BY term LIMIT ?", g.id, g.after, indexTerms)
	if err != nil {
		return err
	}
	if n == indexTerms {
		if err := x.row("SELECT max(term) FROM term WHERE generation = ?", []any{g.id}, &g.after); err != nil {
			return err
		}
		return x.save(g)
	}
	if err := x.exec("DROP TABLE temp." + vocabulary); err != nil {
		return err
	}
	g.stage, g.after = following, ""
	return x.save(g)
}

// follow takes the next entries of the log in.
func (x *indexing) follow(ctx context.Context, g *generation, to int64) error {
	rows, err := x.rowsOf("SELECT id, kind, body, url, meta FROM entry WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
		x.entryID(g.seq), x.entryID(to), indexPages)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		g.seq = to
		return x.save(g)
	}
	for n := g.next; len(rows) > 0; rows = rows[1:] {
		if err := ctx.Err(); err != nil {
			return err
		}
		r := rows[0]
		switch {
		case r.kind == deleted:
			err = x.takeOut(g, r)
		case r.kind < deleted && r.meta != nil:
			var s *sheaf
			if s, err = x.read(r); err == nil {
				s.cut()
				err = x.take(g, r.seq, s)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.url, err)
		}
		g.seq = r.seq
		if g.next-n > indexPassages {
			break
		}
	}
	if err := x.recount(g); err != nil {
		return err
	}
	return x.save(g)
}

// noIndex says that a view cannot be searched.
func noIndex(why string) error { return fmt.Errorf("%w: %s", millrace.ErrUnavailable, why) }
