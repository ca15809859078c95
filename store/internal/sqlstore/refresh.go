package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/record"
)

// refreshPages and refreshBytes limit one transaction of Refresh, so that other transactions
// can run in between.
const (
	refreshPages = 200
	refreshBytes = 4 << 20
)

// Refresh implements [store.Publication].
func (p *Publication) Refresh(ctx context.Context, l store.Lease, limit int, progress func(done, total int)) (more bool, err error) {
	if err = p.touch(ctx); err == nil {
		more, err = p.refresh(ctx, l, limit, progress)
	}
	return more, wrap("refresh "+p.what, err)
}

func (p *Publication) refresh(ctx context.Context, l store.Lease, limit int, progress func(done, total int)) (more bool, err error) {
	r := &refresh{Publication: p, site: &log{store: p.store, id: p.log.site}, lease: l, target: -1}
	for total, stale := 0, 0; !r.complete; {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		q := p.store.db.Reader(ctx)
		g, err := p.generation(q)
		if err != nil {
			return false, err
		}
		site, err := r.site.state(q)
		if err == nil && r.target < 0 {
			r.target = site.seq
			err = q.Row("SELECT CAST(coalesce(sum(pages), 0) AS BIGINT) FROM section WHERE log = ?", []any{r.site.id}, &total)
		}
		if err != nil {
			return false, err
		}
		switch {
		case g.stage == copying:
			err = r.copy(ctx, g)
		case g.stage == comparing && g.position > 0:
			err = r.compare(ctx, q, g)
		case g.stage == comparing, g.position < site.horizon:
			err = r.startComparing(ctx, g, site.seq)
		default:
			if r.done == 0 && limit > 0 {
				err = q.Row("SELECT coalesce(min(seq), ?) FROM moment WHERE log = ? AND seq >= ?", []any{site.seq, r.site.id, g.position + int64(limit)}, &r.target)
			}
			// An interrupted Refresh may have skipped entries that are superseded at or before its
			// target, which after contains. Continue at least to that target.
			before, _ := strconv.ParseInt(g.after, 10, 64)
			r.target = max(r.target, before)
			if r.done == 0 {
				total, more = int(r.target-g.position), limit > 0 && r.target < site.seq
			}
			if err == nil {
				err = r.replay(ctx, q, g)
			}
		}
		if errors.Is(err, errStale) && stale < 3 {
			// Start over from the current state.
			stale++
			limit, more = 0, false
			if r.target = site.seq; g.stage == comparing {
				err = r.startComparing(ctx, g, site.seq)
			} else {
				err = nil
			}
		}
		if err != nil {
			return false, err
		}
		if progress != nil && r.done > 0 {
			progress(min(r.done, total), total)
		}
	}
	return more, nil
}

// errStale is the error of a read of rows that Compact has dropped from the site's log.
var errStale = millrace.Coded("store-damaged", fmt.Errorf("%w: the content of an entry is missing", millrace.ErrInvalid))

// refresh is one call of Refresh.
type refresh struct {
	*Publication
	site     *log
	lease    store.Lease
	target   int64 // sequence number to reach in the site's log; -1 = unknown
	done     int   // finished pages
	complete bool
	now      time.Time // time of the batch
}

// item is the update of one page in a publication.
type item struct {
	old  *row
	new  *row
	out  record.Outcome
	tags map[string]string // tag values by protocol, or nil if unchanged
}

// write runs f in a transaction if the generation has not changed since it was read. It then
// writes the generation's row.
func (r *refresh) write(ctx context.Context, was generation, g *generation, f func(w *work) error) error {
	return r.change(ctx, r.lease, func(w *work) error {
		is, err := r.generation(w)
		if err != nil {
			return err
		}
		if is.stage != was.stage || is.position != was.position || is.after != was.after {
			return millrace.Coded("refresh-busy", fmt.Errorf("%w: another process is refreshing it", millrace.ErrConflict))
		}
		if err := f(w); err != nil {
			return err
		}
		switch {
		case g.stage == replaying && g.position < r.target:
			g.after = strconv.FormatInt(r.target, 10)
		case g.stage == replaying:
			g.after = ""
			if g.head < w.seq && w.seq > 0 {
				if err := w.mark(); err != nil {
					return err
				}
			}
			g.head, r.complete = w.seq, true
			if was.head < 0 && g.parent != 0 {
				if err := w.Exec("UPDATE publication SET forked = TRUE WHERE id = ?", g.parent); err != nil {
					return err
				}
			}
		}
		if err := w.countTags(r.complete); err != nil {
			return err
		}
		return w.Exec("UPDATE publication SET stage = ?, after = ?, position = ?, head = ? WHERE id = ?", g.stage, g.after, g.position, g.head, g.id)
	})
}

// startComparing begins a comparison with the site's pages at a sequence number.
func (r *refresh) startComparing(ctx context.Context, was *generation, at int64) error {
	g := *was
	g.stage, g.after, g.position = comparing, "", at
	if at == 0 {
		g.stage = replaying // nothing to compare
	}
	return r.write(ctx, *was, &g, func(*work) error { return nil })
}

// compare compares the next pages of the site and of the publication, in order of
// path, and deletes pages that the site does not have.
func (r *refresh) compare(ctx context.Context, q Querier, was *generation) error {
	g := *was
	site, full, err := r.siteRows(q, g.position, `log = ? AND url > ? AND until > ? AND id <= ? AND kind < 3 ORDER BY url`, "INDEXED BY entry_url",
		r.site.id, g.after, g.position, r.site.entryID(g.position))
	if err != nil {
		return err
	}
	bound := "" // no upper bound
	if full {
		bound = site[len(site)-1].url
	}
	own, err := column[string](q, `SELECT url FROM entry INDEXED BY entry_url
		WHERE log = ? AND url > ? AND until = 17179869183 AND kind < 3 ORDER BY url LIMIT ?`, r.id, g.after, refreshPages)
	if err != nil {
		return err
	}
	if len(own) == refreshPages && (bound == "" || own[len(own)-1] < bound) {
		bound = own[len(own)-1]
	}
	pages := make(map[string]row)
	for _, s := range site {
		pages[s.url] = s
	}
	urls := own
	for _, s := range site {
		urls = append(urls, s.url)
	}
	slices.Sort(urls)
	urls = slices.Compact(urls)
	var rows []row
	for _, url := range urls {
		if bound != "" && url > bound {
			break
		}
		s := pages[url]
		s.url = url
		rows = append(rows, s)
	}
	if g.after = bound; bound == "" {
		g.stage = replaying
	}
	return r.take(ctx, q, was, &g, rows)
}

// replay processes the next entries of the site's log.
func (r *refresh) replay(ctx context.Context, q Querier, was *generation) error {
	g := *was
	rows, full, err := r.siteRows(q, r.target, "id > ? AND id <= ? AND until > ? ORDER BY id", "", r.site.entryID(g.position), r.site.entryID(r.target), r.target)
	if err != nil {
		return err
	}
	if g.position = max(r.target, g.position); full {
		g.position = rows[len(rows)-1].seq
	}
	if len(rows) == 0 && was.position == g.position {
		st, err := r.state(q)
		if r.complete = st.seq == g.head; err != nil || r.complete {
			return err
		}
	}
	return r.take(ctx, q, was, &g, rows)
}

// siteRows reads the entries of the site at a sequence number, with the compressed frames of their
// blocks. full reports whether more entries may follow.
func (r *refresh) siteRows(q Querier, at int64, where, index string, args ...any) (rows []row, full bool, err error) {
	size := 0
	err = q.Rows(`SELECT id, kind, modified, body, url, meta, hint, (SELECT data FROM body WHERE id = entry.body) FROM entry `+index+`
		WHERE `+where+` LIMIT ?`, append(args, refreshPages), func(scan Scanner) error {
		var s row
		if err := scan(&s.seq, &s.kind, &s.Modified, &s.body, &s.url, &s.Meta, &s.Hint, &s.Blocks); err != nil {
			return err
		}
		s.seq &= forever
		s.Present = s.kind < deleted
		if s.Present && (s.Meta == nil || s.body != 0 && s.Blocks == nil) {
			return errStale
		}
		rows = append(rows, s)
		if size += len(s.Meta) + len(s.Blocks); size > refreshBytes {
			full = true
			return ErrEnough
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	// Compact may have dropped rows during the read.
	st, err := r.site.state(q)
	if err == nil && st.floor > at {
		err = errStale
	}
	return rows, full || len(rows) == refreshPages, err
}

// take computes the publication's entries for rows of the site, and writes them in one
// transaction.
func (r *refresh) take(ctx context.Context, q Querier, was, g *generation, rows []row) error {
	items := make([]item, 0, len(rows))
	urls := make([]string, len(rows))
	for i := range rows {
		urls[i] = rows[i].url
	}
	olds, err := r.currents(q, urls)
	if err == nil {
		r.now, err = r.store.clock(q)
	}
	if err != nil {
		return err
	}
	for i := range rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		it, err := r.show(q, olds[rows[i].url], &rows[i], was.stage == comparing)
		if err != nil {
			return fmt.Errorf("%s: %w", rows[i].url, err)
		}
		if it != nil {
			items = append(items, *it)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	r.done += len(rows)
	return r.write(ctx, *was, g, func(w *work) error {
		if err := w.beginTags(&r.config, items); err != nil {
			return err
		}
		if err := w.requireBodies(items); err != nil {
			return err
		}
		for i := range items {
			if err := r.enter(w, g, &items[i]); err != nil {
				return fmt.Errorf("%s: %w", items[i].new.url, err)
			}
		}
		if err := w.flushEntries(); err != nil {
			return err
		}
		return w.flushTags()
	})
}

// requireBodies returns errStale if Compact has dropped a body that the entries need.
func (w *work) requireBodies(items []item) error {
	need := make(map[int64]bool)
	for _, it := range items {
		if it.out == record.Changed && it.new.body != 0 {
			need[it.new.body] = true
		}
	}
	found, err := column[int64](w, "SELECT id FROM body WHERE id = ANY(?)", slices.Sorted(maps.Keys(need)))
	if err == nil && len(found) < len(need) {
		err = errStale
	}
	return err
}

// show returns the update of one page, or nil if the page is unchanged. If comparing is set, show
// also returns updates of unchanged pages that are visible, because their tags may have changed.
func (r *refresh) show(q Querier, old, site *row, comparing bool) (_ *item, err error) {
	if len(site.Blocks) > 0 {
		if site.Blocks, err = r.store.decode(q, site.Blocks); err != nil {
			return nil, err
		}
	}
	if old.Blocks = []byte("other"); old.body == site.body {
		old.Blocks = site.Blocks
	}
	it := &item{old: old, new: &row{url: site.url, body: site.body}}
	var page *millrace.Page
	it.new.Entry, page, it.out, err = record.Show(old.Entry, site.Entry, &r.config, r.names, site.url, r.now)
	if err != nil {
		return nil, err
	}
	if it.new.Blocks, site.Blocks = nil, nil; page == nil {
		it.new.body = 0
	}
	if it.out == record.Same && (page == nil || !comparing) {
		return nil, nil
	}
	if page != nil {
		it.tags = record.Tags(&r.config, page, r.store.log)
	}
	return it, nil
}

// enter writes the new entry of a page, and its tags.
func (r *refresh) enter(w *work, g *generation, it *item) error {
	seq, modified := max(it.old.seq, g.fork+1), it.old.Modified
	if it.out == record.Changed {
		if err := w.enter(it.old, it.new); err != nil {
			return err
		}
		seq, modified = it.new.seq, it.new.Modified
	}
	if !it.new.Present {
		for proto := range r.protocols {
			if err := w.endTag(proto, it.new.url, seq); err != nil {
				return err
			}
		}
		return r.updateRivals(w, it.new.url, seq)
	}
	for _, t := range r.config.Taggers {
		row := &tagRow{protocol: t.Protocol, url: it.new.url, seq: seq, modified: modified, value: it.tags[t.Protocol]}
		if row.value != "" {
			var err error
			if row.n, err = w.ordinal(t, it.new.url); err != nil {
				return err
			}
		}
		if it.old.seq == 0 { // without an entry, the page has no tags, because Compact drops tags first
			w.addTag(row)
		} else if err := w.setTag(row); err != nil {
			return err
		}
	}
	if it.out == record.Changed && it.new.kind == added {
		return r.updateRivals(w, it.new.url, seq)
	}
	return nil
}
