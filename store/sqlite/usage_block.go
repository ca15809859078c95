package sqlite

import (
	"slices"
	"time"

	"github.com/millrace/millrace/store"
)

// packed is one row of usage_event.
type packed struct {
	first, last      int64
	count            int64
	earliest, latest int64
	data             []byte
}

// eventKind is what many events have in common.
type eventKind struct {
	bot, family, verdict, protocol, endpoint string
	status                                   int
	cached                                   bool
}

// eventRow is what is left of an event: kind, path, query and intent are indexes
// into those of its block.
type eventRow struct {
	number, time                       int64
	kind, path, query, intent          int32
	results, bytes, size, html, onWire int64 // never below 0
	took                               int64 // µs
}

// packing gathers the events of a block.
type packing struct {
	kinds                 map[eventKind]int32
	list                  []eventKind
	paths, queries, hints index
	rows                  []eventRow
	text                  int // bytes of texts
	most                  int // events
	joined                int // events that were there: the first ones
	buffer                []byte

	said eventKind // by the event before, and where that is in list; its texts may be unclean
	at   int32
}

// newPacking makes one for so many events at most, of which some are expected.
func newPacking(most, expected int) *packing {
	p := &packing{kinds: make(map[eventKind]int32), rows: make([]eventRow, 0, min(most, expected))}
	p.reset(most)
	return p
}

// reset empties a packing, for so many events at most, and leaves its memory.
func (p *packing) reset(most int) {
	clear(p.kinds)
	clear(p.list)
	p.list, p.rows, p.text, p.most, p.joined = p.list[:0], p.rows[:0], 0, most, 0
	p.said, p.at = eventKind{status: -1}, 0
	for _, x := range []*index{&p.paths, &p.queries, &p.hints} {
		x.reset()
		x.of("")
	}
}

func (p *packing) count() int { return len(p.rows) }

func (p *packing) full() bool { return len(p.rows) >= p.most || p.text >= blockText }

// add adds an event, of a number unless the block is to be recorded.
func (p *packing) add(e *store.Event, number int64) {
	if number == 0 {
		number = int64(len(p.rows)) + 1
	}
	p.rows = append(p.rows, eventRow{
		number: number, time: e.Time.UnixMilli(), kind: p.kind(e),
		path: p.indexed(&p.paths, e.Path), query: p.indexed(&p.queries, e.Query), intent: p.indexed(&p.hints, e.Intent),
		results: max(e.Results, 0), bytes: max(e.Bytes, 0), size: max(e.Size, 0), html: max(e.HTML, 0), onWire: max(e.Received, 0),
		took: max(e.Took.Microseconds(), 0),
	})
}

// kind gives the place of an event's kind. That is mostly the one of the event
// before.
func (p *packing) kind(e *store.Event) int32 {
	k := eventKind{
		bot: e.Bot, family: e.Family, verdict: string(e.Verdict), protocol: e.Protocol, endpoint: string(e.Endpoint),
		status: max(e.Status, 0), cached: e.Cached,
	}
	if k == p.said {
		return p.at
	}
	p.said = k
	for _, s := range []*string{&k.bot, &k.family, &k.verdict, &k.protocol, &k.endpoint} {
		*s = clean(*s)
	}
	at, ok := p.kinds[k]
	if !ok {
		at = int32(len(p.list))
		p.kinds[k], p.list = at, append(p.list, k)
		p.text += len(k.bot) + len(k.family) + len(k.verdict) + len(k.protocol) + len(k.endpoint)
	}
	p.at = at
	return at
}

func (p *packing) indexed(x *index, s string) int32 {
	if s == "" {
		return 0
	}
	n := len(x.texts)
	s = clean(s)
	i := x.of(s)
	if len(x.texts) > n {
		p.text += len(s)
	}
	return int32(i)
}

// columns are the numbers of a row that are written one below the other.
var columns = []func(e *eventRow) *int64{
	func(e *eventRow) *int64 { return &e.results },
	func(e *eventRow) *int64 { return &e.bytes },
	func(e *eventRow) *int64 { return &e.size },
	func(e *eventRow) *int64 { return &e.html },
	func(e *eventRow) *int64 { return &e.onWire },
	func(e *eventRow) *int64 { return &e.took },
}

// pack gives the block. The number of its first event is kept beside it. From
// then on the texts are in their order, and nothing can be added.
func (p *packing) pack(c *coder) packed {
	b := packed{
		first: p.rows[0].number, last: p.rows[len(p.rows)-1].number, count: int64(len(p.rows)),
		earliest: p.rows[0].time, latest: p.rows[0].time,
	}
	w := columnWriter{slices.Grow(p.buffer[:0], p.text+32*len(p.rows)+256)}
	var names index
	var kinds columnWriter
	kinds.uint(uint64(len(p.list)))
	for i := range p.list {
		k := &p.list[i]
		for _, s := range []string{k.bot, k.family, k.verdict, k.protocol, k.endpoint} {
			kinds.uint(uint64(names.of(s)))
		}
		status := uint64(k.status) << 1
		if k.cached {
			status |= 1
		}
		kinds.uint(status)
	}
	w.uint(uint64(len(names.texts)))
	for _, s := range names.texts {
		w.text(s)
	}
	w.b = append(w.b, kinds.b...)
	paths, queries, hints := p.paths.sort(), p.queries.sort(), p.hints.sort()
	for i := range p.rows {
		e := &p.rows[i]
		e.path, e.query, e.intent = paths[e.path], queries[e.query], hints[e.intent]
	}
	w.sorted(p.paths.texts)
	w.sorted(p.queries.texts)
	w.sorted(p.hints.texts)
	w.uint(uint64(len(p.rows)))
	number, moment := b.first-1, int64(0)
	for i := range p.rows {
		w.uint(uint64(p.rows[i].number - number - 1))
		number = p.rows[i].number
	}
	for i := range p.rows {
		t := p.rows[i].time
		w.int(t - moment)
		moment = t
		b.earliest, b.latest = min(b.earliest, t), max(b.latest, t)
	}
	for i := range p.rows {
		w.uint(uint64(p.rows[i].kind))
	}
	for i := range p.rows {
		w.uint(uint64(p.rows[i].path))
	}
	for i := range p.rows {
		w.uint(uint64(p.rows[i].query))
	}
	for i := range p.rows {
		w.uint(uint64(p.rows[i].intent))
	}
	for _, column := range columns {
		for i := range p.rows {
			w.uint(uint64(*column(&p.rows[i])))
		}
	}
	b.data, p.buffer = w.compress(c), w.b
	return b
}

// block is a packed one that was opened.
type block struct {
	kinds                  []eventKind
	paths, queries, intent []string
	rows                   []eventRow

	rest   columnReader // the rows, until they are read
	buffer []byte
}

// open reads all but the rows, and forgets what it has read before.
func (b *block) open(c *coder, data []byte) error {
	r, err := c.expand(data, b.buffer)
	if err != nil {
		return err
	}
	b.buffer = r.b
	names := r.texts()
	n := r.length()
	b.kinds = b.kinds[:0]
	name := func() string {
		i := r.below(len(names))
		if r.bad {
			return ""
		}
		return names[i]
	}
	for range n {
		k := eventKind{bot: name(), family: name(), verdict: name(), protocol: name(), endpoint: name()}
		status := r.uint()
		k.status, k.cached = int(status>>1), status&1 == 1
		b.kinds = append(b.kinds, k)
	}
	b.paths, b.queries, b.intent = r.sorted(), r.sorted(), r.sorted()
	b.rest, b.rows = r, b.rows[:0]
	if r.bad {
		return errDamaged
	}
	return nil
}

// read reads the rows of a block that was opened, the first of which has the
// number first.
func (b *block) read(first int64) error {
	r := b.rest
	n := r.length()
	if cap(b.rows) < n {
		b.rows = make([]eventRow, n)
	}
	b.rows = b.rows[:n]
	number, moment := first-1, int64(0)
	for i := range b.rows {
		number += int64(r.uint()) + 1
		b.rows[i].number = number
	}
	for i := range b.rows {
		moment += r.int()
		b.rows[i].time = moment
	}
	for i := range b.rows {
		b.rows[i].kind = int32(r.below(len(b.kinds)))
	}
	for i := range b.rows {
		b.rows[i].path = int32(r.below(len(b.paths)))
	}
	for i := range b.rows {
		b.rows[i].query = int32(r.below(len(b.queries)))
	}
	for i := range b.rows {
		b.rows[i].intent = int32(r.below(len(b.intent)))
	}
	for _, column := range columns {
		for i := range b.rows {
			*column(&b.rows[i]) = int64(r.uint())
		}
	}
	if err := r.done(); err != nil || n == 0 {
		b.rows = b.rows[:0]
		return errDamaged
	}
	return nil
}

// event gives a row as an event.
func (b *block) event(r *eventRow) store.Event {
	k := &b.kinds[r.kind]
	return store.Event{
		Number: uint64(r.number), Time: time.UnixMilli(r.time).UTC(),
		Bot: k.bot, Family: k.family, Verdict: store.Verdict(k.verdict), Protocol: k.protocol, Endpoint: store.Endpoint(k.endpoint),
		Path: b.paths[r.path], Query: b.queries[r.query], Intent: b.intent[r.intent],
		Results: r.results, Status: k.status, Cached: k.cached, Bytes: r.bytes, Size: r.size, HTML: r.html, Received: r.onWire,
		Took: time.Duration(r.took) * time.Microsecond,
	}
}
