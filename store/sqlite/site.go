package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// Sites implements [store.Store].
func (s *Store) Sites(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		names, err := column[string](readQuerier{ctx, s.read}, "SELECT name FROM site JOIN log USING (id) WHERE seq > 0 ORDER BY name")
		if err != nil {
			yield("", explain("list the sites of store "+s.path, err))
			return
		}
		for _, name := range names {
			if !yield(name, nil) {
				return
			}
		}
	}
}

// Site implements [store.Store].
func (s *Store) Site(ctx context.Context, name, base string) (store.Site, error) {
	site, err := s.site(ctx, name, base)
	if err != nil {
		return nil, explain("site "+name+" of store "+s.path, err)
	}
	return site, nil
}

func (s *Store) site(ctx context.Context, name, base string) (*Site, error) {
	if name == "" {
		return nil, fmt.Errorf("%w: the name is empty", millrace.ErrInvalid)
	}
	site := &Site{log: &log{store: s, what: "site " + name, epoch: s.epoch}, name: name}
	err := s.read.row(ctx, "SELECT id FROM site WHERE name = ?", []any{name}, &site.id)
	switch {
	case absent(err) && base == "":
		return nil, millrace.ErrNotFound
	case err != nil && !absent(err):
		return nil, err
	case base == "" && record.IsURL(name):
		base = name
	case base == "":
		if base, err = s.publishedBase(ctx, site.id); err != nil {
			return nil, err
		}
	}
	if site.names, err = record.NewNames(name, base); err != nil {
		return nil, err
	}
	site.docs = base
	if site.id == 0 {
		err = s.writer.do(ctx, func(t *tx) error {
			err := t.row("SELECT id FROM site WHERE name = ?", []any{name}, &site.id)
			if !absent(err) {
				return err
			}
			if site.id, err = newLog(t, 0); err != nil {
				return err
			}
			return t.exec("INSERT INTO site (id, name) VALUES (?, ?)", site.id, name)
		})
	}
	site.site = site.id
	return site, err
}

// newLog creates a log of a site, or the log of a new site if site is 0.
func newLog(t *tx, site int64) (id int64, err error) {
	if err = t.row("INSERT INTO log (site) VALUES (?) RETURNING id", []any{site}, &id); err == nil && site == 0 {
		err = t.exec("UPDATE log SET site = id WHERE id = ?", id)
	}
	return id, err
}

// publishedBase returns the base of the newest edition of a site.
func (s *Store) publishedBase(ctx context.Context, site int64) (string, error) {
	var state []byte
	err := s.read.row(ctx, `SELECT state FROM published WHERE log IN (SELECT id FROM log WHERE site = ?) AND state IS NOT NULL
		ORDER BY id DESC LIMIT 1`, []any{site}, &state)
	if absent(err) {
		return "", fmt.Errorf("%w: the site has no URL and no edition", millrace.ErrNotFound)
	}
	var info millrace.Site
	if err == nil {
		err = json.Unmarshal(state, &info)
	}
	return info.Base, err
}

// Site is one site in a [Store]. It implements [store.Site].
type Site struct {
	*log
	name  string
	lease store.Lease // required by Apply; zero = not checked
}

var _ store.Site = (*Site)(nil)

// Fenced implements [store.Site].
func (s *Site) Fenced(l store.Lease) store.Site { return &Site{s.log, s.name, l} }

// Head implements [store.Site].
func (s *Site) Head(ctx context.Context) (v millrace.View, err error) {
	err = s.store.read.snapshot(ctx, func(q querier) error {
		st, err := s.state(q)
		if err == nil {
			v, err = s.view(q, st.seq)
		}
		return err
	})
	if err != nil {
		return nil, explain("head of "+s.what, err)
	}
	return v, nil
}

// HTMLSizes implements [store.Site].
func (s *Site) HTMLSizes(ctx context.Context, urls []string) ([]millrace.HTMLSize, error) {
	sizes := make([]millrace.HTMLSize, len(urls))
	for i, url := range urls {
		w := &sizes[i]
		err := s.store.read.row(ctx, "SELECT html_bytes, html_received FROM entry WHERE log = ? AND url = ? AND until = 1099511627775 AND kind < 3",
			[]any{s.id, s.names.Path(url)}, &w.Bytes, &w.Received)
		if err != nil && !absent(err) {
			return nil, explain("HTML size of "+url, err)
		}
	}
	return sizes, nil
}

// MeanHTMLSize implements [store.Site].
func (s *Site) MeanHTMLSize(ctx context.Context) (mean millrace.HTMLSize, pages int64, err error) {
	// The index covers the query.
	const query = `SELECT count(*), coalesce(sum(html_bytes), 0), coalesce(sum(html_received), 0), coalesce(sum(html_received > 0), 0)
		FROM entry INDEXED BY entry_html WHERE log = ? AND html_bytes > 0 AND until = 1099511627775 AND kind < 3`
	var received int64
	err = s.store.read.row(ctx, query, []any{s.id}, &pages, &mean.Bytes, &mean.Received, &received)
	if err != nil {
		return mean, 0, explain("mean HTML size of the pages of "+s.what, err)
	}
	mean.Bytes /= max(pages, 1)
	mean.Received /= max(received, 1)
	return mean, pages, nil
}
