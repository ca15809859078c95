package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace"
)

// Apply implements [millrace.Sink].
func (s *Site) Apply(ctx context.Context, from string, batch []millrace.Change) (millrace.Tally, error) {
	var tally millrace.Tally
	what := fmt.Sprintf("apply %d changes to site %s", len(batch), s.name)
	if from == "" {
		return tally, fmt.Errorf("%s: %w: they come from nowhere", what, millrace.ErrInvalid)
	}
	if len(batch) == 0 {
		return tally, nil
	}
	err := s.change(ctx, func(w *work) error {
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
	packed  []byte          // what the last of them was made of, compressed
}

func (a *application) open() error {
	err := a.row("SELECT id, cursor FROM source WHERE site = ? AND name = ?", []any{a.id, a.from}, &a.source, &a.cursor)
	if absent(err) {
		return nil
	}
	return err
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
		row.identity = a.identity(c.URL)
	}
	if c.Page == nil {
		a.tally.Unchanged++
		if !known {
			// Without the page itself there is nothing to remember it by.
			var one int
			err := a.row("SELECT 1 FROM raw WHERE site = ? AND url = ?", []any{a.id, row.identity}, &one)
			if absent(err) {
				return nil
			} else if err != nil {
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
		row.identity = a.identity(c.Page.URL)
	} else {
		row.identity = a.identity(c.URL)
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

// held is what the sources have said of a page so far.
type held struct {
	hint   int64
	body   int64
	meta   []byte
	blocks []byte
	weight millrace.Weight
}

func (w *work) held(url string) (h held, ok bool, err error) {
	err = w.row(`SELECT hint, body, meta, (SELECT data FROM body WHERE id = raw.body), html_bytes, html_received FROM raw
		WHERE site = ? AND url = ?`, []any{w.id, url}, &h.hint, &h.body, &h.meta, &h.blocks, &h.weight.Bytes, &h.weight.Received)
	if absent(err) {
		return h, false, nil
	}
	return h, err == nil, err
}

// page decodes what is held.
func (h *held) page() (*millrace.Page, error) {
	p, err := decode(h.meta, h.blocks)
	if err == nil && p.Modified.IsZero() {
		p.Modified = instant(h.hint)
	}
	return p, err
}

// take merges a page into what is held of it, and shows the outcome.
func (a *application) take(c *millrace.Change, url string) error {
	a.tally.Unchanged++ // until it shows otherwise
	if c.Page.Known == 0 {
		return nil // it only says which page the name belongs to
	}
	h, ok, err := a.held(url)
	if err != nil {
		return err
	}
	in := *c.Page
	in.URL = url
	var before *millrace.Page
	if ok {
		meta := encodeMeta(&in)
		blocks, err := encodeBlocks(in.Blocks)
		if err != nil {
			return err
		}
		if string(meta) == string(h.meta) && string(blocks) == string(h.blocks) {
			return a.weigh(url, in.Weight, h.weight) // told without decoding what is held
		}
		if before, err = h.page(); err != nil {
			return err
		}
		if c.Newer && !before.Modified.IsZero() && !in.Modified.After(before.Modified) {
			return nil
		}
	} else if in.Known&(millrace.FieldTitle|millrace.FieldContent) == 0 {
		return nil // too little to make a page of
	}
	p, changed := millrace.Merge(before, &in)
	if !changed {
		return a.weigh(url, in.Weight, h.weight)
	}
	p.Weight = in.Weight.Or(h.weight)
	body, blocks, err := a.keep(p, h)
	if err != nil {
		return err
	}
	moved := before != nil && !p.Modified.Equal(before.Modified)
	kind, err := a.show(p, blocks, body, moved)
	if err != nil {
		return err
	}
	if h.body != body {
		err = a.dropBody(url, h.body)
	}
	a.reckon(kind)
	return err
}

// keep writes the raw layer's row of a page.
func (a *application) keep(p *millrace.Page, h held) (body int64, blocks []byte, err error) {
	if blocks, err = encodeBlocks(p.Blocks); err != nil {
		return 0, nil, err
	}
	switch {
	case len(blocks) == 0:
	case string(blocks) == string(h.blocks):
		body = h.body
	default:
		if err := a.row("INSERT INTO body (data) VALUES (?) RETURNING id", []any{blocks}, &body); err != nil {
			return 0, nil, err
		}
	}
	var hint time.Time
	if !p.Known.Has(millrace.FieldModified) {
		hint = p.Modified
	}
	err = a.exec(`INSERT INTO raw (site, url, hint, body, meta, html_bytes, html_received) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET hint = excluded.hint, body = excluded.body, meta = excluded.meta,
		html_bytes = excluded.html_bytes, html_received = excluded.html_received`,
		a.id, p.URL, unix(hint), body, encodeMeta(p), p.Weight.Bytes, p.Weight.Received)
	if a.state.fingerprint != a.Site.fingerprint {
		a.unsettle()
	}
	return body, blocks, err
}

// reckon turns the change that take took for nothing into what it was.
func (a *application) reckon(kind int) {
	switch kind {
	case added:
		a.tally.Added++
	case updated:
		a.tally.Updated++
	case deleted:
		a.tally.Deleted++
	default:
		return
	}
	a.tally.Unchanged--
}

// forget takes a name of a page away.
func (a *application) forget(name string) error {
	a.tally.Unchanged++ // until settle finds that it was the last one
	row, known, err := a.recall(name)
	if err != nil {
		return err
	}
	if !known {
		a.orphan(a.identity(name), 1)
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

// remove takes a page out of both layers and out of every source's memory.
// It reports whether the page was visible.
func (a *application) remove(url string) (bool, error) {
	h, ok, err := a.held(url)
	if err != nil || !ok {
		return false, err
	}
	old, err := a.current(url)
	if err != nil {
		return false, err
	}
	kind, err := a.hide(url, old)
	if err != nil {
		return false, err
	}
	if err := a.exec("DELETE FROM raw WHERE site = ? AND url = ?", a.id, url); err != nil {
		return false, err
	}
	if err := a.dropBody(url, h.body); err != nil {
		return false, err
	}
	if a.state.fingerprint != a.Site.fingerprint {
		a.unsettle()
	}
	return kind == deleted, a.forgetPage(url)
}
