package sqlite

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/url"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
)

// chunk is how many rows are read at once; chunkBytes is where it stops
// earlier.
const (
	chunk      = 256
	chunkBytes = 1 << 20
)

// view is a site at one sequence number.
type view struct {
	site *Site
	seq  int64
	info millrace.Site
}

var _ millrace.View = (*view)(nil)

// Head implements [store.Site].
func (s *Site) Head(ctx context.Context) (millrace.View, error) {
	v := &view{site: s}
	err := s.store.read.snapshot(ctx, func(q querier) error {
		st, err := s.state(q)
		if err != nil {
			return err
		}
		if st.fingerprint != s.fingerprint {
			return fmt.Errorf("%w: its pages were derived by another configuration, derive them first", millrace.ErrConflict)
		}
		v.seq = st.seq
		v.info, err = s.describe(q, st, st.seq)
		return err
	})
	if err != nil {
		return nil, explain("head of site "+s.name, err)
	}
	return v, nil
}

// describe makes the description of the site at a sequence number that is not
// below the floor. It costs as much as has changed since.
func (s *Site) describe(q querier, st state, seq int64) (millrace.Site, error) {
	info := millrace.Site{Base: s.config.Base, Docs: s.config.Docs, Epoch: s.store.epoch, Seq: uint64(seq)}
	counts := make(map[string]int)
	add := func(sign int) func(scan scanner) error {
		return func(scan scanner) error {
			var name string
			var n int
			err := scan(&name, &n)
			counts[name] += sign * n
			return err
		}
	}
	at := st.time
	err := q.rows("SELECT name, pages FROM section WHERE site = ?", []any{s.id}, add(1))
	if err == nil && seq < st.seq {
		at = 0
		err = q.row("SELECT time FROM entry WHERE id <= ? AND id > ? ORDER BY id DESC LIMIT 1",
			[]any{s.entryID(seq), s.entryID(0)}, &at)
		if err == nil || absent(err) {
			err = q.rows(`SELECT section, count(*) FROM entry WHERE id > ? AND id <= ? AND kind < 3 AND until > ? GROUP BY section`,
				[]any{s.entryID(seq), s.entryID(st.seq), st.seq}, add(-1))
		}
		if err == nil {
			err = q.rows(`SELECT section, count(*) FROM entry WHERE site = ? AND until < 1099511627775 AND until > ? AND until <= ?
				AND id <= ? AND kind < 3 GROUP BY section`, []any{s.id, seq, st.seq, s.entryID(seq)}, add(1))
		}
	}
	if err != nil {
		return info, err
	}
	for name, n := range counts {
		info.Pages += n
		if name != "" && n > 0 {
			info.Sections = append(info.Sections, millrace.Section{Name: name, Pages: n})
		}
	}
	sort.Slice(info.Sections, func(i, j int) bool { return info.Sections[i].Name < info.Sections[j].Name })
	if at != 0 {
		info.Time = time.UnixMilli(at).UTC()
	}
	if u, err := url.Parse(s.config.Base); err == nil {
		info.Title = u.Host
	}
	page, meta, err := s.home(q, seq)
	if page == "" || err != nil {
		return info, err
	}
	home, err := decode(meta, nil)
	if err != nil {
		return info, err
	}
	info.Home = page
	if home.Title != "" {
		info.Title = home.Title
	}
	info.Language = home.Language
	return info, nil
}

// maxRedirects is how many redirects in a row lead to a home page.
const maxRedirects = 5

// home finds the home page at a sequence number: that at "/", or the one that a
// source has found where "/" redirects to. The identity "" means none.
func (s *Site) home(q querier, seq int64) (identity string, meta []byte, err error) {
	identity = "/"
	for range maxRedirects {
		err = q.row(`SELECT meta FROM entry WHERE site = ? AND url = ? AND until > ? AND id <= ? AND kind < 3 ORDER BY until LIMIT 1`,
			[]any{s.id, identity, seq, s.entryID(seq)}, &meta)
		if !absent(err) {
			return identity, meta, err
		}
		err = q.row(`SELECT identity FROM memory WHERE source IN (SELECT id FROM source WHERE site = ?)
			AND url IN (?, ?) AND identity IS NOT NULL AND mute = 1 LIMIT 1`,
			[]any{s.id, identity, s.absolute(identity)}, &identity)
		if absent(err) {
			return "", nil, nil
		} else if err != nil {
			return "", nil, err
		}
	}
	return "", nil, nil
}

// Site implements [millrace.View].
func (v *view) Site() millrace.Site {
	info := v.info
	info.Sections = append([]millrace.Section(nil), info.Sections...)
	return info
}

// row is one entry as a view reads it.
type row struct {
	seq, rank, modified, body int64
	url                       string
	revision, meta            []byte
}

const rowColumns = "id, rank, modified, body, url, revision, meta"

func (r *row) scan(scan scanner) error {
	err := scan(&r.seq, &r.rank, &r.modified, &r.body, &r.url, &r.revision, &r.meta)
	r.seq &= forever
	return err
}

// entry finds the entry of a page that the view shows.
func (v *view) entry(ctx context.Context, identity string) (r row, err error) {
	q := "SELECT " + rowColumns + " FROM entry WHERE site = ? AND url = ? AND until > ? AND id <= ? AND kind < 3 ORDER BY until LIMIT 1"
	err = r.scan(func(dest ...any) error {
		return v.site.store.read.row(ctx, q, []any{v.site.id, identity, v.seq, v.site.entryID(v.seq)}, dest...)
	})
	if absent(err) || err == nil && identity == "" {
		if err := v.whole(ctx); err != nil {
			return r, err
		}
		return r, millrace.ErrNotFound
	}
	if err == nil && r.meta == nil {
		return r, v.gone()
	}
	return r, err
}

// gone is the error of a view that outlived what Compact keeps.
func (v *view) gone() error {
	return fmt.Errorf("%w: the view of sequence number %d has been compacted away", millrace.ErrConflict, v.seq)
}

// whole gives an error if Compact may have taken something from the view: what
// it does not find may then have been there.
func (v *view) whole(ctx context.Context) error {
	var floor int64
	err := v.site.store.read.row(ctx, "SELECT floor FROM site WHERE id = ?", []any{v.site.id}, &floor)
	if err == nil && floor > v.seq {
		err = v.gone()
	}
	return err
}

// page makes the page of an entry.
func (v *view) page(ctx context.Context, r row, bodies bool) (*millrace.Page, error) {
	var blocks []byte
	if bodies && r.body != 0 {
		err := v.site.store.read.row(ctx, "SELECT data FROM body WHERE id = ?", []any{r.body}, &blocks)
		if absent(err) {
			return nil, v.gone()
		} else if err != nil {
			return nil, err
		}
	}
	p, err := decode(r.meta, blocks)
	if err != nil {
		return nil, err
	}
	p.URL = v.site.absolute(r.url)
	p.Modified = instant(r.modified)
	p.Known |= millrace.FieldModified
	p.Version = hex.EncodeToString(r.revision)
	return p, nil
}

// Page implements [millrace.Source].
func (v *view) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	r, err := v.entry(ctx, v.site.identity(have.URL))
	if err == nil && have.Version != "" && have.Version == hex.EncodeToString(r.revision) {
		err = millrace.ErrUnmodified
	}
	var p *millrace.Page
	if err == nil {
		p, err = v.page(ctx, r, true)
	}
	if err != nil {
		return nil, explain("page "+have.URL, err)
	}
	return p, nil
}

// Tag implements [millrace.View].
func (v *view) Tag(ctx context.Context, room, url string) (millrace.Tag, error) {
	identity := v.site.identity(url)
	var t tagRow
	err := errNoRow
	if v.site.rooms[room] {
		err = v.site.store.read.row(ctx, `SELECT until, n, modified, named, value FROM tag
			WHERE site = ? AND room = ? AND url = ? AND seq <= ? ORDER BY seq DESC LIMIT 1`,
			[]any{v.site.id, room, identity, v.seq}, &t.until, &t.n, &t.modified, &t.named, &t.value)
	}
	if absent(err) || err == nil && t.until <= v.seq {
		if err = v.whole(ctx); err == nil {
			err = millrace.ErrNotFound
			if t.named {
				err = millrace.ErrGone
			}
		}
	}
	if err != nil {
		return millrace.Tag{}, explain("tag of "+url+" in "+room, err)
	}
	return millrace.Tag{URL: v.site.absolute(identity), Value: t.value, N: t.n, Modified: instant(t.modified)}, nil
}

// SeqAt implements [millrace.View].
func (v *view) SeqAt(ctx context.Context, t time.Time) (uint64, error) {
	seq, err := v.site.seqAt(readQuerier{ctx, v.site.store.read}, v.seq, t)
	if err != nil {
		return 0, explain("sequence number at "+t.Format(time.RFC3339), err)
	}
	return uint64(seq), nil
}

// seqAt gives the last sequence number up to limit with a commit time not
// after t. Times rise with the numbers, and so a few look-ups find it, whatever
// Compact has taken from between.
func (s *Site) seqAt(q querier, limit int64, t time.Time) (int64, error) {
	ms := t.UnixMilli()
	// The first entry after lo, if it is not too late.
	next := func(lo int64) (seq int64, ok bool, err error) {
		var at int64
		err = q.row("SELECT id, time FROM entry WHERE id > ? AND id <= ? ORDER BY id LIMIT 1",
			[]any{s.entryID(lo), s.entryID(limit)}, &seq, &at)
		if absent(err) {
			return 0, false, nil
		}
		return seq & forever, err == nil && at <= ms, err
	}
	lo, hi := int64(0), limit // an entry is at lo, or lo is 0; none that is in time comes after hi
	for lo < hi {
		mid := lo + (hi-lo)/2
		seq, ok, err := next(mid)
		if err != nil {
			return 0, err
		}
		if ok {
			lo = seq
			continue
		}
		hi = mid
	}
	if lo == 0 {
		return 0, nil
	}
	return lo, nil
}

// readQuerier reads without a transaction.
type readQuerier struct {
	ctx context.Context
	r   *reader
}

func (q readQuerier) row(query string, args []any, dest ...any) error {
	return q.r.row(q.ctx, query, args, dest...)
}

func (q readQuerier) rows(query string, args []any, f func(scan scanner) error) error {
	return q.r.rows(q.ctx, query, args, f)
}

// cursor gives the place in the log that a sequence number is.
func (s *Site) cursor(seq int64) millrace.Cursor {
	return millrace.Site{Epoch: s.store.epoch}.At(uint64(seq))
}

// place is the inverse of cursor. ErrConflict: it is a cursor of another store.
func (s *Site) place(c millrace.Cursor) (int64, error) {
	epoch, number, _ := strings.Cut(string(c), ":")
	seq, err := strconv.ParseInt(number, 10, 64)
	if epoch != s.store.epoch || err != nil || seq < 0 {
		return 0, fmt.Errorf("%w: cursor %q is of another store: start over", millrace.ErrConflict, c)
	}
	return seq, nil
}
