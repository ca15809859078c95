package index

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/search"
)

// searches is the state shared by all searches.
type searches struct {
	analyzers sync.Pool // unused *search.Analyzer values
	mu        sync.Mutex
	languages struct { // languages of the pages
		made string
		turn int64
		list []string
	}
	model struct {
		made  string
		id    int64
		model *search.Model
	}
}

var errBuilding = fmt.Errorf("%w: the index is still being built", millrace.ErrUnavailable)

// Search answers a question about a view. It finds only pages that the view contains in the
// indexed version. If the index is older than the view, Found.Note says so. If the index is not
// complete yet, Search returns ErrUnavailable.
func (x *Index) Search(ctx context.Context, v millrace.View, q millrace.Query) (*millrace.Found, error) {
	x.used.Store(true)
	found, err := x.search(ctx, v, q)
	if damaged(err) {
		x.another.Store(errors.Is(err, errAnother))
		x.broken.Store(true) // the next Update rebuilds the file
	}
	if err != nil {
		return nil, explain("search index "+x.path, err)
	}
	return found, nil
}

// Lag returns nil if searches of a view find everything. It returns ErrUnavailable if the index is
// not complete yet, and a note like Found.Note if it is older than the view.
func (x *Index) Lag(ctx context.Context, v millrace.View) error {
	return x.read(ctx, func(c *conn) error {
		s, err := c.state()
		site := v.Site()
		switch {
		case err != nil:
			return err
		case s.stage < comparing:
			return errBuilding
		case !s.covers(&site):
			return s.when()
		}
		return nil
	})
}

func (x *Index) search(ctx context.Context, v millrace.View, q millrace.Query) (found *millrace.Found, err error) {
	s := &searching{index: x, view: v, site: v.Site(), query: q, question: x.ask(ctx, q.Text), visible: make(map[int64]bool)}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = x.read(ctx, func(c *conn) error {
		s.conn = c
		if err := s.open(); err != nil {
			return err
		}
		a, ok := x.analyzers.Get().(*search.Analyzer)
		if !ok {
			a = search.NewAnalyzer()
		}
		defer x.analyzers.Put(a)
		found, err = search.Run(ctx, s, a, q)
		return err
	})
	if found != nil && !s.covers(&s.site) {
		found.Stale = true
		if found.Note == nil {
			found.Note = s.when()
		} else {
			found.Note = fmt.Errorf("%w; %w", found.Note, s.when())
		}
	}
	return found, err
}

// searching is one search.
type searching struct {
	*conn
	state
	index      *Index
	view       millrace.View
	site       millrace.Site
	query      millrace.Query
	question   question
	statistics search.Statistics
	visible    map[int64]bool // pages looked up in the view
	texts      *texts         // texts of the page of the last hit, or nil
}

var _ search.Index = (*searching)(nil)

// maxLanguages is the maximum number of languages for which a search stems a word. The search
// finds the word only in pages of these languages.
const maxLanguages = 40

func (x *searching) open() (err error) {
	if x.state, err = x.conn.state(); err != nil {
		return err
	}
	if x.stage < comparing {
		return errBuilding
	}
	x.statistics.Passages = int(x.passages)
	if x.passages > 0 {
		x.statistics.Length = float64(x.length) / float64(x.passages)
	}
	x.statistics.Languages, err = x.languages()
	return err
}

// languages returns the languages of the site's pages, the most common first.
func (x *searching) languages() ([]string, error) {
	x.index.searches.mu.Lock()
	defer x.index.searches.mu.Unlock()
	l := &x.index.languages
	if l.made == x.made && l.turn == x.turn {
		return l.list, nil
	}
	var list []string
	err := x.rows(`SELECT count(*), lower(substr(language, 1, instr(replace(language, '_', '-') || '-', '-') - 1)) AS l
		FROM page GROUP BY l ORDER BY 1 DESC, 2 LIMIT ?`, []any{maxLanguages}, func(scan scanner) error {
		var n int
		var name string
		err := scan(&n, &name)
		list = append(list, name)
		return err
	})
	if err != nil {
		return nil, err
	}
	l.made, l.turn, l.list = x.made, x.turn, list
	return list, nil
}

// Statistics implements [search.Index].
func (x *searching) Statistics() search.Statistics { return x.statistics }

// Frequency implements [search.Index].
func (x *searching) Frequency(term string) (n int, err error) {
	err = x.row("SELECT n FROM term WHERE term = ?", []any{term}, &n)
	if absent(err) {
		return 0, nil
	}
	return n, err
}

// Terms implements [search.Index].
func (x *searching) Terms(prefix string, f func(term string, n int) bool) error {
	return x.rows("SELECT term, n FROM term WHERE term >= ? ORDER BY term", []any{prefix}, func(scan scanner) error {
		var term string
		var n int
		if err := scan(&term, &n); err != nil {
			return err
		}
		if !strings.HasPrefix(term, prefix) || !f(term, n) {
			return errEnough
		}
		return nil
	})
}

// IsVisible implements [search.Index].
func (x *searching) IsVisible(ctx context.Context, page int64) (bool, error) {
	if cached, ok := x.visible[page]; ok {
		return cached, nil
	}
	var have millrace.Ref
	if err := x.row("SELECT url, version FROM page WHERE id = ?", []any{page}, &have.URL, &have.Version); err != nil {
		return false, err
	}
	p, err := x.view.Page(ctx, have)
	visible := errors.Is(err, millrace.ErrUnmodified) || err == nil && p.Version == have.Version
	if err != nil && !visible && !errors.Is(err, millrace.ErrNotFound) {
		return false, err
	}
	x.visible[page] = visible
	return visible, nil
}

// Hit implements [search.Index].
func (x *searching) Hit(id int64, h *millrace.Hit) (language string, err error) {
	var page int64
	var ord int
	err = x.row("SELECT s.id, s.url, s.title, s.language, p.chunk, p.ord FROM passage p, page s WHERE p.id = ? AND s.id = p.page",
		[]any{id}, &page, &h.URL, &h.Title, &language, &h.Chunk, &ord)
	if err != nil {
		return "", err
	}
	if x.texts == nil || x.texts.page != page {
		if x.texts, err = x.index.textsOf(x.conn, page); err != nil {
			return "", err
		}
	}
	t, err := x.index.passage(x.conn, x.texts, ord)
	if err != nil {
		return "", err
	}
	h.URL = canon.Absolute(x.site.Base, h.URL)
	h.Type, h.Headings, h.Text = t.Type, t.Headings, t.Text
	return language, nil
}
