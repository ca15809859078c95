package sqlite

import (
	"bytes"
	"context"
	"fmt"

	"github.com/millrace/millrace"
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
		before := w.seq
		a := &application{work: w, from: from}
		err = a.row("SELECT id, cursor FROM source WHERE site = ? AND name = ?", []any{a.id, a.from}, &a.source, &a.cursor)
		if err == nil || absent(err) {
			err = a.store.bodies.Begin(a.row)
		}
		if err == nil {
			counts, err = record.Apply(ctx, a, batch, s.names, w.now)
		}
		if err == nil && w.seq > before {
			err = w.mark()
		}
		return err
	})
	if err != nil {
		return millrace.Counts{}, explain(what, err)
	}
	return counts, nil
}

// application is one call of Apply. It implements [record.Transaction].
type application struct {
	*work
	from   string
	source int64 // 0 = new
	cursor string
	packed []byte // last compressed frame
}

// register assigns the source its number on the first write.
func (a *application) register() error {
	if a.source != 0 {
		return nil
	}
	return a.row("INSERT INTO source (site, name) VALUES (?, ?) RETURNING id", []any{a.id, a.from}, &a.source)
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
	return a.exec("UPDATE source SET cursor = ? WHERE id = ?", a.cursor, a.source)
}

// Update implements [record.Transaction].
func (a *application) Update(url string, f func(old record.Entry) (record.Entry, record.Outcome, error)) error {
	old, err := a.current(a, url)
	if err == nil && old.body != 0 && old.Present {
		old.Blocks, err = a.store.body(a, old.body)
	}
	if err != nil {
		return err
	}
	e := row{body: old.body}
	var out record.Outcome
	e.Entry, out, err = f(old.Entry)
	switch {
	case err != nil || out == record.Same:
		return err
	case out == record.Amended:
		return a.exec("UPDATE entry SET meta = ?, hint = ?, html_bytes = ?, html_received = ? WHERE id = ?",
			e.Meta, e.Hint, e.HTMLSize.Bytes, e.HTMLSize.Received, a.entryID(old.seq))
	case !old.Present || !bytes.Equal(e.Blocks, old.Blocks):
		if e.body, err = a.addBody(e.Blocks); err != nil {
			return err
		}
	}
	return a.enter(url, old, &e)
}
