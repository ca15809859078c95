package sqlstore

import (
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store/internal/record"
)

// Scan implements [millrace.View]. If the order is not by URL, and the page After is not in the
// view, Scan yields ErrNotFound.
func (v *view) Scan(ctx context.Context, s millrace.Scan) iter.Seq2[*millrace.Page, error] {
	return func(yield func(*millrace.Page, error) bool) {
		if err := v.scan(ctx, s, yield); err != nil {
			yield(nil, wrap("scan "+v.log.what, err))
		}
	}
}

// Statements of a scan, one per order. The first argument is the argument of rowColumns. The last
// arguments are the view's sequence number as an until, the same number as an entry.id, the
// section, and the number of rows.
const (
	scanByURL = "SELECT " + rowColumns + ` FROM entry INDEXED BY entry_url
		WHERE log = ? AND url > ? AND until > ? AND id <= ? AND kind < 3 AND ? IN ('', section) ORDER BY url LIMIT ?`
	scanByPublished = "SELECT " + rowColumns + ` FROM entry INDEXED BY entry_rank
		WHERE log = ? AND (rank, url) > (?, ?) AND until > ? AND id <= ? AND kind < 3 AND ? IN ('', section) ORDER BY rank, url LIMIT ?`
	scanBySeq = "SELECT " + rowColumns + ` FROM entry
		WHERE id > ? AND id < ? AND until > ? AND id <= ? AND kind < 3 AND ? IN ('', section) ORDER BY id DESC LIMIT ?`
)

func (v *view) scan(ctx context.Context, s millrace.Scan, yield func(*millrace.Page, error) bool) error {
	var query string
	last := row{rank: -1 << 62} // position of the scan
	switch s.Order {
	case millrace.ByURL:
		query = scanByURL
	case millrace.ByPublished:
		query = scanByPublished
	case millrace.BySeq:
		query = scanBySeq
		last.seq = v.seq + 1
	default:
		return fmt.Errorf("%w: order %d", millrace.ErrInvalid, s.Order)
	}
	if s.After != "" {
		last.url = v.log.names.Path(s.After)
		if s.Order != millrace.ByURL {
			var err error
			if last, err = v.entry(ctx, last.url, false); err != nil {
				return fmt.Errorf("resume after %s: %w", s.After, err)
			}
		}
	}
	left := s.Limit
	for batch := firstChunk; ; batch = min(2*batch, chunk) {
		n := batch
		if s.Limit > 0 {
			n = min(n, left)
		}
		var args []any
		switch s.Order {
		case millrace.ByURL:
			args = []any{s.WithBlocks, v.log.id, last.url}
		case millrace.ByPublished:
			args = []any{s.WithBlocks, v.log.id, last.rank, last.url}
		case millrace.BySeq:
			args = []any{s.WithBlocks, v.log.entryID(0), v.log.entryID(last.seq)}
		}
		args = append(args, v.seq, v.log.entryID(v.seq), s.Section, n)
		rows := make([]row, 0, n)
		size := 0
		err := v.log.store.db.Reader(ctx).Rows(query, args,
			func(scan Scanner) error {
				var r row
				if err := r.scan(scan); err != nil {
					return err
				}
				if r.Meta == nil {
					return v.gone()
				}
				rows = append(rows, r)
				if size += len(r.Meta) + len(r.Blocks); size > chunkBytes {
					return ErrEnough
				}
				return nil
			})
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := ctx.Err(); err != nil {
				return err
			}
			p, err := v.page(ctx, r, s.WithBlocks)
			if err != nil {
				return err
			}
			if !yield(p, nil) {
				return nil
			}
			last = r
		}
		left -= len(rows)
		if len(rows) == 0 || s.Limit > 0 && left <= 0 || len(rows) < n && size <= chunkBytes {
			return v.checkCompacted(ctx)
		}
	}
}

// Tags implements [millrace.View].
func (v *view) Tags(ctx context.Context, proto, after string) iter.Seq2[millrace.Tag, error] {
	return func(yield func(millrace.Tag, error) bool) {
		if !v.log.protocols[proto] {
			return
		}
		last := v.log.names.Path(after)
		for n := firstChunk; ; n = min(2*n, chunk) {
			tags, stored := make([]millrace.Tag, 0, n), make([][]byte, 0, n)
			err := v.log.store.db.Reader(ctx).Rows(`SELECT url, n, modified, value FROM tag
				WHERE log = ? AND protocol = ? AND url > ? AND seq <= ? AND until > ? ORDER BY url LIMIT ?`,
				[]any{v.log.id, proto, last, v.seq, v.seq, n}, func(scan Scanner) error {
					var t millrace.Tag
					var modified int64
					var value []byte
					err := scan(&t.URL, &t.N, &modified, &value)
					t.Modified = record.Instant(modified)
					tags, stored = append(tags, t), append(stored, value)
					return err
				})
			if err != nil {
				yield(millrace.Tag{}, wrap("tags of protocol "+proto, err))
				return
			}
			for i, t := range tags {
				last = t.URL
				t.URL = v.log.names.Absolute(t.URL)
				if t.Value, err = v.log.store.decodeTag(v.log.store.db.Reader(ctx), stored[i]); err != nil {
					yield(millrace.Tag{}, wrap("tags of protocol "+proto, err))
					return
				}
				if !yield(t, nil) {
					return
				}
			}
			if len(tags) < n {
				if err := v.checkCompacted(ctx); err != nil {
					yield(millrace.Tag{}, wrap("tags of protocol "+proto, err))
				}
				return
			}
		}
	}
}

// Changes implements [millrace.Source]. It yields the changes in the log since a cursor, each page
// once with its latest change, and then a checkpoint. From the start ("") it yields every page, and
// the checkpoint is complete.
func (v *view) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		mark := millrace.Change{Kind: millrace.KindCheckpoint, Time: v.info.Time, Checkpoint: &millrace.Checkpoint{Cursor: v.info.At(uint64(v.seq))}}
		var err error
		var more bool
		if since == "" {
			mark.Checkpoint.Complete = true
			more, err = v.everything(ctx, yield)
		} else {
			more, err = v.since(ctx, since, yield)
		}
		if err != nil {
			yield(millrace.Change{}, wrap("changes of "+v.log.what, err))
		} else if more {
			yield(mark, nil)
		}
	}
}

const logColumns = `id, prev, kind, url, revision,
	(SELECT time FROM moment WHERE moment.log = entry.log AND moment.seq >= (entry.id & 17179869183) ORDER BY moment.seq LIMIT 1)`

// logged is one entry of Changes.
type logged struct {
	seq, prev, time int64
	kind            int
	url             string
	revision        []byte
}

func (l *logged) change(names record.Names) millrace.Change {
	c := millrace.Change{Kind: millrace.Put, Time: time.UnixMilli(l.time).UTC()}
	c.URL = names.Absolute(l.url)
	if l.kind == deleted {
		c.Kind = millrace.Delete
	} else {
		c.Version = hex.EncodeToString(l.revision)
	}
	return c
}

func (v *view) everything(ctx context.Context, yield func(millrace.Change, error) bool) (more bool, err error) {
	last := ""
	for {
		rows, err := v.logRows(ctx, "SELECT "+logColumns+` FROM entry INDEXED BY entry_url
			WHERE log = ? AND url > ? AND until > ? AND id <= ? AND kind < 3 ORDER BY url LIMIT ?`,
			v.log.id, last, v.seq, v.log.entryID(v.seq), chunk)
		if err != nil {
			return false, err
		}
		for _, l := range rows {
			last = l.url
			c := l.change(v.log.names)
			c.New = true
			if !yield(c, nil) {
				return false, nil
			}
		}
		if len(rows) < chunk {
			return true, v.checkCompacted(ctx)
		}
	}
}

func (v *view) since(ctx context.Context, c millrace.Cursor, yield func(millrace.Change, error) bool) (more bool, err error) {
	seq, err := v.info.SeqOf(c)
	if err != nil {
		return false, err
	}
	since := int64(seq)
	if since > v.seq {
		return false, fmt.Errorf("%w: cursor %q is ahead of this view; start over", millrace.ErrConflict, c)
	}
	last := since
	for n := firstChunk; ; n = min(2*n, chunk) {
		// Read the rows before the horizon, to detect rows that Compact has dropped.
		rows, err := v.logRows(ctx, "SELECT "+logColumns+` FROM entry
			WHERE id > ? AND id <= ? AND until > ? AND kind < 4 ORDER BY id LIMIT ?`,
			v.log.entryID(last), v.log.entryID(v.seq), v.seq, n)
		if err != nil {
			return false, err
		}
		var horizon int64
		if err := v.log.store.db.Reader(ctx).Row("SELECT horizon FROM log WHERE id = ?", []any{v.log.id}, &horizon); err != nil {
			return false, err
		}
		if since < horizon {
			return false, fmt.Errorf("%w: cursor %q is older than the log; start over", millrace.ErrConflict, c)
		}
		for _, l := range rows {
			last = l.seq
			unknown, err := v.unknownAt(ctx, l, since)
			if err != nil {
				return false, err
			}
			c := l.change(v.log.names)
			c.New = unknown // for a deletion: the page was created and deleted since the cursor
			if !yield(c, nil) {
				return false, nil
			}
		}
		if len(rows) < n {
			return true, nil
		}
	}
}

// unknownAt reports whether the page of an entry was absent at an earlier sequence number. It
// uses the first change of the page since then.
func (v *view) unknownAt(ctx context.Context, l logged, since int64) (bool, error) {
	for l.prev > since {
		err := v.log.store.db.Reader(ctx).Row("SELECT prev, kind FROM entry WHERE id = ?", []any{v.log.entryID(l.prev)}, &l.prev, &l.kind)
		if err != nil {
			return false, err
		}
	}
	return l.kind == added, nil
}

func (v *view) logRows(ctx context.Context, query string, args ...any) ([]logged, error) {
	rows := make([]logged, 0, chunk)
	err := v.log.store.db.Reader(ctx).Rows(query, args, func(scan Scanner) error {
		var l logged
		err := scan(&l.seq, &l.prev, &l.kind, &l.url, &l.revision, &l.time)
		l.seq &= forever
		rows = append(rows, l)
		return err
	})
	return rows, err
}
