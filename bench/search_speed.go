package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/chunk"
	"github.com/millrace/millrace/internal/index"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// searchQuestions is the number of headings of the manuals to search for.
const searchQuestions = 1000

// peerAsks is the step between the peer's queries. The peer needs fewer queries, because it is
// much slower and its caches are warm from the insertions.
const peerAsks = 5

// searchSpeed adds the rows for the speed of searching and indexing a large site. Times are
// processor time on one core.
func (b *bench) searchSpeed(ctx context.Context) error {
	file := filepath.Join(b.dir, "manuals.db")
	pages, err := manuals(ctx, file)
	if err != nil {
		return err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	file, peer, err := b.searchManuals(ctx, file, pages)
	if err != nil {
		return err
	}
	defer func() { _ = peer.db.Close() }()
	st, err := stores.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	site, err := st.Site(ctx, searchBase, searchBase)
	if err != nil {
		return err
	}
	x, err := index.Open(ctx, index.File(file, "manuals"), nil)
	if err != nil {
		return err
	}
	defer func() { _ = x.Close() }()
	before := processorTime()
	if err := x.Fit(ctx, nil); err != nil {
		return err
	}
	b.add(row{what: "fitting vectors of these passages", ours: fmt.Sprintf("%.1f s", processorTime()-before)})
	if err := b.searchOnePage(ctx, site, x); err != nil {
		return err
	}
	return b.searchQueries(ctx, site, x, peer, fmt.Sprintf("%d passages of %d pages", peer.passages, pages))
}

// searchManuals measures the indexing of the manuals in a file, which it does not
// change.
func (b *bench) searchManuals(ctx context.Context, file string, pages int) (string, *plainTable, error) {
	st, err := stores.Open(ctx, file, nil)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = st.Close() }()
	site, err := st.Site(ctx, searchBase, searchBase)
	if err != nil {
		return "", nil, err
	}
	head, err := site.Head(ctx)
	if err != nil {
		return "", nil, err
	}
	return b.searchIndexing(ctx, file, head, pages)
}

// searchOnePage measures the indexing and publication of one edited page.
func (b *bench) searchOnePage(ctx context.Context, site store.Site, x *index.Index) error {
	head, err := site.Head(ctx)
	if err != nil {
		return err
	}
	pub, err := site.Publication(ctx, store.Config{Base: searchBase})
	if err == nil {
		_, err = pub.Refresh(ctx, store.Lease{}, 0, nil)
	}
	if err != nil {
		return err
	}
	var took []float64
	largest := 0 // size of the slowest page in bytes
	for p, err := range head.Scan(ctx, millrace.Scan{Limit: 2000, WithBlocks: true}) {
		if err != nil {
			return err
		}
		if len(p.Blocks) < 20 || len(took) == 50 {
			continue
		}
		p = p.Clone()
		p.Blocks[len(p.Blocks)/2].Text += " It has been edited."
		c := millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p}
		if _, err := site.Apply(ctx, "edit", []millrace.Change{c}); err != nil {
			return err
		}
		v, err := site.Head(ctx)
		if err != nil {
			return err
		}
		before := processorTime()
		if _, err := pub.Refresh(ctx, store.Lease{}, 0, nil); err != nil {
			return err
		}
		shown, err := pub.Head(ctx)
		if err != nil {
			return err
		}
		_, old, _ := pub.Published(ctx)
		if _, err := pub.Publish(ctx, store.Lease{}, old.Number, shown.Site().Seq, nil); err != nil {
			return err
		}
		if err := x.Update(ctx, v, nil); err != nil {
			return err
		}
		ms := 1000 * (processorTime() - before)
		if len(took) == 0 || ms > slices.Max(took) {
			largest = len(p.Canonical())
		}
		took = append(took, ms)
	}
	if len(took) == 0 {
		return errors.New("no page to edit")
	}
	slices.Sort(took)
	m, worst := took[len(took)/2], took[len(took)-1]
	b.add(row{
		what: fmt.Sprintf("one of these pages edited, indexed and published, %d times", len(took)), limit: "50 ms",
		ours: fmt.Sprintf("p50 %.1f ms, p90 %.1f ms, at most %.1f ms (a page of %d kB)", m, took[len(took)*9/10], worst, largest/1000), ratio: fmt.Sprintf("%.2f", m/50), reach: "below 1", good: worst < 50,
	})
	return nil
}

// searchQueries searches for headings, in alternating turns of the peer and millrace.
func (b *bench) searchQueries(ctx context.Context, site store.Site, x *index.Index, peer *plainTable, what string) error {
	rng := rand.New(rand.NewPCG(1, 1000))
	var questions []string
	for range searchQuestions {
		questions = append(questions, peer.headings[rng.IntN(len(peer.headings))])
	}
	v, err := site.Head(ctx)
	if err != nil {
		return err
	}
	var ours, theirs []float64
	for round := range 2 { // the first round warms up the caches
		ours, theirs = nil, nil
		for i, q := range questions {
			for _, side := range []struct {
				ask  func() error
				into *[]float64
			}{
				{func() error { return peer.ask(ctx, q) }, &theirs},
				{func() error { _, err := x.Search(ctx, v, millrace.Query{Text: q}); return err }, &ours},
			} {
				if side.into == &theirs && (round == 0 || i%peerAsks != 0) {
					continue
				}
				before := processorTime()
				if err := side.ask(); err != nil {
					return fmt.Errorf("round %d, %q: %w", round, q, err)
				}
				*side.into = append(*side.into, 1000*(processorTime()-before))
			}
		}
	}
	var some []string
	for i := 0; i < len(questions); i += peerAsks {
		some = append(some, questions[i])
	}
	inC, err := peer.askInC(ctx, some)
	if err != nil {
		return err
	}
	for _, list := range [][]float64{ours, theirs, inC} {
		slices.Sort(list)
	}
	at := func(v []float64, part float64) float64 { return v[int(part*float64(len(v)-1))] }
	for _, r := range []struct {
		name  string
		part  float64
		most  float64
		ratio float64
	}{{"p50", 0.5, 8, 0.5}, {"p90", 0.9, 0, 0}, {"p99", 0.99, 40, 0}} {
		o, t := at(ours, r.part), at(theirs, r.part)
		line := row{
			what:  fmt.Sprintf("%s of %d questions about %s", r.name, len(questions), what),
			limit: fmt.Sprintf("%.1f ms (FTS5's plain OR, every %dth of them)", t, peerAsks), ours: fmt.Sprintf("%.1f ms", o), ratio: fmt.Sprintf("%.2f", o/t),
		}
		switch {
		case r.ratio > 0:
			line.reach, line.good = fmt.Sprintf("at most %.0f ms and %.1f", r.most, r.ratio), o <= r.most && o/t <= r.ratio
		case r.most > 0:
			line.reach, line.good = fmt.Sprintf("below %.0f ms", r.most), o < r.most
		}
		b.add(line)
		c := at(inC, r.part)
		b.add(row{what: line.what, limit: fmt.Sprintf("%.1f ms (the same in C, by sqlite3)", c), ours: line.ours, ratio: fmt.Sprintf("%.2f", o/c)})
	}
	return nil
}

// plainTable is an FTS5 table that contains the same passages as the index.
type plainTable struct {
	db       *sql.DB
	file     string
	cpu      float64 // processor time of the insertions in seconds
	passed   float64
	passages int
	headings []string
}

func newPlain(ctx context.Context, file string) (*plainTable, error) {
	db, err := sql.Open("sqlite", file+"?_pragma=journal_mode(WAL)&_pragma=cache_size(-8000)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, "CREATE VIRTUAL TABLE t USING fts5(title, headings, body)")
	return &plainTable{db: db, file: file}, err
}

// inC copies p to another table with Debian's sqlite3, which is written in C, and returns the
// processor time in seconds.
func (p *plainTable) inC(ctx context.Context) (float64, error) {
	c := exec.CommandContext(ctx, "sqlite3", p.file+"-c", "PRAGMA journal_mode=WAL; PRAGMA cache_size=-8000; CREATE VIRTUAL TABLE t USING fts5(title, headings, body); "+
		"ATTACH '"+p.file+"' AS plain; INSERT INTO t SELECT title, headings, body FROM plain.t;")
	c.Stderr = os.Stderr
	w, err := ended(c)
	if err != nil {
		return 0, fmt.Errorf("sqlite3 (Debian's sqlite3): %w", err)
	}
	return w.spent.Seconds(), nil
}

var timed = regexp.MustCompile(`user ([0-9.]+) sys ([0-9.]+)`)

// askInC runs each query on the table that inC has written, and returns the processor time of each
// query in milliseconds.
func (p *plainTable) askInC(ctx context.Context, questions []string) (took []float64, err error) {
	var script strings.Builder
	script.WriteString("PRAGMA cache_size=-8000;\n.timer on\n")
	for _, q := range questions {
		fmt.Fprintf(&script, "SELECT rowid, rank FROM t WHERE t MATCH '%s' ORDER BY rank LIMIT 10;\n", strings.ReplaceAll(anyWord(q), "'", "''"))
	}
	c := exec.CommandContext(ctx, "sqlite3", "-bail", p.file+"-c")
	c.Stdin, c.Stderr = strings.NewReader(script.String()), os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("sqlite3: %w", err)
	}
	for _, m := range timed.FindAllStringSubmatch(string(out), -1) {
		user, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return nil, err
		}
		system, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, err
		}
		took = append(took, 1000*(user+system))
	}
	if len(took) != len(questions) {
		return nil, fmt.Errorf("sqlite3 ran %d of %d queries", len(took), len(questions))
	}
	return took, nil
}

// fill inserts the passages of a view, a thousand in each transaction.
func (p *plainTable) fill(ctx context.Context, v millrace.View) error {
	var batch [][3]string
	flush := func() error {
		before, start := processorTime(), time.Now()
		tx, err := p.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		st, err := tx.PrepareContext(ctx, "INSERT INTO t VALUES (?, ?, ?)")
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
		defer st.Close()
		for _, r := range batch {
			if _, err := st.ExecContext(ctx, r[0], r[1], r[2]); err != nil {
				return errors.Join(err, tx.Rollback())
			}
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		p.cpu += processorTime() - before
		p.passed += time.Since(start).Seconds()
		batch = batch[:0]
		return nil
	}
	seen := make(map[string]bool)
	for page, err := range v.Scan(ctx, millrace.Scan{WithBlocks: true}) {
		if err != nil {
			return err
		}
		for _, c := range chunk.Passages(page) {
			p.passages++
			batch = append(batch, [3]string{page.Title, strings.Join(c.Headings, "\n"), c.Text})
			if len(c.Headings) > 0 {
				if h := c.Headings[len(c.Headings)-1]; !seen[h] && anyWord(h) != "" {
					seen[h] = true
					p.headings = append(p.headings, h)
				}
			}
		}
		if len(batch) >= 1000 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// ask finds the ten best passages with any of the words.
func (p *plainTable) ask(ctx context.Context, question string) error {
	rows, err := p.db.QueryContext(ctx, "SELECT rowid, rank FROM t WHERE t MATCH ? ORDER BY rank LIMIT 10", anyWord(question))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var rank float64
		if err := rows.Scan(&id, &rank); err != nil {
			return err
		}
	}
	return rows.Err()
}

// searching measures the quality and speed of the search.
func searching(ctx context.Context, data string) error {
	dir, err := os.MkdirTemp("", "millrace-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &bench{dir: dir}
	err = b.searchQuality(ctx, data)
	if err == nil {
		err = b.searchOwn(ctx)
	}
	if err == nil {
		err = b.searchSpeed(ctx)
	}
	b.print()
	return err
}
