package record

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace"
)

// Ref is the stored record of a source's name for a page. The zero Ref is absent.
type Ref struct {
	Path                       string // path of the page
	Alias                      bool   // the page came with an empty Known set
	Version, Location, Section string
	Original                   []byte // set only to be stored; see KeepOriginal
	KeepOriginal               bool   // keep the stored original
}

// Equal reports whether two refs are equal, ignoring their originals.
func (r *Ref) Equal(o *Ref) bool {
	return r.Path == o.Path && r.Alias == o.Alias && r.Version == o.Version && r.Location == o.Location && r.Section == o.Section
}

// Transaction is a transaction of an engine on a site, for one source. If Apply returns an error,
// the engine rolls the transaction back.
type Transaction interface {
	// Load announces the next names and pages, so the engine can read them together.
	Load(names, paths []string) error
	// UpdateRef replaces the Ref of one of the source's names with the result of f. It calls f with
	// the stored Ref, with KeepOriginal set.
	UpdateRef(name string, f func(old Ref) (Ref, error)) error
	// Update replaces the newest entry of a page with the result of f, according to the Outcome.
	Update(path string, f func(old Entry) (Entry, Outcome, error)) error
	// Names returns the source's names for pages, without aliases.
	Names(paths []string) (map[string][]string, error)
	// DeleteNames deletes the names that any source has for pages.
	DeleteNames(paths []string) error
	// SetCursor stores the cursor of the source.
	SetCursor(c millrace.Cursor) error
}

// Apply applies a batch of changes to a site; see [store.Site]. names converts the
// caller's URLs.
func Apply(ctx context.Context, tx Transaction, batch []millrace.Change, names Names, now time.Time) (millrace.Counts, error) {
	a := &application{Transaction: tx, names: names, now: now, orphans: make(map[string]int), inBatch: make(map[string]bool)}
	var urls, paths []string
	for i := range batch {
		if c := &batch[i]; c.URL != "" {
			urls, paths = append(urls, c.URL), append(paths, a.path(c))
		}
	}
	slices.Sort(urls)
	slices.Sort(paths)
	if err := tx.Load(slices.Compact(urls), slices.Compact(paths)); err != nil {
		return millrace.Counts{}, err
	}
	for i := range batch {
		err := ctx.Err()
		if err == nil {
			err = a.apply(&batch[i])
		}
		if err != nil {
			return millrace.Counts{}, fmt.Errorf("%s: %w", batch[i].URL, err)
		}
	}
	if err := a.deleteOrphans(); err != nil {
		return millrace.Counts{}, err
	}
	return a.counts, nil
}

// application is the state of one batch.
type application struct {
	Transaction
	names  Names
	now    time.Time
	counts millrace.Counts
	// orphans are pages that lost a name, with the number of Delete changes that removed one.
	// deleteOrphans checks whether each of them has another name.
	orphans map[string]int
	order   []string
	inBatch map[string]bool // names whose page is in the batch
}

// path returns the path of the page of a change.
func (a *application) path(c *millrace.Change) string {
	if c.Page != nil {
		return a.names.Path(cmp.Or(c.Page.URL, c.URL))
	}
	return a.names.Path(c.URL)
}

func (a *application) apply(c *millrace.Change) error {
	switch {
	case c.Kind == millrace.KindCheckpoint && c.Checkpoint != nil:
		return a.SetCursor(c.Checkpoint.Cursor)
	case c.Kind >= millrace.KindCheckpoint || c.URL == "":
		return fmt.Errorf("%w: change of kind %d: neither a URL nor a checkpoint", millrace.ErrInvalid, c.Kind)
	}
	a.counts.Unchanged++ // decremented if the change is counted otherwise
	return a.UpdateRef(c.URL, func(old Ref) (Ref, error) {
		r, known := old, old.Path != ""
		if !known {
			r.Path = a.names.Path(c.URL)
		}
		r.Version, r.Location, r.Section = c.Version, c.Location, c.Section
		switch {
		case c.Kind == millrace.Delete:
			if !old.Alias {
				a.orphan(r.Path, 1)
			}
			return Ref{}, nil
		case c.Page != nil:
			err := a.put(c, &r)
			if known && (old.Path != r.Path || r.Alias && !old.Alias) {
				a.orphan(old.Path, 0)
			}
			return r, err
		case !known:
			present := false
			err := a.Update(r.Path, func(e Entry) (Entry, Outcome, error) {
				present = e.Present
				return e, Same, nil
			})
			if !present {
				return Ref{}, err // nothing to store
			}
		}
		r.KeepOriginal = r.Version != ""
		return r, nil
	})
}

// put stores a page, and sets the Ref of its name.
func (a *application) put(c *millrace.Change, r *Ref) error {
	in := *c.Page
	in.URL = a.path(c)
	a.inBatch[c.URL] = true
	r.Path, r.Alias, r.Version = in.URL, in.Known == 0, cmp.Or(in.Version, r.Version)
	r.KeepOriginal = false
	if len(in.Original) <= millrace.MaxOriginal {
		r.Original = in.Original
	}
	if r.Alias {
		return nil
	}
	return a.Update(in.URL, func(old Entry) (Entry, Outcome, error) {
		e, out, err := Take(old, &in, c.Newer, a.names, a.now)
		if out == Changed {
			a.counts.Unchanged--
			if old.Present {
				a.counts.Updated++
			} else {
				a.counts.Added++
			}
		}
		return e, out, err
	})
}

func (a *application) orphan(path string, deletes int) {
	if _, ok := a.orphans[path]; !ok {
		a.order = append(a.order, path)
	}
	a.orphans[path] += deletes
}

// deleteOrphans deletes the pages that have no name left in the source.
func (a *application) deleteOrphans() error {
	if len(a.order) == 0 {
		return nil
	}
	left, err := a.Names(a.order)
	if err != nil {
		return err
	}
	var gone []string
	for _, path := range a.order {
		for _, name := range left[path] {
			if a.inBatch[name] {
				continue
			}
			// The content may be from the deleted name, so the page must be fetched again.
			err := a.UpdateRef(name, func(r Ref) (Ref, error) {
				r.Version, r.KeepOriginal = "", false
				return r, nil
			})
			if err != nil {
				return err
			}
		}
		if len(left[path]) > 0 {
			continue
		}
		err := a.Update(path, func(old Entry) (Entry, Outcome, error) {
			if !old.Present {
				return old, Same, nil
			}
			gone = append(gone, path)
			a.counts.Deleted++
			if a.orphans[path] > 0 {
				a.counts.Unchanged--
			}
			return Remove(old, a.now), Changed, nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return a.DeleteNames(gone)
}
