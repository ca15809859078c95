package sqlite

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// usageTables have what machines have asked for.
//
// Events lie in blocks: those that were recorded at once, where they are few with
// some that came before, until Tidy joins them. Sums and tops are of the events
// before a number: what has come since is added by whoever reads them, so that
// recording writes one row, whatever that is counted in.
const usageTables = `
CREATE TABLE usage (
	site   INTEGER PRIMARY KEY,
	next   INTEGER NOT NULL, -- number of the next event
	summed INTEGER NOT NULL  -- events before it are in the sums and tops
);

CREATE TABLE usage_event (
	id       INTEGER PRIMARY KEY, -- site << 40 | number of the first
	last     INTEGER NOT NULL,    -- number of the last
	count    INTEGER NOT NULL,
	earliest INTEGER NOT NULL,    -- Unix ms
	latest   INTEGER NOT NULL,
	data     BLOB NOT NULL
);

CREATE TABLE usage_sum (
	site  INTEGER NOT NULL,
	per   INTEGER NOT NULL, -- hours: 1 or 24
	start INTEGER NOT NULL, -- hours since 1970
	hours INTEGER NOT NULL, -- of a day: 1 = its hours have rows, too
	data  BLOB NOT NULL,
	PRIMARY KEY (site, per, start)
);

CREATE TABLE usage_top (
	site  INTEGER NOT NULL,
	topic INTEGER NOT NULL,
	day   INTEGER NOT NULL, -- days since 1970
	over  INTEGER NOT NULL, -- 1 = the day is, and only what was asked for most is left
	data  BLOB NOT NULL,
	PRIMARY KEY (site, topic, day)
);

CREATE TABLE usage_export (
	site     INTEGER NOT NULL,
	exporter TEXT NOT NULL,
	number   INTEGER NOT NULL,
	PRIMARY KEY (site, exporter)
) WITHOUT ROWID;
`

const (
	// blockEvents and blockText bound a block: its events, and the bytes of their
	// texts.
	blockEvents = 4096
	blockText   = 1 << 20
	// joinEvents is how many events a block may have to which others are joined that
	// are recorded: a row for each would take far more room than they do.
	joinEvents = 256
	// foldEvents is how many events may be in no sum yet before Record adds them:
	// whoever reads sums reads as many.
	foldEvents = 1 << 16
	// foldApart is how many rows of sums they may come to.
	foldApart = 1 << 14
)

var _ store.Usage = (*Store)(nil)

// usageSite gives the number of a site.
func usageSite(q querier, name string) (id int64, err error) {
	if err := q.row("SELECT id FROM site WHERE name = ?", []any{name}, &id); absent(err) {
		return 0, fmt.Errorf("%w: there is no such site", millrace.ErrNotFound)
	} else if err != nil {
		return 0, err
	}
	return id, nil
}

// usageState gives the number of a site's next event, and that of the first
// that is in no sum.
func usageState(q querier, site int64) (next, summed int64, err error) {
	err = q.row("SELECT next, summed FROM usage WHERE site = ?", []any{site}, &next, &summed)
	if absent(err) {
		return 1, 1, nil
	}
	return next, summed, err
}

// Record implements [store.Usage].
func (s *Store) Record(ctx context.Context, site string, events []store.Event) error {
	what := "events of " + site
	if err := s.coder.open(); err != nil {
		return explain(what, err)
	}
	var packings []*packing
	var blocks []packed
	if len(events) > min(joinEvents/2, s.blockEvents) {
		packings, blocks = s.pack(events)
	}
	defer func() { s.running.done(packings) }()
	var id, first, summed, pending int64
	err := s.writer.do(ctx, func(t *tx) (err error) {
		if id, err = usageSite(t, site); err != nil || len(events) == 0 {
			return err
		}
		if first, summed, err = usageState(t, id); err != nil {
			return err
		}
		next := first
		if next+int64(len(events)) > forever {
			return fmt.Errorf("%w: there is no number left for an event", millrace.ErrTooLarge)
		}
		if blocks == nil {
			var p *packing
			if p, err = s.join(t, id, next, summed, events); err != nil {
				return err
			}
			packings, blocks = []*packing{p}, []packed{p.pack(&s.coder)}
			next -= int64(p.joined)
		}
		for _, b := range blocks {
			if err := t.exec(recordBlock, id<<siteBits|next, next+b.count-1, b.count, b.earliest, b.latest, b.data); err != nil {
				return err
			}
			next += b.count
		}
		pending = next - summed
		return t.exec("INSERT INTO usage (site, next, summed) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET next = ?2", id, next, summed)
	})
	if err != nil {
		return explain(what, err)
	}
	if len(events) == 0 {
		return nil
	}
	apart := s.running.recorded(id, first, summed, packings)
	for ; pending >= int64(s.foldEvents) || apart >= foldApart; apart = 0 {
		// They are durable, and counted by whoever asks: that they cannot be added
		// up just now is nothing that recording them again would mend.
		if pending, err = s.fold(ctx, id); err != nil {
			s.log.WarnContext(ctx, "events are kept and not added up yet", "site", site, "error", err)
			return nil
		}
	}
	return nil
}

const (
	insertBlock = "INSERT INTO usage_event (id, last, count, earliest, latest, data) VALUES (?, ?, ?, ?, ?, ?)"
	recordBlock = "INSERT OR REPLACE INTO usage_event (id, last, count, earliest, latest, data) VALUES (?, ?, ?, ?, ?, ?)"
)

// join gathers events that are to be recorded from a number on, with those of
// the last block before them if it is small and in no sum yet.
func (s *Store) join(t *tx, site, next, summed int64, events []store.Event) (*packing, error) {
	p := s.running.packing(s.blockEvents, joinEvents)
	var b packed
	err := t.row("SELECT id, last, count, data FROM usage_event WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
		[]any{site << siteBits, site<<siteBits | forever}, &b.first, &b.last, &b.count, &b.data)
	if err != nil && !absent(err) {
		return nil, err
	}
	b.first &= forever
	if err == nil && b.last == next-1 && b.first >= summed && b.count == next-b.first && b.count+int64(len(events)) <= int64(min(joinEvents, s.blockEvents)) {
		var old block
		if old.open(&s.coder, b.data) == nil && old.read(b.first) == nil { // else it is left as it is
			for i := range old.rows {
				e := old.event(&old.rows[i])
				p.add(&e, 0)
			}
			p.joined = len(old.rows)
		}
	}
	for i := range events {
		p.add(&events[i], 0)
	}
	return p, nil
}

// pack makes blocks of events that are to be recorded.
func (s *Store) pack(events []store.Event) (packings []*packing, blocks []packed) {
	for i := 0; i < len(events); {
		p := s.running.packing(s.blockEvents, len(events)-i)
		for ; i < len(events) && !p.full(); i++ {
			p.add(&events[i], 0)
		}
		packings, blocks = append(packings, p), append(blocks, p.pack(&s.coder))
	}
	return packings, blocks
}

// clean makes a text of an event what is kept of it: [store.Usage] says how.
func clean(s string) string {
	plain := len(s) <= store.MaxEventText
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] >= ' ' && s[i] < 0x7F
	}
	if plain {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsControl(r) {
			r = utf8.RuneError
		}
		if b.Len()+utf8.RuneLen(r) > store.MaxEventText {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Exported implements [store.Usage].
func (s *Store) Exported(ctx context.Context, site, exporter string) (uint64, error) {
	var number int64
	err := s.read.row(ctx, `SELECT number FROM usage_export JOIN site ON site.id = usage_export.site
		WHERE site.name = ? AND exporter = ?`, []any{site, exporter}, &number)
	if absent(err) {
		return 0, nil
	}
	return uint64(number), explain("exporter "+exporter+" of "+site, err)
}

// Export implements [store.Usage].
func (s *Store) Export(ctx context.Context, site, exporter string, number uint64) error {
	err := s.writer.do(ctx, func(t *tx) error {
		id, err := usageSite(t, site)
		if err != nil {
			return err
		}
		next, _, err := usageState(t, id)
		if err != nil {
			return err
		}
		if number >= uint64(next) {
			return fmt.Errorf("%w: there is no event %d", millrace.ErrInvalid, number)
		}
		return t.exec("INSERT INTO usage_export (site, exporter, number) VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET number = ?3",
			id, exporter, int64(number))
	})
	return explain("exporter "+exporter+" of "+site, err)
}

const (
	hourMillis = int64(time.Hour / time.Millisecond)
	dayMillis  = 24 * hourMillis
	dayHours   = 24
)

// floorDiv gives the period of length d that n lies in; before 1970, too.
func floorDiv(n, d int64) int64 {
	q := n / d
	if n%d < 0 {
		q--
	}
	return q
}

// millis gives the first millisecond that is not before a time, and other if
// there is none.
func millis(t time.Time, other int64) int64 {
	if t.IsZero() {
		return other
	}
	ms := t.UnixMilli()
	if time.UnixMilli(ms).Before(t) {
		ms++
	}
	return ms
}

// span gives the periods of length d, in ms, that begin at or after from and
// before to.
func span(from, to time.Time, d int64) (first, end int64) {
	const ends = 1 << 50
	first, end = -ends, ends
	if !from.IsZero() {
		first = -floorDiv(-millis(from, 0), d)
	}
	if !to.IsZero() {
		end = -floorDiv(-millis(to, 0), d)
	}
	return first, end
}
