package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/search"
)

// Weights of the similarity of vectors. The weight of words is 1. The weight is lower for a model
// that was fitted to the site's own words.
const (
	fittedWeight   = 0.8
	embeddedWeight = 1
	// fittedHalf is the number of words of a passage at which a fitted vector has half its weight.
	// On Cranfield, CACM and CISI, values from 5 to 15 give equal results, and 25 gives worse ones.
	fittedHalf = 10
)

// question is the embedder's result for a question.
type question struct {
	model  string
	vector []float32
	err    error
}

// ask embeds a question. Callers must call ask before they take a connection, because the embedder
// may be slow.
func (x *Index) ask(ctx context.Context, text string) (q question) {
	e := x.embedder
	if e == nil || search.Parse(text).Empty() {
		return q
	}
	q.model = e.Model()
	got, err := e.Embed(ctx, true, []string{text})
	switch {
	case err != nil:
		q.err = err
		x.log.Warn("could not embed question", "path", x.path, "err", err)
	case len(got) == 1:
		q.vector = got[0]
	}
	return q
}

// load returns a fitted model. It caches the last model.
func (s *searches) load(c *conn, made string, id int64) (*search.Model, error) {
	s.mu.Lock()
	last := s.model
	s.mu.Unlock()
	if last.made == made && last.id == id {
		return last.model, nil
	}
	var data []byte
	if err := c.row("SELECT data FROM model WHERE id = ?", []any{id}, &data); err != nil {
		return nil, err
	}
	last.made, last.id, last.model = made, id, new(search.Model)
	if err := last.model.UnmarshalBinary(data); err != nil {
		return nil, fmt.Errorf("model of the index: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.model = last
	return last.model, nil
}

// fold adds the vector of a new passage, if a fitted model is in use. For an embedder's model, the
// next Fit adds the vector.
func (w *work) fold(x *search.Indexer, id int64, t search.Text) error {
	if w.model == 0 {
		return nil
	}
	var name string
	if err := w.row("SELECT name FROM model WHERE id = ?", []any{w.model}, &name); err != nil || name != "" {
		return err
	}
	model, err := w.x.load(w.conn, w.made, w.model)
	if err != nil {
		return err
	}
	v, _ := model.Vector(x.Content(t))
	if v == nil {
		return nil
	}
	_, err = w.exec("INSERT OR IGNORE INTO vector (id, data) VALUES (?, ?)", vectorID(w.model, id), []byte(v))
	return err
}

// QueryVector implements [search.Index].
func (x *searching) QueryVector(terms []string) (m search.QueryVector, err error) {
	if x.model == 0 {
		return m, nil
	}
	var name string
	var size int
	if err := x.row("SELECT name, size FROM model WHERE id = ?", []any{x.model}, &name, &size); err != nil {
		return m, err
	}
	switch {
	case name == "":
		model, err := x.index.load(x.conn, x.made, x.model)
		if err != nil {
			return m, err
		}
		m.Vector, _ = model.Vector(terms)
		m.Weight, m.HalfLength = fittedWeight, fittedHalf
	case x.question.model != name:
		m.Note = millrace.Coded("other-model", errors.New("the vectors of the index are from another model; searched by words only"))
	case x.question.err != nil:
		m.Note = millrace.Coded("no-embedder", errors.New("the embedder does not respond; searched by words only"))
	case len(x.question.vector) != size:
		m.Note = millrace.Coded("vector-size", errors.New("the embedder returned a vector of another size; searched by words only"))
	default:
		m.Vector, m.Weight = search.NewVector(x.question.vector), embeddedWeight
	}
	return m, nil
}

// nearestPassages is the maximum number of passages for which Nearest compares all vectors.
const nearestPassages = 20_000

// Nearest implements [search.Index].
func (x *searching) Nearest(v search.Vector, m search.Match, limit int) ([]int64, error) {
	if x.passages > nearestPassages || x.query.Page != "" || len(m.All)+len(m.Not)+len(m.URL)+len(m.NotURL) > 0 {
		return nil, nil
	}
	top := search.NewNearest(limit)
	var id int64
	var data sql.RawBytes
	err := x.rows("SELECT id & 4294967295, data FROM vector WHERE id > ? AND id < ?", []any{vectorID(x.model, 0), vectorID(x.model+1, 0)}, func(scan scanner) error {
		err := scan(&id, &data)
		top.Add(id, search.Similarity(v, search.Vector(data)))
		return err
	})
	return top.IDs(), err
}
