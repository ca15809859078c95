package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/search"
)

const (
	// fitAgain is the share of the passages that have to come or go until a
	// new model is fitted.
	fitAgain = 5
	// fitBatch is how many passages get their vectors in one transaction.
	fitBatch = 500
)

// Fit implements [store.Site].
func (s *Site) Fit(ctx context.Context, progress func(done, total int)) error {
	err := s.fit(ctx, progress)
	if err == nil {
		err = s.merge(ctx, math.MaxInt)
	}
	if err != nil {
		return explain("fit the index of site "+s.name, err)
	}
	s.store.writer.rest(ctx)
	return nil
}

func (s *Site) fit(ctx context.Context, progress func(done, total int)) error {
	q := readQuerier{ctx, s.store.read}
	g, _, err := s.generations(q)
	if err != nil {
		return err
	}
	if g == nil {
		return noIndex("the site has no index: index it first")
	}
	name := ""
	if s.config.Embedder != nil {
		name = s.config.Embedder.Model()
	}
	m, err := s.newestModel(q, g)
	if err != nil {
		return err
	}
	switch {
	case m.id == 0 || m.name != name:
	case m.id != g.model: // a model is there, its vectors are not
		return s.placeVectors(ctx, g, m, progress)
	case name != "":
		return s.placeVectors(ctx, g, m, progress) // what came in between
	case g.moved*fitAgain < g.passages:
		return nil
	}
	if m, err = s.newModel(ctx, g, name); err != nil || m.id == 0 {
		return err
	}
	return s.placeVectors(ctx, g, m, progress)
}

// modelRow is a model without its data.
type modelRow struct {
	id, after int64
	name      string
	size      int
}

// newestModel gives the last model of a generation, the zero one if there is
// none.
func (s *Site) newestModel(q querier, g *generation) (m modelRow, err error) {
	err = q.row("SELECT id, after, name, size FROM model WHERE generation = ? ORDER BY id DESC LIMIT 1", []any{g.id}, &m.id, &m.after, &m.name, &m.size)
	if absent(err) {
		err = nil
	}
	return m, err
}

// newModel begins another model; with no embedder it is fitted here. Its id is
// 0 if the site is too small for one.
func (s *Site) newModel(ctx context.Context, g *generation, name string) (m modelRow, err error) {
	m.name = name
	var data []byte
	if name == "" {
		model, err := search.Fit(ctx, s.contents(ctx, g), nil)
		if errors.Is(err, millrace.ErrUnavailable) {
			return m, nil
		} else if err != nil {
			return m, err
		}
		if data, err = model.MarshalBinary(); err != nil {
			return m, err
		}
		m.size = model.Dimensions()
	}
	err = s.change(ctx, func(w *work) error {
		if err := w.stands(g); err != nil {
			return err
		}
		g.moved = 0
		if err := w.exec("UPDATE generation SET moved = 0 WHERE id = ?", g.id); err != nil {
			return err
		}
		return w.row("INSERT INTO model (generation, name, size, data) VALUES (?, ?, ?, ?) RETURNING id", []any{g.id, name, m.size, data}, &m.id)
	})
	return m, err
}

// stands gives an error if a generation is no longer the one that answers.
func (w *work) stands(g *generation) error {
	answers, _, err := w.generations(w)
	if err == nil && (answers == nil || answers.id != g.id) {
		err = fmt.Errorf("%w: another index has taken the place of the one that was fitted: fit again", millrace.ErrConflict)
	}
	return err
}

// indexedText is a passage to be given a vector.
type indexedText struct {
	id int64
	search.Text
}

// texts reads current passages after one, in the order of their numbers.
func (s *Site) texts(q querier, g *generation, after int64, limit int) (list []indexedText, err error) {
	size := 0
	err = q.rows(`SELECT p.id, s.title, s.language, t.data FROM passage p CROSS JOIN sheet s ON s.id = p.sheet CROSS JOIN passage_text t ON t.id = p.id
		WHERE p.id > ? AND p.id <= ? AND p.until = 1099511627775 ORDER BY p.id LIMIT ?`, []any{max(after, g.first()), g.last(), limit},
		func(scan scanner) error {
			var t indexedText
			var data []byte
			if err := scan(&t.id, &t.Title, &t.Language, &data); err != nil {
				return err
			}
			var p passageText
			err := json.Unmarshal(data, &p)
			if err != nil {
				return err
			}
			t.Headings, t.Text.Text = slices.Concat(p.Headings, p.Inside), p.Text
			list = append(list, t)
			if size += len(data); size > indexBytes {
				return errEnough
			}
			return nil
		})
	return list, err
}

// contents yields the terms of every current passage.
func (s *Site) contents(ctx context.Context, g *generation) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		x := search.NewIndexer()
		for after := int64(0); ; {
			list, err := s.texts(readQuerier{ctx, s.store.read}, g, after, fitBatch)
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

// placeVectors gives the passages that have none yet vectors of a model, and makes it
// the one that is used.
func (s *Site) placeVectors(ctx context.Context, g *generation, m modelRow, progress func(done, total int)) error {
	var model *search.Model
	if m.name == "" {
		var err error
		if model, err = s.loadModel(readQuerier{ctx, s.store.read}, m.id); err != nil {
			return err
		}
	}
	x := search.NewIndexer()
	for done := 0; ; {
		list, err := s.texts(readQuerier{ctx, s.store.read}, g, m.after, fitBatch)
		if err != nil {
			return err
		}
		vectors := make([]search.Vector, len(list))
		if model != nil {
			for i, t := range list {
				vectors[i], _ = model.Vector(x.Content(t.Text))
			}
		} else if vectors, err = s.embed(ctx, &m, list); err != nil {
			return err
		}
		finished := false
		err = s.change(ctx, func(w *work) error {
			if err := w.stands(g); err != nil {
				return err
			}
			if len(list) == 0 {
				// Unless something has come since it was looked; from here on
				// what comes is given its vector then.
				some, err := s.texts(w, g, m.after, 1)
				if finished = len(some) == 0; err != nil || !finished {
					return err
				}
				return w.exec("UPDATE generation SET model = ? WHERE id = ?", m.id, g.id)
			}
			for i, t := range list {
				if vectors[i] == nil {
					continue
				}
				// It may have gone in the meantime.
				err := w.exec("INSERT OR IGNORE INTO vector (id, data) SELECT ?, ? FROM passage WHERE id = ?",
					vectorID(m.id, t.id), []byte(vectors[i]), t.id)
				if err != nil {
					return err
				}
			}
			m.after = list[len(list)-1].id
			return w.exec("UPDATE model SET after = ?, size = ? WHERE id = ?", m.after, m.size, m.id)
		})
		if err != nil || finished {
			return err
		}
		done += len(list)
		if progress != nil {
			progress(min(done, int(g.passages)), int(g.passages))
		}
	}
}

// embed asks the embedder for the vectors of passages.
func (s *Site) embed(ctx context.Context, m *modelRow, list []indexedText) ([]search.Vector, error) {
	if len(list) == 0 {
		return nil, nil
	}
	texts := make([]string, len(list))
	for i, t := range list {
		texts[i] = t.Whole()
	}
	got, err := s.config.Embedder.Embed(ctx, false, texts)
	if err != nil {
		return nil, err
	}
	if len(got) != len(texts) {
		return nil, fmt.Errorf("%w: the embedder gives %d vectors for %d texts", millrace.ErrInvalid, len(got), len(texts))
	}
	vectors := make([]search.Vector, len(got))
	for i, v := range got {
		if m.size == 0 {
			m.size = len(v)
		}
		if len(v) != m.size {
			return nil, fmt.Errorf("%w: the embedder gives vectors of %d numbers, and gave %d before: another model needs another name",
				millrace.ErrInvalid, len(v), m.size)
		}
		vectors[i] = search.NewVector(v)
	}
	return vectors, nil
}

// loadModel gives a model that was fitted, the last one from memory.
func (s *Site) loadModel(q querier, id int64) (*search.Model, error) {
	c := &s.searches
	c.mu.Lock()
	last := c.model
	c.mu.Unlock()
	if last.id == id {
		return last.model, nil
	}
	// Nobody waits for the lock while this waits for a connection.
	var data []byte
	if err := q.row("SELECT data FROM model WHERE id = ?", []any{id}, &data); err != nil {
		return nil, err
	}
	model := new(search.Model)
	if err := model.UnmarshalBinary(data); err != nil {
		return nil, fmt.Errorf("%w: it is damaged: restore a backup, or remove it and ingest again: %w", millrace.ErrInvalid, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.model.id, c.model.model = id, model
	return model, nil
}

// fold gives a passage that comes the vector that the model in use knows for
// it. A model of the embedder's is asked by Fit.
func (x *indexing) fold(g *generation, id int64, t search.Text) error {
	if g.model == 0 {
		return nil
	}
	var name string
	if err := x.row("SELECT name FROM model WHERE id = ?", []any{g.model}, &name); err != nil || name != "" {
		return err
	}
	model, err := x.loadModel(x, g.model)
	if err != nil {
		return err
	}
	v, _ := model.Vector(x.entries.Content(t))
	if v == nil {
		return nil
	}
	return x.exec("INSERT OR IGNORE INTO vector (id, data) VALUES (?, ?)", vectorID(g.model, id), []byte(v))
}

// How much meaning counts beside words: what the site's own words tell is
// vague, what a model was trained for is not.
const (
	fittedWeight   = 0.3
	embeddedWeight = 0.5
	// fittedShort is how many words a passage needs for what was learned to
	// tell its direction.
	fittedShort = 30
)

// question is what the embedder says of a question.
type question struct {
	model  string
	vector []float32
	err    error
}

// ask has a question embedded, before anything is read: nobody waits for an
// embedder with a connection in hand.
func (s *Site) ask(ctx context.Context, text string) (q question) {
	e := s.config.Embedder
	if e == nil || search.Parse(text).Empty() {
		return q
	}
	q.model = e.Model()
	got, err := e.Embed(ctx, true, []string{text})
	switch {
	case err != nil:
		q.err = err
		s.store.log.Warn("a question is not embedded", "site", s.name, "err", err)
	case len(got) == 1:
		q.vector = got[0]
	}
	return q
}

// Meaning implements [search.Index].
func (x *searching) Meaning(terms []string) (m search.Meaning, err error) {
	if x.generation.model == 0 {
		return m, nil
	}
	var name string
	var size int
	if err := x.row("SELECT name, size FROM model WHERE id = ?", []any{x.generation.model}, &name, &size); err != nil {
		return m, err
	}
	switch {
	case name == "":
		model, err := x.site.loadModel(x.snapshot, x.generation.model)
		if err != nil {
			return m, err
		}
		m.Vector, _ = model.Vector(terms)
		m.Weight, m.Short = fittedWeight, fittedShort
	case x.question.model != name:
		m.Note = millrace.Coded("other-model", errors.New("the vectors of the index are of a model that is not asked now: found by words alone"))
	case x.question.err != nil:
		m.Note = millrace.Coded("no-embedder", errors.New("the embedder does not answer: found by words alone"))
	case len(x.question.vector) != size:
		m.Note = millrace.Coded("vector-size", errors.New("the embedder answers with a vector of another size: found by words alone"))
	default:
		m.Vector, m.Weight = search.NewVector(x.question.vector), embeddedWeight
	}
	return m, nil
}

// nearestPassages is how many passages a site may have for all of their
// vectors to be looked at.
const nearestPassages = 20_000

// Nearest implements [search.Index].
func (x *searching) Nearest(v search.Vector, m search.Match, limit int) ([]int64, error) {
	if x.generation.passages > nearestPassages || x.query.Page != "" || len(m.All)+len(m.Not)+len(m.URL)+len(m.NotURL) > 0 {
		return nil, nil
	}
	top := search.NewNearest(limit)
	var id int64
	var data sql.RawBytes
	err := x.rows("SELECT id, data FROM vector WHERE id > ? AND id < ?",
		[]any{vectorID(x.generation.model, 0), vectorID(x.generation.model+1, 0)}, func(scan scanner) error {
			err := scan(&id, &data)
			// What the view does not show would take the places of what it does.
			passage := x.generation.first() | id&passageMask
			if _, out := slices.BinarySearch(x.hidden, passage); !out && passage < x.newer {
				top.Add(passage, search.Similarity(v, search.Vector(data)))
			}
			return err
		})
	return top.IDs(), err
}
