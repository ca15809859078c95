package index

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/search"
)

const (
	// fitAgain determines when Fit fits a new model: when one in fitAgain passages has changed.
	fitAgain = 5
	// fitBatch is the number of passages that get vectors in one transaction.
	fitBatch = 500
)

// vectorID returns the row ID of the vector that a model assigns to a passage.
func vectorID(model, passage int64) int64 { return model<<32 | passage }

// Fit learns the latent vectors of words from the passages, or requests the vectors of the passages
// from the embedder. Searches then also find passages by similarity. Without an embedder, Fit
// does nothing if less than a fifth of the passages have changed since the last fit: new passages
// already have vectors from the existing model. The same passages produce the same result.
// Searches use the previous result until Fit returns. After a crash, the next Fit continues.
//
// progress receives the number of finished passages and the total; it may be nil. If the index is
// not complete yet, or the embedder does not respond, Fit returns ErrUnavailable.
func (x *Index) Fit(ctx context.Context, progress func(done, total int)) error {
	err := x.fit(ctx, progress)
	x.rest()
	if err != nil {
		return explain("fit index "+x.path, err)
	}
	return nil
}

// FitNeeded reports whether Fit is worth its cost, which is similar to that of building the index.
// It returns true if the index was searched since Open, or has an embedder.
func (x *Index) FitNeeded() bool { return x.used.Load() || x.embedder != nil }

func (x *Index) fit(ctx context.Context, progress func(done, total int)) error {
	f := &fitting{Index: x}
	err := x.read(ctx, func(c *conn) (err error) {
		if f.state, err = c.state(); err != nil {
			return err
		}
		err = c.row("SELECT id, after, name, size FROM model ORDER BY id DESC LIMIT 1", nil, &f.id, &f.after, &f.name, &f.size)
		if absent(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if f.stage < comparing {
		return errBuilding
	}
	name := ""
	if x.embedder != nil {
		name = x.embedder.Model()
	}
	if f.id != 0 && f.name == name && f.id == f.model && name == "" && f.moved*fitAgain < f.passages {
		return nil
	}
	// Begin a new model, except in two cases: the newest model is not in use yet, or it is the
	// embedder's, so that only the vectors of new passages are missing.
	if f.id == 0 || f.name != name || f.id == f.model && name == "" {
		if err := f.begin(ctx, name); err != nil || f.id == 0 {
			return err
		}
	}
	if err := f.assignVectors(ctx, progress); err != nil {
		return err
	}
	return f.dropOld(ctx)
}

// fitting is one call of Fit. It holds the state of the index and the newest model.
type fitting struct {
	*Index
	state
	id, after int64
	name      string
	size      int
}

// step runs do in a transaction, unless the index was rebuilt.
func (f *fitting) step(ctx context.Context, do func(w *work) error) error {
	return f.change(ctx, func(w *work) error {
		if w.made != f.made {
			return fmt.Errorf("%w: the index was rebuilt in the meantime", millrace.ErrConflict)
		}
		return do(w)
	})
}

// begin creates a model and sets f.id to its id. Without an embedder it fits the model. If the site
// is too small for a model, f.id is 0.
func (f *fitting) begin(ctx context.Context, name string) error {
	f.id, f.after, f.name, f.size = 0, 0, name, 0
	var data []byte
	if name == "" {
		model, err := search.Fit(ctx, f.contents(ctx), nil)
		if errors.Is(err, millrace.ErrUnavailable) {
			return nil
		} else if err != nil {
			return err
		}
		if data, err = model.MarshalBinary(); err != nil {
			return err
		}
		f.size = model.Dimensions()
	}
	return f.step(ctx, func(w *work) error {
		w.moved = 0
		r, err := w.exec("INSERT INTO model (name, size, data) VALUES (?, ?, ?)", name, f.size, data)
		if err == nil {
			f.id, err = r.LastInsertId()
		}
		return err
	})
}

// indexedText is the text of an indexed passage.
type indexedText struct {
	id int64
	search.Text
}

// textsAfter reads the next fitBatch passages after an id, in the order of their ids.
func (x *Index) textsAfter(c *conn, after int64) (list []indexedText, err error) {
	var pages []int64
	var ords []int
	err = c.rows(`SELECT p.id, s.title, s.language, p.page, p.ord FROM passage p CROSS JOIN page s ON s.id = p.page
		WHERE p.id > ? ORDER BY p.id LIMIT ?`, []any{after, fitBatch}, func(scan scanner) error {
		var t indexedText
		var page int64
		var ord int
		err := scan(&t.id, &t.Title, &t.Language, &page, &ord)
		list, pages, ords = append(list, t), append(pages, page), append(ords, ord)
		return err
	})
	all := new(texts)
	for i := range list {
		if err == nil && all.page != pages[i] {
			all, err = x.textsOf(c, pages[i])
		}
		if err != nil {
			return nil, err
		}
		if err = x.searchText(c, all, &list[i].Text, ords[i]); err != nil {
			return nil, err
		}
	}
	return list, err
}

// next reads the next passages in its own transaction.
func (f *fitting) next(ctx context.Context, after int64) (list []indexedText, err error) {
	err = f.read(ctx, func(c *conn) (err error) {
		list, err = f.textsAfter(c, after)
		return err
	})
	return list, err
}

// contents yields the terms of every passage, for search.Fit.
func (f *fitting) contents(ctx context.Context) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		x := search.NewIndexer()
		for after := int64(0); ; {
			list, err := f.next(ctx, after)
			if err != nil {
				yield(nil, err)
				return
			}
			if len(list) == 0 {
				return
			}
			for _, t := range list {
				if !yield(x.Content(t.Text), nil) {
					return
				}
				after = t.id
			}
		}
	}
}

// assignVectors computes the missing vectors of the model. Then searches use the model.
func (f *fitting) assignVectors(ctx context.Context, progress func(done, total int)) error {
	var model *search.Model
	if f.name == "" {
		err := f.read(ctx, func(c *conn) (err error) {
			model, err = f.load(c, f.made, f.id)
			return err
		})
		if err != nil {
			return err
		}
	}
	x := search.NewIndexer()
	for done := 0; ; {
		list, err := f.next(ctx, f.after)
		if err != nil {
			return err
		}
		vectors := make([]search.Vector, len(list))
		if model != nil {
			for i, t := range list {
				vectors[i], _ = model.Vector(x.Content(t.Text))
			}
		} else if vectors, err = f.embed(ctx, list); err != nil {
			return err
		}
		finished := false
		err = f.step(ctx, func(w *work) error {
			if len(list) == 0 {
				// Repeat if passages were added in the meantime. Once a fitted model is in use,
				// new passages get their vectors when they are added.
				some, err := f.textsAfter(w.conn, f.after)
				if finished = len(some) == 0; finished {
					w.model = max(w.model, f.id) // another process may have set a newer model
				}
				return err
			}
			for i, t := range list {
				if vectors[i] == nil {
					continue
				}
				// The passage may have been deleted in the meantime.
				_, err := w.exec("INSERT OR IGNORE INTO vector (id, data) SELECT ?, ? FROM passage WHERE id = ?",
					vectorID(f.id, t.id), []byte(vectors[i]), t.id)
				if err != nil {
					return err
				}
			}
			f.after = list[len(list)-1].id
			_, err := w.exec("UPDATE model SET after = ?, size = ? WHERE id = ?", f.after, f.size, f.id)
			return err
		})
		if err != nil || finished {
			return err
		}
		done += len(list)
		if progress != nil {
			progress(min(done, int(f.passages)), int(f.passages))
		}
	}
}

// embed requests the vectors of passages from the embedder.
func (f *fitting) embed(ctx context.Context, list []indexedText) ([]search.Vector, error) {
	if len(list) == 0 {
		return nil, nil
	}
	texts := make([]string, len(list))
	for i, t := range list {
		texts[i] = t.Joined()
	}
	got, err := f.embedder.Embed(ctx, false, texts)
	if err != nil {
		return nil, err
	}
	if len(got) != len(texts) {
		return nil, fmt.Errorf("%w: the embedder returned %d vectors for %d texts", millrace.ErrInvalid, len(got), len(texts))
	}
	vectors := make([]search.Vector, len(got))
	for i, v := range got {
		if f.size == 0 {
			f.size = len(v)
		}
		if len(v) != f.size {
			return nil, fmt.Errorf("%w: the embedder returned a vector of %d numbers, previously %d; use a new name for a new model",
				millrace.ErrInvalid, len(v), f.size)
		}
		vectors[i] = search.NewVector(v)
	}
	return vectors, nil
}

// dropOld deletes the models that are older than the one in use, with their vectors.
func (f *fitting) dropOld(ctx context.Context) error {
	for more := true; more; {
		err := f.step(ctx, func(w *work) error {
			r, err := w.exec("DELETE FROM vector WHERE id IN (SELECT id FROM vector WHERE id < ? LIMIT ?)", vectorID(w.model, 0), fitBatch)
			if err != nil {
				return err
			}
			n, err := r.RowsAffected()
			if more = n > 0; more || err != nil {
				return err
			}
			_, err = w.exec("DELETE FROM model WHERE id < ?", w.model)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
