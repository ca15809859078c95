package sqlite

import (
	"bytes"
	"context"
	"fmt"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store/internal/record"
)

// Apply implements [millrace.Sink].
func (s *Site) Apply(ctx context.Context, from string, batch []millrace.Change) (millrace.Tally, error) {
	var tally millrace.Tally
	what := fmt.Sprintf("apply %d changes to %s", len(batch), s.what)
	if from == "" {
		return tally, fmt.Errorf("%s: %w: the name of the source is empty", what, millrace.ErrInvalid)
	}
	if len(batch) == 0 {
		return tally, nil
	}
	err := s.change(ctx, s.lease, func(w *work) error {
		before := w.seq
		a := &application{work: w, from: from, orphans: make(map[string]int), brought: make(map[string]bool)}
		if err := a.open(); err != nil {
			return err
		}
		for i := range batch {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := a.apply(&batch[i]); err != nil {
				return fmt.Errorf("%s: %w", batch[i].URL, err)
			}
		}
		err := a.settle()
		if err == nil && w.seq > before {
			err = w.mark()
		}
		tally = a.tally
		return err
	})
	if err != nil {
		return millrace.Tally{}, explain(what, err)
	}
	return tally, nil
}

// application is one batch on its way in.
type application struct {
	*work
	from   string
	source int64 // 0 = the site has never heard of it
	cursor string
	tally  millrace.Tally
	// orphans are pages that a name was taken from, with the number of
	// Delete changes that did; whether any name is left shows at the end.
	orphans map[string]int
	order   []string
	brought map[string]bool // names whose page came with this batch
	packed  []byte          // the last frame
}

func (a *application) open() error {
	err := a.row("SELECT id, cursor FROM source WHERE site = ? AND name = ?", []any{a.id, a.from}, &a.source, &a.cursor)
	if err != nil && !absent(err) {
		return err
	}
	return a.store.coder.Begin(a.row)
}

// register gives the source its number, once there is something to remember.
func (a *application) register() error {
	if a.source != 0 {
		return nil
	}
	return a.row("INSERT INTO source (site, name) VALUES (?, ?) RETURNING id", []any{a.id, a.from}, &a.source)
}

func (a *application) apply(c *millrace.Change) error {
	if c.Kind == millrace.Mark {
		return a.mark(c.Mark)
	}
	if c.URL == "" {
		return fmt.Errorf("%w: a change without a URL", millrace.ErrInvalid)
	}
	switch c.Kind {
	case millrace.Put:
		return a.put(c)
	case millrace.Delete:
		return a.forget(c.URL)
	}
	return fmt.Errorf("%w: a change of kind %d", millrace.ErrInvalid, c.Kind)
}

func (a *application) mark(m *millrace.Milestone) error {
	if m == nil {
		return fmt.Errorf("%w: a mark without a milestone", millrace.ErrInvalid)
	}
	if string(m.Cursor) == a.cursor {
		return nil
	}
	if err := a.register(); err != nil {
		return err
	}
	a.cursor = string(m.Cursor)
	return a.exec("UPDATE source SET cursor = ? WHERE id = ?", a.cursor, a.source)
}

func (a *application) put(c *millrace.Change) error {
	row, known, err := a.recall(c.URL)
	if err != nil {
		return err
	}
	old := row
	row.version, row.location, row.section = c.Version, c.Location, c.Section
	if !known {
		row.identity = a.names.Identity(c.URL)
	}
	if c.Page == nil {
		a.tally.Unchanged++
		if !known {
			// Without the page itself there is nothing to remember it by.
			if ok, err := a.isPresent(row.identity); err != nil || !ok {
				return err
			}
		}
		if row.version == "" { // forgotten, and with it what it was about
			if row.original, err = a.keepOriginal(old.original, nil); err != nil {
				return err
			}
		}
		return a.remember(c.URL, old, row, known)
	}
	if c.Page.Version != "" {
		row.version = c.Page.Version
	}
	if c.Page.URL != "" {
		row.identity = a.names.Identity(c.Page.URL)
	} else {
		row.identity = a.names.Identity(c.URL)
	}
	row.mute = c.Page.Known == 0
	a.brought[c.URL] = true
	if err := a.take(c, row.identity); err != nil {
		return err
	}
	if row.original, err = a.keepOriginal(old.original, c.Page.Original); err != nil {
		return err
	}
	if known && (old.identity != row.identity || row.mute && !old.mute) {
		a.orphan(old.identity, 0)
	}
	return a.remember(c.URL, old, row, known)
}

// take merges a page into what the site has of it.
func (a *application) take(c *millrace.Change, url string) error {
	a.tally.Unchanged++ // until it shows otherwise
	if c.Page.Known == 0 {
		return nil // an alias
	}
	old, err := a.current(a, url)
	if err != nil {
		return err
	}
	if old.body != 0 && old.Present {
		if old.Blocks, err = a.store.body(a, old.body); err != nil {
			return err
		}
	}
	in := *c.Page
	in.URL = url
	e := row{body: old.body, weight: in.Weight.Or(old.weight)}
	var out record.Outcome
	e.Entry, out, err = record.Take(old.Entry, &in, c.Newer, a.names, a.now)
	if err != nil {
		return err
	}
	switch out {
	case record.Same:
		return a.weigh(&old, in.Weight)
	case record.Amended:
		return a.exec("UPDATE entry SET meta = ?, hint = ?, html_bytes = ?, html_received = ? WHERE id = ?",
			e.Meta, e.Hint, e.weight.Bytes, e.weight.Received, a.entryID(old.seq))
	}
	if !old.Present || !bytes.Equal(e.Blocks, old.Blocks) {
		if e.body, err = a.addBody(e.Blocks); err != nil {
			return err
		}
	}
	if err := a.enter(url, old, &e); err != nil {
		return err
	}
	a.tally.Unchanged--
	if e.kind == added {
		a.tally.Added++
	} else {
		a.tally.Updated++
	}
	return nil
}

// weigh stores what a source knows of the weight of a page that stays.
func (a *application) weigh(old *row, in millrace.Weight) error {
	w := in.Or(old.weight)
	if !old.Present || w == old.weight {
		return nil
	}
	return a.exec("UPDATE entry SET html_bytes = ?, html_received = ? WHERE id = ?", w.Bytes, w.Received, a.entryID(old.seq))
}

// forget takes a name of a page away.
func (a *application) forget(name string) error {
	a.tally.Unchanged++ // until settle finds that it was the last one
	row, known, err := a.recall(name)
	if err != nil {
		return err
	}
	if !known {
		a.orphan(a.names.Identity(name), 1)
		return nil
	}
	if !row.mute { // else no page is there by this name, and what is there others have given
		a.orphan(row.identity, 1)
	}
	return a.exec("DELETE FROM memory WHERE source = ? AND url = ?", a.source, name)
}

func (a *application) orphan(url string, deletes int) {
	if _, ok := a.orphans[url]; !ok {
		a.order = append(a.order, url)
	}
	a.orphans[url] += deletes
}

// settle removes the pages that the source has no name for any more.
func (a *application) settle() error {
	for _, url := range a.order {
		names, err := a.claims(url)
		if err != nil {
			return err
		}
		if len(names) > 0 {
			if err := a.askAgain(names); err != nil {
				return err
			}
			continue
		}
		gone, err := a.remove(url)
		if err != nil {
			return fmt.Errorf("%s: %w", url, err)
		}
		if gone {
			a.tally.Deleted++
			if a.orphans[url] > 0 {
				a.tally.Unchanged--
			}
		}
	}
	return nil
}

// remove deletes a page, and takes it out of every source's memory. It reports
// whether the site had the page.
func (a *application) remove(url string) (bool, error) {
	old, err := a.current(a, url)
	if err != nil || !old.Present {
		return false, err
	}
	if err := a.enter(url, old, &row{Entry: record.Remove(old.Entry, a.now)}); err != nil {
		return false, err
	}
	return true, a.forgetPage(url)
}
