package index

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/search"
	"github.com/millrace/millrace/internal/sqlitefile"
)

// Limits of one transaction.
const (
	indexPassages = 1000
	indexPages    = 200
	indexTerms    = 20_000
)

// last sorts after every URL.
const last = "\xff"

// Update brings the index up to date with a view. It does nothing if the index is as new or newer.
// Searches continue during the update. After a crash, the next Update continues. progress receives
// the number of finished pages and the total; it may be nil. If another process keeps the file
// locked, or the disk is full, Update returns ErrUnavailable.
func (x *Index) Update(ctx context.Context, v millrace.View, progress func(done, total int)) error {
	select {
	case x.updating <- struct{}{}:
		defer func() { <-x.updating }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	u := &update{Index: x, view: v, site: v.Site(), progress: progress, counts: make(map[string]int)}
	err := u.run(ctx)
	if damaged(err) || x.broken.Load() {
		if err = x.rebuild(ctx); err == nil {
			err = u.run(ctx)
		}
	}
	if err == nil && u.taken > 0 {
		// The number of merge steps grows with the number of indexed pages.
		if err = x.merge(ctx, u.taken); err == nil {
			err = x.shrink(ctx)
		}
	}
	x.rest()
	if err != nil {
		return explain("update index "+x.path, err)
	}
	return nil
}

// update is one call of Update.
type update struct {
	*Index
	view     millrace.View
	site     millrace.Site
	progress func(done, total int)
	turn     int64 // state.turn as this update last read or wrote it
	entries  *search.Indexer
	counts   map[string]int // change in the number of passages of each term, in this transaction
	taken    int            // number of indexed pages
}

// errMoved reports that another process has updated the index.
var errMoved = errors.New("another process updates the index")

// run runs the stages in order until the index covers the view.
func (u *update) run(ctx context.Context) error {
	if u.entries == nil {
		u.entries = search.NewIndexer()
	}
	for {
		var s state
		err := u.read(ctx, func(c *conn) (err error) {
			s, err = c.state()
			return err
		})
		if err != nil {
			return err
		}
		others := s.turn != u.turn
		u.turn = s.turn
		switch {
		case s.stage == counting:
			err = u.step(ctx, (*work).count)
		case s.stage != following:
			err = u.sweep(ctx, s)
		case s.covers(&u.site):
			return nil
		default:
			err = u.follow(ctx, s)
		}
		switch {
		case err == nil, errors.Is(err, errMoved):
		case sqlitefile.Code(err) == sqlite3.SQLITE_BUSY && others:
			u.progress(min(s.done, u.site.Pages), u.site.Pages) // the progress that another process stored
		default:
			return err
		}
	}
}

// step runs do in a transaction. If another process has updated the index, step returns
// errMoved.
func (u *update) step(ctx context.Context, do func(w *work) error) error {
	err := u.change(ctx, func(w *work) error {
		if w.turn != u.turn {
			return errMoved
		}
		w.turn++
		clear(u.counts)
		if err := do(w); err != nil {
			return err
		}
		return w.recount(u.counts)
	})
	if err == nil {
		u.turn++
	}
	return err
}

// sweep compares the index with the pages of the view in the order of their URLs. It continues a
// sweep that was interrupted.
func (u *update) sweep(ctx context.Context, s state) error {
	pages := u.changes(ctx, "", s.after)
	if s.stage == filling {
		pages = ahead(ctx, func(yield func(*item, error) bool) {
			for p, err := range u.view.Scan(ctx, millrace.Scan{After: s.after, WithBlocks: true}) {
				if err != nil {
					yield(nil, err)
					return
				}
				if !yield(&item{url: canon.Relative(u.site.Base, p.URL), version: p.Version, page: p}, nil) {
					return
				}
			}
		})
	}
	err := u.step(ctx, func(w *work) error {
		// Save the cursor. The stage "following" later replays all changes since this cursor,
		// including changes made during the sweep.
		if w.after == "" || w.epoch == u.site.Epoch && w.seq > int64(u.site.Seq) {
			w.moveTo(&u.site)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return u.write(ctx, pages, func(w *work) error {
		if err := u.removeBetween(w, w.after, last); err != nil {
			return err
		}
		w.after = ""
		if w.stage++; w.stage == comparing+1 {
			w.stage = following
		}
		return nil
	})
}

// follow replays the log of the view.
func (u *update) follow(ctx context.Context, s state) error {
	err := u.write(ctx, u.changes(ctx, millrace.Site{Epoch: s.epoch}.At(uint64(s.seq)), ""), func(w *work) error {
		w.moveTo(&u.site)
		return nil
	})
	if !errors.Is(err, millrace.ErrConflict) {
		return err
	}
	u.log.Info("index differs from the site; comparing them", "path", u.path, "err", err)
	return u.step(ctx, func(w *work) error {
		w.stage, w.done = comparing, 0
		return nil
	})
}

// changes yields the changes of the view since a cursor. Without a cursor it yields all
// pages after the URL after. The items contain no pages; take reads a page only if its version
// differs from the indexed one.
func (u *update) changes(ctx context.Context, since millrace.Cursor, after string) iter.Seq2[*item, error] {
	return func(yield func(*item, error) bool) {
		for c, err := range u.view.Changes(ctx, since) {
			if err != nil {
				yield(nil, err)
				return
			}
			it := &item{url: canon.Relative(u.site.Base, c.URL), version: c.Version, gone: c.Kind == millrace.Delete}
			if c.Kind != millrace.KindCheckpoint && (after == "" || it.url > after) && !yield(it, nil) {
				return
			}
		}
	}
}

// moveTo sets the position of the index to that of a view.
func (w *work) moveTo(s *millrace.Site) {
	w.epoch, w.seq, w.time = s.Epoch, int64(s.Seq), s.Time.UnixMilli()
}

// write indexes items in several transactions, and runs finish in the last one.
func (u *update) write(ctx context.Context, items iter.Seq2[*item, error], finish func(w *work) error) error {
	next, stop := iter.Pull2(items)
	defer stop()
	start := u.taken
	for more := true; more; {
		var done, total int
		err := u.step(ctx, func(w *work) error {
			before := w.next
			for n := 0; more && n < indexPages && w.next-before < indexPassages; n++ {
				it, err, ok := next()
				if more = ok; !more {
					break
				}
				if err == nil {
					err = u.take(ctx, w, it)
				}
				if err != nil {
					return err
				}
			}
			if done, total = w.done, u.site.Pages; w.stage == following {
				done, total = u.taken-start, int(u.site.Seq)-int(w.seq)
			}
			switch {
			case !more:
				return finish(w)
			case w.stage == filling:
				return errors.Join(w.raise(before), w.limitSegments())
			}
			return nil
		})
		if err != nil {
			return err
		}
		if total > 0 {
			u.progress(min(done, total), total)
		}
	}
	return nil
}

// count counts the passages of each term after all passages are added. Each call first merges
// segments while there are any to merge, and then counts the next indexTerms terms.
func (w *work) count() error {
	if w.after == "" {
		if more, err := w.mergeWords(-fillPages); err != nil || more {
			return err
		}
		if err := errors.Join(w.set("automerge", 0), w.set("crisismerge", crisisSegments)); err != nil {
			return err
		}
	}
	if _, err := w.exec("CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, words, row)"); err != nil {
		return err
	}
	r, err := w.exec("INSERT INTO term (term, n) SELECT term, doc FROM temp.vocabulary WHERE term > ? ORDER BY term LIMIT ?", w.after, indexTerms)
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == indexTerms {
		return errors.Join(err, w.row("SELECT max(term) FROM term", nil, &w.after))
	}
	if _, err := w.exec("DROP TABLE temp.vocabulary"); err != nil {
		return err
	}
	w.stage, w.after = following, ""
	return nil
}

// when returns an error that states the time of the index.
func (s *state) when() error {
	return millrace.Coded("index-behind", fmt.Errorf("the search index is from %s; later changes are not searched yet",
		time.UnixMilli(s.time).UTC().Format(time.RFC3339)))
}
