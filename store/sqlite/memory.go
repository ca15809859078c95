package sqlite

import (
	"context"
	"iter"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store/internal/record"
)

// Remember implements [record.Transaction].
func (a *application) Remember(name string, f func(old record.Ref) (record.Ref, error)) error {
	var original int64
	old := record.Ref{KeepOriginal: true}
	err := a.row("SELECT coalesce(identity, url), mute, version, location, section, original FROM memory WHERE source = ? AND url = ?",
		[]any{a.source, name}, &old.Path, &old.Alias, &old.Version, &old.Location, &old.Section, &original)
	if err != nil && !absent(err) {
		return err
	}
	r, err := f(old)
	switch {
	case err != nil:
		return err
	case r.Path == "" && old.Path == "":
		return nil
	case r.Path == "":
		return a.exec("DELETE FROM memory WHERE source = ? AND url = ?", a.source, name)
	}
	before := original
	if !r.KeepOriginal {
		if original, err = a.keepOriginal(original, r.Original); err != nil {
			return err
		}
	}
	if r.Equal(&old) && original == before {
		return nil
	}
	if err := a.register(); err != nil {
		return err
	}
	var path any
	if r.Path != name {
		path = r.Path
	}
	return a.exec(`INSERT INTO memory (source, url, identity, mute, version, location, section, original) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET identity = excluded.identity, mute = excluded.mute, version = excluded.version,
		location = excluded.location, section = excluded.section, original = excluded.original`,
		a.source, name, path, r.Alias, r.Version, r.Location, r.Section, original)
}

// Names implements [record.Transaction]. The unary plus in the query keeps SQLite from
// scanning all names of the source.
func (a *application) Names(urls []string) (map[string][]string, error) {
	all := make(map[string][]string)
	for _, url := range urls {
		names, err := column[string](a, `SELECT url FROM memory WHERE source = ?1 AND url = ?2 AND identity IS NULL AND mute = 0
			UNION ALL SELECT url FROM memory WHERE identity = ?2 AND +source = ?1 AND mute = 0`, a.source, url)
		if err != nil {
			return nil, err
		}
		all[url] = names
	}
	return all, nil
}

// Forget implements [record.Transaction]. Originals are deleted by a trigger.
func (a *application) Forget(urls []string) error {
	for _, url := range urls {
		for _, where := range []string{"url = ?2 AND identity IS NULL", "identity = ?2"} {
			if err := a.exec("DELETE FROM memory WHERE "+where+" AND source IN (SELECT id FROM source WHERE site = ?1)", a.id, url); err != nil {
				return err
			}
		}
	}
	return nil
}

// Cursor implements [millrace.SyncState].
func (s *Site) Cursor(ctx context.Context, from string) (millrace.Cursor, error) {
	var c string
	err := s.store.read.row(ctx, "SELECT cursor FROM source WHERE site = ? AND name = ?", []any{s.id, from}, &c)
	if err != nil && !absent(err) {
		return "", explain("cursor of "+from, err)
	}
	return millrace.Cursor(c), nil
}

// KnownRefs implements [millrace.SyncState].
func (s *Site) KnownRefs(ctx context.Context, from string, urls ...string) iter.Seq2[millrace.Ref, error] {
	return func(yield func(millrace.Ref, error) bool) {
		var source int64
		err := s.store.read.row(ctx, "SELECT id FROM source WHERE site = ? AND name = ?", []any{s.id, from}, &source)
		switch {
		case absent(err):
			return
		case err != nil:
			yield(millrace.Ref{}, explain("refs of source "+from, err))
			return
		case len(urls) > 0:
			err = s.refsOf(ctx, source, urls, yield)
		default:
			err = s.allRefs(ctx, source, yield)
		}
		if err != nil {
			yield(millrace.Ref{}, explain("refs of source "+from, err))
		}
	}
}

// refsOf returns the refs of some names.
func (s *Site) refsOf(ctx context.Context, source int64, names []string, yield func(millrace.Ref, error) bool) error {
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

// allRefs returns every ref.
func (s *Site) allRefs(ctx context.Context, source int64, yield func(millrace.Ref, error) bool) error {
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
