package sqlstore

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// firstChunk is the number of rows of the first read. It is small, because many callers need few
// rows. chunk is the maximum number of rows of later reads. A read ends when it exceeds chunkBytes.
const (
	firstChunk = 32
	chunk      = 256
	chunkBytes = 1 << 20
)

// view is a log at one sequence number.
type view struct {
	log  *log
	seq  int64
	info millrace.Site
}

var _ millrace.View = (*view)(nil)

// view returns the view at a sequence number. The number must not be below the floor. The cost grows
// with the number of changes since then.
func (l *log) view(q Querier, seq int64) (*view, error) {
	st, err := l.state(q)
	if err != nil {
		return nil, err
	}
	info, err := l.describe(q, st, seq)
	return &view{l, seq, info}, err
}

// describe returns the description of the site at a sequence number.
func (l *log) describe(q Querier, st logState, seq int64) (millrace.Site, error) {
	info := millrace.Site{Base: l.names.Base, EndpointBase: l.docs, Epoch: l.epoch, Earlier: l.earlier, Seq: uint64(seq)}
	counts := make(map[string]int)
	add := func(sign int) func(scan Scanner) error {
		return func(scan Scanner) error {
			var name string
			var n int
			err := scan(&name, &n)
			counts[name] += sign * n
			return err
		}
	}
	var at int64
	var tags []byte
	var tagged map[string]int
	err := q.Row("SELECT time, tags FROM moment WHERE log = ? AND seq <= ? ORDER BY seq DESC LIMIT 1", []any{l.id, seq}, &at, &tags)
	if err == nil {
		err = json.Unmarshal(tags, &tagged)
	}
	if err == nil || absent(err) {
		err = q.Rows("SELECT name, pages FROM section WHERE log = ?", []any{l.id}, add(1))
	}
	maps.DeleteFunc(tagged, func(proto string, _ int) bool { return !l.protocols[proto] })
	if seq == st.seq {
		at = st.time
	} else if err == nil {
		err = q.Rows(`SELECT section, count(*) FROM entry WHERE id > ? AND id <= ? AND kind < 3 AND until > ? GROUP BY section`,
			[]any{l.entryID(seq), l.entryID(st.seq), st.seq}, add(-1))
		if err == nil {
			err = q.Rows(`SELECT section, count(*) FROM entry WHERE log = ? AND until < 17179869183 AND until > ? AND until <= ?
				AND id <= ? AND kind < 3 GROUP BY section`, []any{l.id, seq, st.seq, l.entryID(seq)}, add(1))
		}
	}
	if err != nil {
		return info, err
	}
	if at != 0 {
		info.Time = time.UnixMilli(at).UTC()
	}
	page, meta, err := l.home(q, seq)
	var title []byte
	if err == nil {
		err = q.Row("SELECT value FROM state JOIN site ON namespace = name WHERE site.id = ? AND key = ?", []any{l.site, store.TitleKey}, &title)
	}
	if err == nil || absent(err) {
		err = record.Describe(&info, counts, tagged, page, meta, title)
	}
	return info, err
}

// home returns the home page at a sequence number: the page at "/", or the page to which "/"
// redirects according to a source. If there is no home page, path is "".
func (l *log) home(q Querier, seq int64) (path string, meta []byte, err error) {
	path = "/"
	for range record.MaxRedirects {
		err = q.Row(`SELECT meta FROM entry WHERE log = ? AND url = ? AND until > ? AND id <= ? AND kind < 3 ORDER BY until LIMIT 1`,
			[]any{l.id, path, seq, l.entryID(seq)}, &meta)
		if !absent(err) {
			return path, meta, err
		}
		err = q.Row(`SELECT identity FROM memory WHERE source IN (SELECT id FROM source WHERE site = ?)
			AND url IN (?, ?) AND identity IS NOT NULL AND mute = TRUE LIMIT 1`,
			[]any{l.site, path, l.names.Absolute(path)}, &path)
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

// rowColumns takes one argument: whether to read the compressed blocks.
const rowColumns = "(SELECT data FROM body WHERE body.id = entry.body AND ?), id, rank, modified, body, url, revision, meta"

func (r *row) scan(scan Scanner) error {
	r.Present = true
	err := scan(&r.Blocks, &r.seq, &r.rank, &r.Modified, &r.body, &r.url, &r.Revision, &r.Meta)
	r.seq &= forever
	return err
}

// entry returns the entry of a page in the view. If bodies is set, the entry includes its
// compressed blocks.
func (v *view) entry(ctx context.Context, path string, bodies bool) (r row, err error) {
	q := "SELECT " + rowColumns + " FROM entry WHERE log = ? AND url = ? AND until > ? AND id <= ? AND kind < 3 ORDER BY until LIMIT 1"
	err = r.scan(func(dest ...any) error {
		return v.log.store.db.Reader(ctx).Row(q, []any{bodies, v.log.id, path, v.seq, v.log.entryID(v.seq)}, dest...)
	})
	if absent(err) || err == nil && path == "" {
		if err := v.checkCompacted(ctx); err != nil {
			return r, err
		}
		return r, millrace.ErrNotFound
	}
	if err == nil && r.Meta == nil {
		return r, v.gone()
	}
	return r, err
}

// gone returns the error of a view that Compact has made incomplete.
func (v *view) gone() error {
	return fmt.Errorf("%w: the view of sequence number %d was compacted", millrace.ErrConflict, v.seq)
}

// checkCompacted returns an error if Compact may have dropped rows of the view. Callers use it to
// find out why a row is missing.
func (v *view) checkCompacted(ctx context.Context) error {
	var floor int64
	err := v.log.store.db.Reader(ctx).Row("SELECT floor FROM log WHERE id = ?", []any{v.log.id}, &floor)
	if absent(err) || err == nil && floor > v.seq {
		err = v.gone()
	}
	return err
}

// page returns the page of an entry. bodies reports whether the entry was read with its blocks.
func (v *view) page(ctx context.Context, r row, bodies bool) (_ *millrace.Page, err error) {
	if bodies && r.body != 0 {
		if r.Blocks == nil {
			return nil, v.gone()
		}
		if r.Blocks, err = v.log.store.decode(v.log.store.db.Reader(ctx), r.Blocks); err != nil {
			return nil, err
		}
	}
	return r.View(v.log.names, r.url)
}

// Page implements [millrace.Source].
func (v *view) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	path := v.log.names.Path(have.URL)
	r, err := v.entry(ctx, path, have.Version == "")
	if err == nil && have.Version != "" {
		if have.Version == hex.EncodeToString(r.Revision) {
			err = millrace.ErrUnmodified
		} else {
			r, err = v.entry(ctx, path, true)
		}
	}
	var p *millrace.Page
	if err == nil {
		p, err = v.page(ctx, r, true)
	}
	if err != nil {
		return nil, wrap("page "+have.URL, err)
	}
	return p, nil
}

// Tag implements [millrace.View].
func (v *view) Tag(ctx context.Context, proto, url string) (millrace.Tag, error) {
	path := v.log.names.Path(url)
	var t tagRow
	var stored []byte
	err := errNoRow
	if v.log.protocols[proto] {
		err = v.log.store.db.Reader(ctx).Row(`SELECT until, n, modified, named, value FROM tag
			WHERE log = ? AND protocol = ? AND url = ? AND seq <= ? ORDER BY seq DESC LIMIT 1`,
			[]any{v.log.id, proto, path, v.seq}, &t.until, &t.n, &t.modified, &t.named, &stored)
	}
	if err == nil {
		t.value, err = v.log.store.decodeTag(v.log.store.db.Reader(ctx), stored)
	}
	if absent(err) || err == nil && t.until <= v.seq {
		if err = v.checkCompacted(ctx); err == nil {
			err = millrace.ErrNotFound
			if t.named {
				err = millrace.ErrGone
			}
		}
	}
	if err != nil {
		return millrace.Tag{}, wrap("tag of "+url+" in "+proto, err)
	}
	return millrace.Tag{URL: v.log.names.Absolute(path), Value: t.value, N: t.n, Modified: record.Instant(t.modified)}, nil
}

// SeqAt implements [millrace.View].
func (v *view) SeqAt(ctx context.Context, t time.Time) (uint64, error) {
	seq, err := v.log.seqAt(v.log.store.db.Reader(ctx), v.seq, t)
	if err != nil {
		return 0, wrap("sequence number at "+t.Format(time.RFC3339), err)
	}
	return uint64(seq), nil
}

// seqAt returns the last sequence number up to limit that was visible at a time.
func (l *log) seqAt(q Querier, limit int64, t time.Time) (seq int64, err error) {
	err = q.Row("SELECT seq FROM moment WHERE log = ? AND time <= ? AND seq <= ? ORDER BY time DESC LIMIT 1", []any{l.id, t.UnixMilli(), limit}, &seq)
	if absent(err) {
		return 0, nil
	}
	return seq, err
}
