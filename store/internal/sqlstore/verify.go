package sqlstore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace/millrace"
)

// frames describes the tables of compressed texts. owners selects the pages that use a row. missing
// selects the used IDs that have no row. unlink removes the references to a row.
var frames = []struct{ table, owners, missing, unlink string }{
	{
		"body", `SELECT DISTINCT site.id, site.name, entry.url FROM entry JOIN log ON log.id = entry.log JOIN site ON site.id = log.site
			WHERE entry.body = ? AND entry.meta IS NOT NULL`,
		"SELECT DISTINCT body FROM entry WHERE body <> 0 AND meta IS NOT NULL AND body NOT IN (SELECT id FROM body)",
		"UPDATE entry SET body = 0 WHERE body = ?",
	},
	{
		"original", `SELECT DISTINCT site.id, site.name, coalesce(memory.identity, memory.url) FROM memory JOIN source ON source.id = memory.source
			JOIN site ON site.id = source.site WHERE memory.original = ?`,
		"SELECT DISTINCT original FROM memory WHERE original <> 0 AND original NOT IN (SELECT id FROM original)",
		"UPDATE memory SET original = 0 WHERE original = ?",
	},
}

// Verify implements store.Verifier. It reads every dictionary, body, original and compressed tag.
func (s *Store) Verify(ctx context.Context, repair bool, damaged func(name string, err error, repaired bool)) (read int, err error) {
	if err := s.verifyDictionaries(ctx, repair, damaged); err != nil {
		return 0, err
	}
	if err := s.verifyTags(ctx, repair, damaged); err != nil {
		return 0, err
	}
	for _, f := range frames {
		report := func(id int64, err error) error {
			return s.repair(ctx, f.owners, f.unlink, f.table, id, repair, err, damaged)
		}
		missing, err := column[int64](s.db.Reader(ctx), f.missing)
		if err != nil {
			return read, err
		}
		for _, id := range missing {
			if err := report(id, millrace.Coded("store-damaged", fmt.Errorf("%w: %s %d is missing", millrace.ErrInvalid, f.table, id))); err != nil {
				return read, err
			}
		}
		for last, more := int64(0), true; more; {
			rows := make(map[int64][]byte)
			err := s.db.Reader(ctx).Rows("SELECT id, data FROM "+f.table+" WHERE id > ? ORDER BY id LIMIT 200", []any{last}, func(scan Scanner) error {
				var data []byte
				err := scan(&last, &data)
				rows[last] = data
				return err
			})
			if err != nil {
				return read, err
			}
			more = len(rows) > 0
			for _, id := range slices.Sorted(maps.Keys(rows)) {
				if _, err := s.decode(s.db.Reader(ctx), rows[id]); err != nil {
					if err := report(id, err); err != nil {
						return read, err
					}
				}
				read++
			}
		}
	}
	return read, ctx.Err()
}

// repair reports the pages to which a damaged row belongs. With repair, it removes the row from
// these pages. The next read of their sources is complete, and fetches these pages.
func (s *Store) repair(ctx context.Context, owners, unlink, table string, id int64, repair bool, reason error, damaged func(name string, err error, repaired bool)) error {
	type page struct {
		site      int64
		name, url string
	}
	var pages []page
	err := s.db.Reader(ctx).Rows(owners, []any{id}, func(scan Scanner) error {
		var p page
		err := scan(&p.site, &p.name, &p.url)
		pages = append(pages, p)
		return err
	})
	if err == nil && repair {
		err = s.db.Write(ctx, Lock{}, func(t Tx) error {
			for _, p := range pages {
				if err := t.Exec("UPDATE memory SET version = '' WHERE coalesce(identity, url) = ? AND source IN (SELECT id FROM source WHERE site = ?)", p.url, p.site); err != nil {
					return err
				}
				if err := t.Exec("UPDATE source SET cursor = '' WHERE site = ?", p.site); err != nil {
					return err
				}
			}
			if err := t.Exec(unlink, id); err != nil {
				return err
			}
			return t.Exec("DELETE FROM "+table+" WHERE id = ?", id)
		})
	}
	for _, p := range pages {
		damaged(p.name+" "+p.url, reason, repair && err == nil)
	}
	return err
}

// verifyDictionaries checks the dictionaries of bodies and tags. With repair, it deletes damaged
// ones. All rows compressed with a deleted dictionary are then damaged. Later bodies and tags are
// compressed without it.
func (s *Store) verifyDictionaries(ctx context.Context, repair bool, damaged func(name string, err error, repaired bool)) error {
	q := s.db.Reader(ctx)
	ids, err := column[uint32](q, "SELECT id FROM dictionary ORDER BY id")
	for _, id := range ids {
		reason := s.bodies.Check(id, q.Row)
		if err = ctx.Err(); err != nil {
			return err
		}
		if reason == nil {
			continue
		}
		if repair {
			if err := s.db.Write(ctx, Lock{}, func(t Tx) error { return t.Exec("DELETE FROM dictionary WHERE id = ?", id) }); err != nil {
				return err
			}
		}
		damaged(fmt.Sprintf("dictionary %d", id), millrace.Coded("store-damaged", fmt.Errorf("%w: damaged: %w", millrace.ErrInvalid, reason)), repair)
	}
	return err
}

// verifyTags reads the compressed tags. With repair, a generation with a damaged tag is dropped,
// and the next server creates a new one.
func (s *Store) verifyTags(ctx context.Context, repair bool, damaged func(name string, err error, repaired bool)) error {
	type row struct {
		log, seq      int64
		protocol, url string
		value         []byte
	}
	q := s.db.Reader(ctx)
	var last row
	for {
		var rows []row
		err := q.Rows(`SELECT log, protocol, url, seq, value FROM tag WHERE (log, protocol, url, seq) > (?, ?, ?, ?) AND substr(value, 1, 4) = ?
			AND log IN (SELECT id FROM publication WHERE stage < ?) ORDER BY log, protocol, url, seq LIMIT 200`,
			[]any{last.log, last.protocol, last.url, last.seq, frameMagic, dropping}, func(scan Scanner) error {
				var r row
				err := scan(&r.log, &r.protocol, &r.url, &r.seq, &r.value)
				rows = append(rows, r)
				return err
			})
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, r := range rows {
			if _, reason := s.decode(q, r.value); reason != nil {
				if repair {
					if err := s.db.Write(ctx, Lock{}, func(t Tx) error {
						return t.Exec("UPDATE publication SET stage = ? WHERE id = ?", dropping, r.log)
					}); err != nil {
						return err
					}
				}
				damaged(r.protocol+" of "+r.url, reason, repair)
			}
		}
		last = rows[len(rows)-1]
	}
}
