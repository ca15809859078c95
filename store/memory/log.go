package memory

import (
	"crypto/rand"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store/internal/record"
)

// log is the log of a site or of a generation of a publication. An entry is
// never changed, only replaced.
type log struct {
	epoch          string
	earlier        []millrace.Epoch
	seq            uint64              // of the newest entry
	time           time.Time           // of the newest entry
	floor, horizon uint64              // views and cursors before them are refused
	pages          map[string][]*entry // by identity, the oldest first; those of "" are of no page
}

// entry is what the log says of a page from a sequence number on.
type entry struct {
	record.Entry
	url  string // identity
	seq  uint64
	time time.Time
	tags map[string]tag // by protocol
}

// tag is the value of a tag, and the first sequence number that has it, if that
// is later than the entry's.
type tag struct {
	value string
	since uint64
}

func newLog() *log { return &log{epoch: rand.Text(), pages: make(map[string][]*entry)} }

// at returns the entry of a page at a sequence number. A page without one has
// the zero entry.
func (l *log) at(url string, seq uint64) *entry {
	for _, e := range slices.Backward(l.pages[url]) {
		if e.seq <= seq {
			return e
		}
	}
	return &entry{url: url}
}

// current returns the newest entry of a page.
func (l *log) current(url string) *entry { return l.at(url, l.seq) }

// stamp returns the time of a transaction. It is later than all before.
func (l *log) stamp(now time.Time) time.Time {
	if now = now.Truncate(time.Millisecond); !now.After(l.time) {
		now = l.time.Add(time.Millisecond)
	}
	return now
}

// append adds an entry.
func (l *log) append(url string, e record.Entry, at time.Time) *entry {
	l.seq, l.time = l.seq+1, at
	added := &entry{Entry: e, url: url, seq: l.seq, time: at}
	l.pages[url] = append(l.pages[url], added)
	return added
}

// replace replaces the newest entry of a page.
func (l *log) replace(e *entry) {
	h := l.pages[e.url]
	h[len(h)-1] = e
}

// seqAt returns the last sequence number up to a limit that was committed at or
// before a time.
func (l *log) seqAt(limit uint64, t time.Time) (seq uint64) {
	for _, h := range l.pages {
		for _, e := range h {
			if e.seq <= limit && !e.time.After(t) {
				seq = max(seq, e.seq)
			}
		}
	}
	return seq
}

// compact drops what no view needs that is published or was the head since a
// time, and no cursor from the log since another time. Tombstones stay longer.
func (l *log) compact(published []uint64, head, logged, tombstones time.Time) {
	l.floor = max(l.floor, slices.Min(append(published, l.seqAt(l.seq, head))))
	l.horizon = max(l.horizon, min(l.floor, l.seqAt(l.seq, logged)))
	for url, h := range l.pages {
		var left []*entry
		for i, e := range h {
			needed := e.Present || e.seq >= l.horizon || e.time.After(tombstones)
			if url != "" && i+1 < len(h) { // superseded
				needed = h[i+1].seq > l.horizon
			}
			if needed {
				left = append(left, e)
			}
		}
		if l.pages[url] = left; len(left) == 0 {
			delete(l.pages, url)
		}
	}
}

// fork returns a log that continues l after a sequence number. at is the time of
// its entry.
func (l *log) fork(seq uint64, at time.Time) *log {
	f := newLog()
	f.earlier = append(slices.Clone(l.earlier), millrace.Epoch{Name: l.epoch, Last: seq})
	f.seq, f.time, f.floor, f.horizon = seq, at, l.floor, l.horizon
	for url, h := range l.pages {
		for _, e := range h {
			if e.seq <= seq {
				f.pages[url] = append(f.pages[url], e)
			}
		}
	}
	return f
}

// continues reports whether l continues another log, directly or through others.
func (l *log) continues(other *log) bool {
	return slices.ContainsFunc(l.earlier, func(e millrace.Epoch) bool { return e.Name == other.epoch })
}
