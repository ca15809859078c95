package sqlstore

import (
	"bytes"
	"context"
	"fmt"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/zdict"
	"github.com/millrace/millrace/store/internal/record"
)

// Apply implements [millrace.Sink].
func (s *Site) Apply(ctx context.Context, from string, batch []millrace.Change) (millrace.Counts, error) {
	var counts millrace.Counts
	what := fmt.Sprintf("apply %d changes to %s", len(batch), s.what)
	if from == "" {
		return counts, fmt.Errorf("%s: %w: the name of the source is empty", what, millrace.ErrInvalid)
	}
	if len(batch) == 0 {
		return counts, nil
	}
	err := s.change(ctx, s.lease, func(w *work) (err error) {
		a := &application{work: w, from: from, most: len(batch), refs: make(map[string]*ref), pages: make(map[string]*row)}
		err = a.Row("SELECT id, cursor FROM source WHERE site = ? AND name = ?", []any{a.id, a.from}, &a.source, &a.cursor)
		if err == nil || absent(err) {
			a.bodies, err = a.store.bodies.Begin(a.Row)
		}
		if err == nil {
			counts, err = record.Apply(ctx, a, batch, s.names, w.now)
		}
		if err == nil {
			err = a.flush()
		}
		if err == nil && s.ending != nil && record.HasCheckpoint(batch) {
			err = s.ending(w.Tx, w.now)
		}
		return err
	})
	if err != nil {
		return millrace.Counts{}, wrap(what, err)
	}
	return counts, nil
}

// application is one call of Apply. It implements [record.Transaction]. It reads the rows that a
// batch needs in few statements, and writes the changes at the end.
type application struct {
	*work
	from   string
	source int64 // ID of the source; zero if the source is new
	cursor string
	most   int // number of changes in the batch
	bodies *zdict.Encoder

	refs  map[string]*ref // loaded refs, by name
	pages map[string]*row // newest entries with their blocks, by path
	dirty []string        // names whose refs must be written
	packed
}

// packed are the bodies and originals to write.
type packed struct {
	bodyRows, originalRows []any   // id and data of each row to write
	bodyIDs, originalIDs   []int64 // IDs that are reserved and not used yet
}

// take returns an unused ID for a new row of a table.
func (a *application) take(table string, ids *[]int64) (id int64, err error) {
	if len(*ids) == 0 {
		if *ids, err = a.IDs(table, a.most); err != nil {
			return 0, err
		}
	}
	id, *ids = (*ids)[0], (*ids)[1:]
	return id, nil
}

// flush writes the changes in an order that keeps references valid.
func (a *application) flush() error {
	if err := a.flushBodies(); err != nil {
		return err
	}
	if err := a.flushOriginals(); err != nil {
		return err
	}
	if len(a.entries) > 0 {
		if err := a.flushEntries(); err != nil {
			return err
		}
		if err := a.mark(); err != nil {
			return err
		}
	}
	return a.flushRefs()
}

// SetCursor implements [record.Transaction].
func (a *application) SetCursor(c millrace.Cursor) error {
	if string(c) == a.cursor {
		return nil
	}
	if err := a.register(); err != nil {
		return err
	}
	a.cursor = string(c)
	return a.Exec("UPDATE source SET cursor = ? WHERE id = ?", a.cursor, a.source)
}

// Update implements [record.Transaction].
func (a *application) Update(url string, f func(old record.Entry) (record.Entry, record.Outcome, error)) error {
	if a.pages[url] == nil {
		if err := a.loadPages([]string{url}); err != nil {
			return err
		}
	}
	old := a.pages[url]
	e := &row{body: old.body, url: url}
	var err error
	var out record.Outcome
	e.Entry, out, err = f(old.Entry)
	switch {
	case err != nil || out == record.Same:
		return err
	case out == record.Amended:
		old.Entry = e.Entry
		if old.pending {
			return nil
		}
		return a.Exec("UPDATE entry SET meta = ?, hint = ?, html_bytes = ?, html_received = ? WHERE id = ?",
			e.Meta, e.Hint, e.HTMLSize.Bytes, e.HTMLSize.Received, a.entryID(old.seq))
	case !old.Present || !bytes.Equal(e.Blocks, old.Blocks):
		if e.body, err = a.addBody(e.Blocks); err != nil {
			return err
		}
	}
	a.pages[url] = e
	return a.enter(old, e)
}

// loadPages reads the newest entries of pages with their blocks.
func (a *application) loadPages(urls []string) error {
	pages, err := a.currents(a, urls)
	if err != nil {
		return err
	}
	var ids []int64
	of := make(map[int64][]*row)
	for url, r := range pages {
		if a.pages[url] = r; r.body != 0 && r.Present {
			of[r.body] = append(of[r.body], r)
			ids = append(ids, r.body)
		}
	}
	frames := make(map[int64][]byte)
	err = a.Rows("SELECT id, data FROM body WHERE id = ANY(?)", []any{ids}, func(scan Scanner) error {
		var id int64
		var frame []byte
		err := scan(&id, &frame)
		frames[id] = frame
		return err
	})
	for id, rows := range of {
		for _, r := range rows {
			if err == nil {
				r.Blocks, err = a.store.decode(a, frames[id])
			}
		}
	}
	return err
}

// Load implements [record.Transaction].
func (a *application) Load(names, paths []string) error {
	if err := a.loadRefs(names); err != nil {
		return err
	}
	return a.loadPages(paths)
}
