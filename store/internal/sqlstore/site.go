package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// Sites implements [store.Store].
func (s *Store) Sites(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		names, err := column[string](s.db.Reader(ctx), "SELECT name FROM site JOIN log USING (id) WHERE seq > 0 ORDER BY name")
		if err != nil {
			yield("", wrap("list the sites of store "+s.name, err))
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
		return nil, wrap("site "+name+" of store "+s.name, err)
	}
	return site, nil
}

func (s *Store) site(ctx context.Context, name, base string) (*Site, error) {
	if name == "" {
		return nil, fmt.Errorf("%w: the name is empty", millrace.ErrInvalid)
	}
	site := &Site{log: &log{store: s, what: "site " + name, epoch: s.epoch}, name: name}
	err := s.db.Reader(ctx).Row("SELECT id FROM site WHERE name = ?", []any{name}, &site.id)
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
		err = s.db.Write(ctx, Lock{Table: LockSites}, func(t Tx) error {
			err := t.Row("SELECT id FROM site WHERE name = ?", []any{name}, &site.id)
			if !absent(err) {
				return err
			}
			if site.id, err = newLog(t, 0); err != nil {
				return err
			}
			if err := t.Exec("INSERT INTO site (id, name) VALUES (?, ?)", site.id, name); err != nil {
				return err
			}
			return t.Exec("INSERT INTO usage (site, next, dropped) VALUES (?, 1, 0)", site.id)
		})
	}
	site.site = site.id
	return site, err
}

// newLog creates a log of a site, or the log of a new site if site is 0.
func newLog(t Tx, site int64) (id int64, err error) {
	if err = t.Row("INSERT INTO log (site) VALUES (?) RETURNING id", []any{site}, &id); err == nil && site == 0 {
		err = t.Exec("UPDATE log SET site = id WHERE id = ?", id)
	}
	return id, err
}

// publishedBase returns the base of the newest edition of a site.
func (s *Store) publishedBase(ctx context.Context, site int64) (string, error) {
	var state []byte
	err := s.db.Reader(ctx).Row(`SELECT state FROM published WHERE log IN (SELECT id FROM log WHERE site = ?) AND state IS NOT NULL
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
	lease store.Lease // lease that Apply requires; zero = not checked
	// ending records the result of a turn when a batch contains a checkpoint. If nil, there is no turn.
	ending func(t Tx, now time.Time) error
}

var _ store.Site = (*Site)(nil)

// Fenced implements [store.Site].
func (s *Site) Fenced(l store.Lease) store.Site { return &Site{s.log, s.name, l, nil} }

// Ending implements [store.Site].
func (s *Site) Ending(l store.Lease, turn string, r store.TurnResult) store.Site {
	return &Site{s.log, s.name, l, func(t Tx, now time.Time) error {
		err := endTurn(t, turn, r, now)
		if id, _ := groupOf(l); err == nil {
			err = t.Exec(requeueGroups+" WHERE id = ?", id)
		}
		return err
	}}
}

// Head implements [store.Site].
func (s *Site) Head(ctx context.Context) (v millrace.View, err error) {
	err = s.store.db.Snapshot(ctx, func(q Querier) error {
		st, err := s.state(q)
		if err == nil {
			v, err = s.view(q, st.seq)
		}
		return err
	})
	if err != nil {
		return nil, wrap("head of "+s.what, err)
	}
	return v, nil
}

// HeadCursor implements [store.Site].
func (s *Site) HeadCursor(ctx context.Context) (millrace.Cursor, error) {
	st, err := s.state(s.store.db.Reader(ctx))
	if err != nil {
		return "", wrap("head of "+s.what, err)
	}
	return millrace.Site{Epoch: s.epoch}.At(uint64(st.seq)), nil
}

// HTMLSizes implements [store.Site].
func (s *Site) HTMLSizes(ctx context.Context, urls []string) ([]millrace.HTMLSize, error) {
	paths := make([]string, len(urls))
	for i, url := range urls {
		paths[i] = s.names.Path(url)
	}
	found := make(map[string]millrace.HTMLSize)
	err := s.store.db.Reader(ctx).Rows("SELECT url, html_bytes, html_received FROM entry WHERE log = ? AND until = 17179869183 AND kind < 3 AND url = ANY(?)",
		[]any{s.id, paths}, func(scan Scanner) error {
			var url string
			var size millrace.HTMLSize
			err := scan(&url, &size.Bytes, &size.Received)
			found[url] = size
			return err
		})
	if err != nil {
		return nil, wrap("HTML sizes of pages of "+s.what, err)
	}
	sizes := make([]millrace.HTMLSize, len(urls))
	for i, path := range paths {
		sizes[i] = found[path]
	}
	return sizes, nil
}

// MeanHTMLSize implements [store.Site].
func (s *Site) MeanHTMLSize(ctx context.Context) (mean millrace.HTMLSize, pages int64, err error) {
	// The index contains all columns of the query.
	const query = `SELECT count(*), CAST(coalesce(sum(html_bytes), 0) AS BIGINT), CAST(coalesce(sum(html_received), 0) AS BIGINT), count(CASE WHEN html_received > 0 THEN 1 END)
		FROM entry INDEXED BY entry_html WHERE log = ? AND html_bytes > 0 AND until = 17179869183 AND kind < 3`
	var received int64
	err = s.store.db.Reader(ctx).Row(query, []any{s.id}, &pages, &mean.Bytes, &mean.Received, &received)
	if err != nil {
		return mean, 0, wrap("mean HTML size of the pages of "+s.what, err)
	}
	mean.Bytes /= max(pages, 1)
	mean.Received /= max(received, 1)
	return mean, pages, nil
}
