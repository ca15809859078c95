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

// HTMLSizes returns the HTML sizes of pages. A site of a store implements it.
type HTMLSizes interface {
	// HTMLSizes returns the sizes of pages by path, in order; zero if unknown.
	HTMLSizes(ctx context.Context, urls []string) ([]millrace.HTMLSize, error)
}

// Options configure a [Recorder]. The zero value works.
type Options struct {
	// HTMLSizes returns the HTML sizes of pages. If nil, the sizes of events stay unchanged.
	HTMLSizes HTMLSizes
	// QueryKey is the key of the hashes that replace queries; see [QueryKey]. If nil, events keep
	// the query.
	QueryKey []byte
	// Keep is how long events are stored. If zero, 30 days.
	Keep time.Duration

	Buffer int           // maximum number of pending events; others are dropped. If zero, 16384.
	Every  time.Duration // maximum time between two batches. If zero, 2 s.

	// Leases allow only one process to tidy. If nil, no other process may use the store.
	Leases store.Leases
	Now    func() time.Time // clock. If nil, time.Now.
	Logger *slog.Logger     // logs failures of the store. If nil, nothing is logged.
}

const (
	keepEvents = 30 * 24 * time.Hour
	keepHours  = 31 * 24 * time.Hour
	waiting    = 16384
	batchEvery = 2 * time.Second
)

// Recorder records the responses to machines. All methods are safe for concurrent
// use.
type Recorder struct {
	usage store.Usage
	site  string
	o     Options
	batch int           // number of pending events that triggers a batch
	wake  chan struct{} // contains a value if a batch is pending

	mu       sync.Mutex
	coming   buffer
	recorded uint64
	dropped  uint64

	storing sync.Mutex // guards the fields below: one batch at a time
	spare   buffer     // an empty buffer to swap with coming
	taken   []store.Event
	weights htmlSizeCache
}

// buffer holds events in order. It copies their texts into one byte slice, since a substring of a
// request would keep the whole request in memory. It stores fields that many events share only
// once. Records contain no pointers, so the garbage collector does not scan them.
type buffer struct {
	records []record
	text    []byte
	kinds   []kind
	at      map[kind]int32 // index of each kind in kinds
}

// kind holds the fields that many events share.
type kind struct {
	bot, family, protocol string
	identity              store.BotIdentity
	endpoint              store.Endpoint
	status                int
	cached                bool
}

// record is an event. Its texts are the next bytes of the buffer's text.
type record struct {
	time                               int64 // Unix ms
	results, bytes, size, html, onWire int64
	took                               time.Duration
	kind                               int32
	path, query, intent                uint16
}

// add adds an event.
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

// kindAt returns the index of a kind, and adds it if it is new.
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

// reset empties the buffer and keeps its memory.
func (b *buffer) reset() {
	clear(b.kinds)
	clear(b.at)
	b.records, b.text, b.kinds = b.records[:0], b.text[:0], b.kinds[:0]
}

// New returns a recorder for a site in a store. o may be nil. The caller must run [Recorder.Run].
func New(usage store.Usage, site string, o *Options) *Recorder {
	r := &Recorder{usage: usage, site: site, wake: make(chan struct{}, 1)}
	if o != nil {
		r.o = *o
	}
	r.o.Keep = cmp.Or(r.o.Keep, keepEvents)
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

// Record records one response. It never waits for the store. It copies Path, Query and Intent;
// other texts must be short and have few different values. The store assigns the number. HTML and
// Received of a page are filled in later if they are not set. HTML below 0 marks a continuation of
// a page, which counts with its first part. Received below 0 marks a client that does not accept
// compression.
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
		default: // Run is already awake
		}
	}
}

// cut shortens a text to the length that a store keeps. It does not split a character.
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

// Recorded returns the number of recorded events since the recorder was created.
func (r *Recorder) Recorded() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recorded
}

// Dropped returns the number of lost events since the recorder was created: too many were pending,
// or the store refused them.
func (r *Recorder) Dropped() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// Waiting returns the number of events in the buffer. It does not count events that Flush has taken
// from the buffer and could not store yet.
func (r *Recorder) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.coming.records)
}

// take moves the buffer into r.taken and sets the texts of the events.
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
			Time: time.UnixMilli(rec.time), Bot: k.bot, Family: k.family, Identity: k.identity, Protocol: k.protocol, Endpoint: k.endpoint,
			Path: next(rec.path), Query: next(rec.query), Intent: next(rec.intent),
			Results: rec.results, Status: k.status, Cached: k.cached, Bytes: rec.bytes, Size: rec.size,
			HTML: rec.html, Received: rec.onWire, Took: rec.took,
		})
	}
	full.reset()
	r.spare = full
}
