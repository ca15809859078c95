package sqlite

import (
	"context"
	"slices"
	"time"
)

const (
	// tidyRows is how many blocks are looked at or dropped at once.
	tidyRows = 200
	// wideBlock is a block, in bytes, that is not joined with others.
	wideBlock = 256 << 10
	// slack is how far from now the time of an event can be that a clock has
	// given it which was right.
	slack = 24 * time.Hour
)

// Tidy implements [store.Usage].
func (s *Store) Tidy(ctx context.Context, site string, events, hours time.Time) error {
	return explain("tidy what is kept of the requests to "+site, s.tidy(ctx, site, events, hours))
}

func (s *Store) tidy(ctx context.Context, site string, events, hours time.Time) error {
	var id int64
	err := s.writer.do(ctx, func(t *tx) (err error) {
		id, err = usageSite(t, site)
		return err
	})
	for left := int64(1); err == nil && left > 0; {
		left, err = s.fold(ctx, id)
	}
	now := s.now()
	for _, step := range []func() error{
		func() error { return s.dropEvents(ctx, id, millis(events, minTime), now.Add(slack).UnixMilli()) },
		func() error { return s.joinBlocks(ctx, id) },
		func() error { return s.dropHours(ctx, id, millis(hours, minTime), now) },
		func() error { return s.cutTops(ctx, id, now) },
		func() error { return s.shrinkIfWorth(ctx) },
	} {
		if err != nil {
			return err
		}
		err = step()
	}
	return err
}

// extent is a block without what is in it.
type extent struct {
	packed
	size int64
}

// extents yields the blocks of a site that are in the sums, in their order or
// the newest first.
func (s *Store) extents(ctx context.Context, site int64, newest bool, f func(e extent) error) error {
	_, summed, err := usageState(bound{ctx, s.read}, site)
	if err != nil {
		return err
	}
	low, high, query := site<<siteBits, site<<siteBits|summed-1, "ORDER BY id"
	if newest {
		query = "ORDER BY id DESC"
	}
	for {
		var list []extent
		err := s.read.rows(ctx, "SELECT id, last, count, earliest, latest, length(data) FROM usage_event WHERE id BETWEEN ? AND ? "+query+" LIMIT ?",
			[]any{low, high, tidyRows}, func(scan scanner) error {
				var e extent
				err := scan(&e.first, &e.last, &e.count, &e.earliest, &e.latest, &e.size)
				list = append(list, e)
				return err
			})
		if err != nil {
			return err
		}
		for _, e := range list {
			if newest {
				high = e.first - 1
			} else {
				low = e.first + 1
			}
			e.first &= forever
			if e.last >= summed {
				continue
			}
			if err := f(e); err != nil {
				return err
			}
		}
		if len(list) < tidyRows {
			return nil
		}
	}
}

// bound is a reader with a context.
type bound struct {
	ctx context.Context
	r   *reader
}

func (b bound) row(query string, args []any, dest ...any) error {
	return b.r.row(b.ctx, query, args, dest...)
}

func (b bound) rows(query string, args []any, f func(scan scanner) error) error {
	return b.r.rows(b.ctx, query, args, f)
}

// dropEvents drops the events before a time, in Unix ms. One that is later than
// any right clock would have it goes with the next event after it that is not.
func (s *Store) dropEvents(ctx context.Context, site, before, future int64) error {
	var drop []extent
	gone := false // the next event whose time can be right
	flush := func() error {
		err := s.writer.do(ctx, func(t *tx) error {
			for _, e := range drop {
				if err := t.exec("DELETE FROM usage_event WHERE id = ? AND last = ?", site<<siteBits|e.first, e.last); err != nil {
					return err
				}
			}
			return nil
		})
		drop = drop[:0]
		return err
	}
	err := s.extents(ctx, site, true, func(e extent) error {
		switch {
		case e.latest < before:
			gone = true
		case e.earliest > future:
			if !gone {
				return nil
			}
		case e.earliest >= before && (e.latest <= future || !gone):
			gone = false
			return nil
		default:
			return s.rewrite(ctx, site, []extent{e}, func(r *eventRow) bool {
				if r.time <= future {
					gone = r.time < before
				}
				return !gone
			})
		}
		if drop = append(drop, e); len(drop) < tidyRows {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// joinBlocks makes few large blocks of many small ones. One is written anew
// only with others that have a quarter of its events at least, so that each
// event is written a few times in all.
func (s *Store) joinBlocks(ctx context.Context, site int64) error {
	var run []extent
	var total, largest int64
	most := int64(s.blockEvents)
	join := func(full bool) error {
		list := run
		worth := len(list) > 1 && (full || 4*(total-largest) >= largest)
		run, total, largest = nil, 0, 0
		if !worth {
			return nil
		}
		return s.rewrite(ctx, site, list, func(*eventRow) bool { return true })
	}
	err := s.extents(ctx, site, false, func(e extent) error {
		if e.count >= most/2 || e.size >= wideBlock {
			return join(true)
		}
		if total+e.count > most {
			if err := join(true); err != nil {
				return err
			}
		}
		run = append(run, e)
		total += e.count
		largest = max(largest, e.count)
		return nil
	})
	if err != nil {
		return err
	}
	return join(false)
}

// rewrite puts the events of some blocks that follow each other into as few as
// hold them. keep says which of them stay; it is asked the newest first. Blocks
// that are no longer as they were are left alone, and damaged ones, too.
func (s *Store) rewrite(ctx context.Context, site int64, list []extent, keep func(r *eventRow) bool) error {
	if err := s.coder.open(); err != nil {
		return err
	}
	return s.writer.do(ctx, func(t *tx) error {
		blocks := make([]block, len(list))
		dropped := 0
		for i := len(list) - 1; i >= 0; i-- {
			e, b := list[i], &blocks[i]
			var data []byte
			err := t.row("SELECT data FROM usage_event WHERE id = ? AND last = ?", []any{site<<siteBits | e.first, e.last}, &data)
			if absent(err) {
				return nil
			} else if err != nil {
				return err
			}
			if err = b.open(&s.coder, data); err == nil {
				err = b.read(e.first)
			}
			if damaged(err) {
				s.log.ErrorContext(ctx, "events cannot be read and stay as they are", "first", e.first, "last", e.last)
				return nil
			} else if err != nil {
				return err
			}
			for j, r := range slices.Backward(b.rows) {
				if !keep(&r) {
					b.rows[j].number = 0
					dropped++
				}
			}
		}
		packs := s.repack(blocks)
		if dropped == 0 && len(packs) >= len(list) {
			return nil
		}
		for _, e := range list {
			if err := t.exec("DELETE FROM usage_event WHERE id = ?", site<<siteBits|e.first); err != nil {
				return err
			}
		}
		for _, p := range packs {
			if err := t.exec(insertBlock, site<<siteBits|p.first, p.last, p.count, p.earliest, p.latest, p.data); err != nil {
				return err
			}
		}
		return nil
	})
}

// repack makes blocks of the events of others that have a number.
func (s *Store) repack(blocks []block) (out []packed) {
	p := newPacking(s.blockEvents, s.blockEvents)
	for i := range blocks {
		b := &blocks[i]
		for j := range b.rows {
			if b.rows[j].number == 0 {
				continue
			}
			e := b.event(&b.rows[j])
			p.add(&e, b.rows[j].number)
			if p.full() {
				out = append(out, p.pack(&s.coder))
				p = newPacking(s.blockEvents, s.blockEvents)
			}
		}
	}
	if p.count() > 0 {
		out = append(out, p.pack(&s.coder))
	}
	return out
}

// dropHours drops the sums of the hours of days that end before a time, in Unix
// ms, and of days that are still to come.
func (s *Store) dropHours(ctx context.Context, site, before int64, now time.Time) error {
	var days []int64
	err := s.read.rows(ctx, "SELECT start FROM usage_sum WHERE site = ? AND per = 24 AND hours = 1 AND (start + 24 <= ? OR start > ?)",
		[]any{site, floorDiv(before, hourMillis), floorDiv(now.Add(slack).UnixMilli(), hourMillis)}, func(scan scanner) error {
			var d int64
			err := scan(&d)
			days = append(days, d)
			return err
		})
	if err != nil {
		return err
	}
	for _, d := range days {
		err := s.writer.do(ctx, func(t *tx) error {
			err := t.exec("UPDATE usage_sum SET hours = 0 WHERE site = ? AND per = 24 AND start = ?", site, d)
			if err != nil {
				return err
			}
			return t.exec("DELETE FROM usage_sum WHERE site = ? AND per = 1 AND start >= ? AND start < ?", site, d, d+dayHours)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// cutTops leaves of each day that is over what was asked for most.
func (s *Store) cutTops(ctx context.Context, site int64, now time.Time) error {
	today := floorDiv(now.UnixMilli(), dayMillis)
	var list []topDay
	err := s.read.rows(ctx, "SELECT topic, day FROM usage_top WHERE site = ? AND over = 0 AND (day < ? OR day > ?)",
		[]any{site, today, today + 1}, func(scan scanner) error {
			var d topDay
			err := scan(&d.topic, &d.day)
			list = append(list, d)
			return err
		})
	if err != nil {
		return err
	}
	for _, d := range list {
		err := s.writer.do(ctx, func(t *tx) error {
			var data []byte
			where := []any{site, d.topic, d.day}
			if err := t.row("SELECT data FROM usage_top WHERE site = ? AND topic = ? AND day = ?", where, &data); err != nil {
				return err
			}
			rows, err := decodeTops(&s.coder, data, d.day*dayMillis)
			if damaged(err) {
				s.log.ErrorContext(ctx, "what was asked for most cannot be read and begins anew", "days since 1970", d.day)
			} else if err != nil {
				return err
			}
			return t.exec("UPDATE usage_top SET over = 1, data = ? WHERE site = ? AND topic = ? AND day = ?",
				append([]any{rows.cut(keptTops).encode(&s.coder, d.day*dayMillis, true)}, where...)...)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// shrinkIfWorth gives free pages back to the file system when they are a
// quarter of the file, and more than some.
func (s *Store) shrinkIfWorth(ctx context.Context) error {
	var free, pages int
	err := s.read.row(ctx, "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count", nil, &free, &pages)
	if err != nil || free < 4096 || free < pages/4 {
		return err
	}
	return s.shrink(ctx)
}
