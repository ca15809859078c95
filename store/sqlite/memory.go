package sqlite

import (
	"context"
	"iter"
	"slices"

	"github.com/millrace/millrace"
)

// recollection is what one source is remembered by of one of its names.
type recollection struct {
	identity                   string // of the page
	mute                       bool   // the page spoke for nothing
	version, location, section string
	original                   int64 // 0 = none
}

func (a *application) recall(name string) (r recollection, ok bool, err error) {
	if a.source == 0 {
		return r, false, nil
	}
	err = a.row("SELECT coalesce(identity, url), mute, version, location, section, original FROM memory WHERE source = ? AND url = ?",
		[]any{a.source, name}, &r.identity, &r.mute, &r.version, &r.location, &r.section, &r.original)
	if absent(err) {
		return r, false, nil
	}
	return r, err == nil, err
}

func (a *application) remember(name string, old, r recollection, known bool) error {
	if known && old == r {
		return nil
	}
	if err := a.register(); err != nil {
		return err
	}
	var identity any
	if r.identity != name {
		identity = r.identity
	}
	return a.exec(`INSERT INTO memory (source, url, identity, mute, version, location, section, original) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET identity = excluded.identity, mute = excluded.mute, version = excluded.version,
		location = excluded.location, section = excluded.section, original = excluded.original`,
		a.source, name, identity, r.mute, r.version, r.location, r.section, r.original)
}

// claims gives the names that the source still has for a page. The plus keeps
// SQLite from going through all names of the source.
func (a *application) claims(url string) ([]string, error) {
	return column[string](a, `SELECT url FROM memory WHERE source = ?1 AND url = ?2 AND identity IS NULL AND mute = 0
		UNION ALL SELECT url FROM memory WHERE identity = ?2 AND +source = ?1 AND mute = 0`, a.source, url)
}

// askAgain makes the source be asked for the page by these names of it. What is
// held may be what another name said that has gone.
func (a *application) askAgain(names []string) error {
	for _, name := range names {
		if a.brought[name] {
			continue
		}
		row, _, err := a.recall(name) // claims has found it
		if err != nil {
			return err
		}
		old := row
		row.version = ""
		if row.original, err = a.keepOriginal(old.original, nil); err != nil {
			return err
		}
		if err := a.remember(name, old, row, true); err != nil {
			return err
		}
	}
	return nil
}

// forgetPage takes a page out of the memory of every source, so that each of
// them is asked again should it name the page again. What the page was made of
// goes by a trigger.
func (a *application) forgetPage(url string) error {
	err := a.exec(`DELETE FROM memory WHERE url = ?2 AND identity IS NULL AND source IN (SELECT id FROM source WHERE site = ?1)`, a.id, url)
	if err != nil {
		return err
	}
	return a.exec(`DELETE FROM memory WHERE identity = ?2 AND source IN (SELECT id FROM source WHERE site = ?1)`, a.id, url)
}

// Cursor implements [millrace.Memory].
func (s *Site) Cursor(ctx context.Context, from string) (millrace.Cursor, error) {
	var c string
	err := s.store.read.row(ctx, "SELECT cursor FROM source WHERE site = ? AND name = ?", []any{s.id, from}, &c)
	if err != nil && !absent(err) {
		return "", explain("cursor of "+from, err)
	}
	return millrace.Cursor(c), nil
}

// Held implements [millrace.Memory].
func (s *Site) Held(ctx context.Context, from string, urls ...string) iter.Seq2[millrace.Ref, error] {
	return func(yield func(millrace.Ref, error) bool) {
		var source int64
		err := s.store.read.row(ctx, "SELECT id FROM source WHERE site = ? AND name = ?", []any{s.id, from}, &source)
		switch {
		case absent(err):
			return
		case err != nil:
			yield(millrace.Ref{}, explain("what is held of "+from, err))
			return
		case len(urls) > 0:
			err = s.heldOf(ctx, source, urls, yield)
		default:
			err = s.heldAll(ctx, source, yield)
		}
		if err != nil {
			yield(millrace.Ref{}, explain("what is held of "+from, err))
		}
	}
}

// heldOf gives the refs of some names.
func (s *Site) heldOf(ctx context.Context, source int64, names []string, yield func(millrace.Ref, error) bool) error {
	names = slices.Sorted(slices.Values(names))
	for _, name := range slices.Compact(names) {
		r := millrace.Ref{URL: name}
		err := s.store.read.row(ctx, "SELECT version, location, section FROM memory WHERE source = ? AND url = ?",
			[]any{source, name}, &r.Version, &r.Location, &r.Section)
		if absent(err) {
			continue
		}
		if err != nil {
			return err
		}
		if !yield(r, nil) {
			return nil
		}
	}
	return nil
}

// heldAll gives every ref.
func (s *Site) heldAll(ctx context.Context, source int64, yield func(millrace.Ref, error) bool) error {
	for from, more := "", true; more; {
		refs := make([]millrace.Ref, 0, chunk)
		err := s.store.read.rows(ctx, `SELECT url, version, location, section FROM memory
			WHERE source = ? AND url >= ? ORDER BY url LIMIT ?`, []any{source, from, chunk},
			func(scan scanner) error {
				var ref millrace.Ref
				err := scan(&ref.URL, &ref.Version, &ref.Location, &ref.Section)
				refs = append(refs, ref)
				return err
			})
		if err != nil {
			return err
		}
		more = len(refs) == chunk
		for _, ref := range refs {
			from = ref.URL + "\x00"
			if !yield(ref, nil) {
				return nil
			}
		}
	}
	return nil
}
