package sqlstore

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store/internal/record"
)

// ref is a source's name for a page.
type ref struct {
	record.Ref
	original int64 // ID of the original, or 0
	stored   bool  // the table memory has a row for the name
	dirty    bool  // changed since the last write
}

// register assigns a number to the source on its first write.
func (a *application) register() error {
	if a.source != 0 {
		return nil
	}
	return a.Row("INSERT INTO source (site, name) VALUES (?, ?) RETURNING id", []any{a.id, a.from}, &a.source)
}

// loadRefs reads the given names of the source.
func (a *application) loadRefs(names []string) error {
	for _, name := range names {
		if a.refs[name] == nil {
			a.refs[name] = &ref{Ref: record.Ref{KeepOriginal: true}}
		}
	}
	if a.source == 0 {
		return nil
	}
	return a.Rows("SELECT url, coalesce(identity, url), mute, version, location, section, original FROM memory WHERE source = ? AND url = ANY(?)",
		[]any{a.source, names}, func(scan Scanner) error {
			var name string
			r := ref{stored: true}
			err := scan(&name, &r.Path, &r.Alias, &r.Version, &r.Location, &r.Section, &r.original)
			if r.KeepOriginal = true; !a.refs[name].dirty {
				*a.refs[name] = r
			}
			return err
		})
}

// UpdateRef implements [record.Transaction].
func (a *application) UpdateRef(name string, f func(old record.Ref) (record.Ref, error)) error {
	if a.refs[name] == nil {
		if err := a.loadRefs([]string{name}); err != nil {
			return err
		}
	}
	old := a.refs[name]
	r, err := f(old.Ref)
	if err != nil || r.Path == "" && old.Path == "" {
		return err
	}
	original := old.original
	if r.Path == "" || !r.KeepOriginal {
		if original, err = a.keepOriginal(original, r.Original); err != nil {
			return err
		}
	}
	if r.Original, r.KeepOriginal = nil, true; r.Equal(&old.Ref) && original == old.original {
		return nil
	}
	if err := a.register(); err != nil {
		return err
	}
	if !old.dirty {
		a.dirty = append(a.dirty, name)
	}
	a.refs[name] = &ref{Ref: r, original: original, stored: old.stored, dirty: true}
	return nil
}

// flushRefs writes the changed names.
func (a *application) flushRefs() error {
	var fresh, changed []any
	var gone []string
	for _, name := range a.dirty {
		r := a.refs[name]
		identity := any(r.Path)
		if r.Path == name {
			identity = nil
		}
		switch args := []any{a.source, name, identity, r.Alias, r.Version, r.Location, r.Section, r.original}; {
		case r.Path == "" && r.stored:
			gone = append(gone, name)
		case r.Path != "" && r.stored:
			changed = append(changed, args...)
		case r.Path != "":
			fresh = append(fresh, args...)
		}
		r.dirty, r.stored = false, r.Path != ""
	}
	a.dirty = nil
	if err := a.Exec("DELETE FROM memory WHERE source = ? AND url = ANY(?)", a.source, gone); err != nil {
		return err
	}
	const into = "memory (source, url, identity, mute, version, location, section, original)"
	if err := a.Insert(into, "", 8, fresh); err != nil {
		return err
	}
	return a.Insert(into, ` ON CONFLICT (source, url) DO UPDATE SET identity = excluded.identity,
		mute = excluded.mute, version = excluded.version, location = excluded.location, section = excluded.section, original = excluded.original`, 8, changed)
}

// Names implements [record.Transaction]. The unary plus in the query keeps SQLite from
// scanning all names of the source.
func (a *application) Names(urls []string) (map[string][]string, error) {
	if err := a.flushRefs(); err != nil {
		return nil, err
	}
	all := make(map[string][]string)
	for _, q := range []string{
		"SELECT url, url FROM memory WHERE source = ? AND mute = FALSE AND identity IS NULL AND url = ANY(?)",
		"SELECT identity, url FROM memory WHERE +source = ? AND mute = FALSE AND identity = ANY(?)",
	} {
		err := a.Rows(q, []any{a.source, urls}, func(scan Scanner) error {
			var url, name string
			err := scan(&url, &name)
			all[url] = append(all[url], name)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// DeleteNames implements [record.Transaction]. Originals are deleted by a trigger.
func (a *application) DeleteNames(urls []string) error {
	if err := a.flushRefs(); err != nil {
		return err
	}
	clear(a.refs)
	for _, where := range []string{"identity IS NULL AND url = ANY(?)", "identity = ANY(?)"} {
		if err := a.Exec("DELETE FROM memory WHERE source IN (SELECT id FROM source WHERE site = ?) AND "+where, a.id, urls); err != nil {
			return err
		}
	}
	return nil
}

// Cursor implements [millrace.SyncState].
func (s *Site) Cursor(ctx context.Context, from string) (millrace.Cursor, error) {
	var c string
	err := s.store.db.Reader(ctx).Row("SELECT cursor FROM source WHERE site = ? AND name = ?", []any{s.id, from}, &c)
	if err != nil && !absent(err) {
		return "", wrap("cursor of "+from, err)
	}
	return millrace.Cursor(c), nil
}

// KnownRefs implements [millrace.SyncState].
func (s *Site) KnownRefs(ctx context.Context, from string, urls ...string) iter.Seq2[millrace.Ref, error] {
	return func(yield func(millrace.Ref, error) bool) {
		var source int64
		err := s.store.db.Reader(ctx).Row("SELECT id FROM source WHERE site = ? AND name = ?", []any{s.id, from}, &source)
		switch {
		case absent(err):
			return
		case err != nil:
			yield(millrace.Ref{}, wrap("refs of source "+from, err))
			return
		case len(urls) > 0:
			err = s.refsOf(ctx, source, urls, yield)
		default:
			err = s.allRefs(ctx, source, yield)
		}
		if err != nil {
			yield(millrace.Ref{}, wrap("refs of source "+from, err))
		}
	}
}

// refsOf yields the refs of some names.
func (s *Site) refsOf(ctx context.Context, source int64, names []string, yield func(millrace.Ref, error) bool) error {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	for some := range slices.Chunk(names, chunk) {
		var refs []millrace.Ref
		err := s.store.db.Reader(ctx).Rows("SELECT url, version, location, section FROM memory WHERE source = ? AND url = ANY(?)",
			[]any{source, some}, scanRef(&refs))
		if err != nil {
			return err
		}
		slices.SortFunc(refs, func(a, b millrace.Ref) int { return strings.Compare(a.URL, b.URL) })
		for _, r := range refs {
			if !yield(r, nil) {
				return nil
			}
		}
	}
	return nil
}

func scanRef(refs *[]millrace.Ref) func(scan Scanner) error {
	return func(scan Scanner) error {
		var r millrace.Ref
		err := scan(&r.URL, &r.Version, &r.Location, &r.Section)
		*refs = append(*refs, r)
		return err
	}
}

// allRefs yields all refs of a source.
func (s *Site) allRefs(ctx context.Context, source int64, yield func(millrace.Ref, error) bool) error {
	for from, more := "", true; more; {
		refs := make([]millrace.Ref, 0, chunk)
		err := s.store.db.Reader(ctx).Rows(`SELECT url, version, location, section FROM memory
			WHERE source = ? AND url > ? ORDER BY url LIMIT ?`, []any{source, from, chunk}, scanRef(&refs))
		if err != nil {
			return err
		}
		more = len(refs) == chunk
		for _, ref := range refs {
			from = ref.URL
			if !yield(ref, nil) {
				return nil
			}
		}
	}
	return nil
}
