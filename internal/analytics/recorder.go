package analytics

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// HTMLSizes is what is known of the HTML of a site's pages. It is a part of the
// sites of a store.
type HTMLSizes interface {
	// HTMLSizes returns the weights of pages by their identities, in their
	// order; the zero value where nothing is known.
	HTMLSizes(ctx context.Context, urls []string) ([]millrace.HTMLSize, error)
}

// Options configure a [Recorder]. The zero value works.
type Options struct {
	// HTMLSizes fills in what the pages would have been as HTML; nil = events have
	// what they come with.
	HTMLSizes HTMLSizes
	// QueryKey hides what was searched for: events have a keyed hash of it. See
	// [QueryKey]. nil = they have the query.
	QueryKey []byte
	// Keep is how long single events are kept; 0 = 30 days. KeepHours is how long
	// their sums are kept by hour, before they are by day; 0 = 31 days.
	Keep, KeepHours time.Duration

	Buffer int           // most events that wait to be stored, others are dropped; 0 = 16384
	Every  time.Duration // between two batches, if they are not large; 0 = 2 s

	// Leases let one process tidy at a time; nil = no other process uses the store.
	Leases store.Leases
	Now    func() time.Time // nil = time.Now
	Logger *slog.Logger     // told of what could not be stored; nil = discard
}

const (
	keepEvents = 30 * 24 * time.Hour
	keepHours  = 31 * 24 * time.Hour
	waiting    = 16384
	batchEvery = 2 * time.Second
)

// Recorder takes down what machines are answered. All methods are safe for
// concurrent use.
type Recorder struct {
	usage store.Usage
	site  string
	o     Options
	batch int           // so many that wait are stored at once
	wake  chan struct{} // there are that many

	mu       sync.Mutex
	coming   buffer
	recorded uint64
	dropped  uint64

	storing sync.Mutex // of what follows: one batch at a time
	spare   buffer     // empty, to take the place of coming
	taken   []store.Event
	weights htmlSizeCache
}

// buffer holds events in the order in which they came. Their texts lie together
// in one piece of memory: those of a request would keep all of it. What many have
// in common is there once. So an event is little to write down, and has nothing
// in it that the garbage collector would have to follow.
type buffer struct {
	records []record
	text    []byte
	kinds   []kind
	at      map[kind]int32 // where they are
}

// kind is what many events have in common.
type kind struct {
	bot, family, protocol string
	verdict               store.BotIdentity
	endpoint              store.Endpoint
	status                int
	cached                bool
}

// record is an event. Its texts are the next bytes of its buffer's.
type record struct {
	time                               int64 // Unix ms
	results, bytes, size, html, onWire int64
	took                               time.Duration
	kind                               int32
	path, query, intent                uint16
}

// add takes down an event.
func (b *buffer) add(e *store.Event, path, query, intent string) {
	k := kind{e.Bot, e.Family, e.Protocol, e.Identity, e.Endpoint, e.Status, e.Cached}
	at := int32(len(b.kinds)) - 1
	if at < 0 || b.kinds[at] != k {
		at = b.kindAt(k)
	}
	b.records = append(b.records, record{
		e.Time.UnixMilli(), e.Results, e.Bytes, e.Size, e.HTML, e.Received, e.Took,
		at, uint16(len(path)), uint16(len(query)), uint16(len(intent)),
	})
	b.text = append(append(append(b.text, path...), query...), intent...)
}

// kindAt returns the place of a kind, which it makes.
func (b *buffer) kindAt(k kind) int32 {
	at, ok := b.at[k]
	if !ok {
		if b.at == nil {
			b.at = make(map[kind]int32)
		}
		at = int32(len(b.kinds))
		b.at[k], b.kinds = at, append(b.kinds, k)
	}
	return at
}

// reset empties the buffer, and leaves its memory.
func (b *buffer) reset() {
	clear(b.kinds)
	clear(b.at)
	b.records, b.text, b.kinds = b.records[:0], b.text[:0], b.kinds[:0]
}

// New returns a recorder of a site in a store. o may be nil. The caller must
// run [Recorder.Run].
func New(usage store.Usage, site string, o *Options) *Recorder {
	r := &Recorder{usage: usage, site: site, wake: make(chan struct{}, 1)}
	if o != nil {
		r.o = *o
	}
	r.o.Keep, r.o.KeepHours = cmp.Or(r.o.Keep, keepEvents), cmp.Or(r.o.KeepHours, keepHours)
	r.o.Buffer, r.o.Every = cmp.Or(r.o.Buffer, waiting), cmp.Or(r.o.Every, batchEvery)
	r.batch = (r.o.Buffer + 3) / 4
	if r.o.Now == nil {
		r.o.Now = time.Now
	}
	if r.o.Logger == nil {
		r.o.Logger = slog.New(slog.DiscardHandler)
	}
	r.weights.init()
	return r
}

// Record takes down one answer. It never waits for the store, and copies what it
// keeps of Path, Query and Intent; the other texts have to be few and short. The
// number is the store's to say. HTML and Received of one page are filled in, if
// they are not known yet; HTML below 0 = this is the rest of a page, which counts
// with what came before it.
func (r *Recorder) Record(e store.Event) {
	path, query, intent := cut(e.Path), cut(e.Query), cut(e.Intent)
	r.mu.Lock()
	if len(r.coming.records) >= r.o.Buffer {
		r.dropped++
		r.mu.Unlock()
		return
	}
	r.coming.add(&e, path, query, intent)
	r.recorded++
	n := len(r.coming.records)
	r.mu.Unlock()
	if n == r.batch {
		select {
		case r.wake <- struct{}{}:
		default: // it is awake
		}
	}
}

// cut returns as much of a text as a store keeps, without half a character at
// its end.
func cut(s string) string {
	if len(s) <= store.MaxEventText {
		return s
	}
	n := store.MaxEventText
	for n > store.MaxEventText-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Recorded returns how many events were taken down, since the recorder was
// made.
func (r *Recorder) Recorded() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recorded
}

// Dropped returns how many events are lost, since the recorder was made: they
// came when too many waited, or the store did not take them.
func (r *Recorder) Dropped() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// Waiting returns how many events are not stored yet.
func (r *Recorder) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.coming.records)
}

// take empties the buffer into r.taken, with every text in its place.
func (r *Recorder) take() {
	r.mu.Lock()
	full := r.coming
	r.coming = r.spare
	r.mu.Unlock()
	text := string(full.text)
	next := func(n uint16) (s string) {
		s, text = text[:n], text[n:]
		return s
	}
	for i := range full.records {
		rec := &full.records[i]
		k := &full.kinds[rec.kind]
		r.taken = append(r.taken, store.Event{
			Time: time.UnixMilli(rec.time), Bot: k.bot, Family: k.family, Identity: k.verdict, Protocol: k.protocol, Endpoint: k.endpoint,
			Path: next(rec.path), Query: next(rec.query), Intent: next(rec.intent),
			Results: rec.results, Status: k.status, Cached: k.cached, Bytes: rec.bytes, Size: rec.size,
			HTML: rec.html, Received: rec.onWire, Took: rec.took,
		})
	}
	full.reset()
	r.spare = full
}
