package memory

import (
	"crypto/rand"
	"slices"
	"time"

	"github.com/tidwall/btree"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store/internal/record"
)

// log is the log of a site or of a generation of a publication. It stores the state after each
// transaction.
type log struct {
	epoch   string
	earlier []millrace.Epoch
	states  []*state // oldest first; never empty
	horizon uint64   // older cursors are rejected, and older states are dropped
}

// state is a log after a transaction. It is immutable once committed.
type state struct {
	seq   uint64                     // number of the newest entry
	time  *time.Time                 // time of the newest entry; set by commit
	pages *btree.Map[string, *entry] // newest entry of each page, by path
}

// entry is the entry of a page in a log. It is immutable.
type entry struct {
	record.Entry
	url  string // path of the page
	seq  uint64
	time *time.Time
	tags map[string]string // tag values by protocol
}

func newLog() *log {
	return &log{epoch: rand.Text(), states: []*state{{time: new(time.Time), pages: new(btree.Map[string, *entry])}}}
}

// head returns the newest state.
func (l *log) head() *state { return l.states[len(l.states)-1] }

// at returns the last state up to a sequence number.
func (l *log) at(seq uint64) *state {
	for _, s := range slices.Backward(l.states) {
		if s.seq <= seq {
			return s
		}
	}
	return l.states[0]
}

// seqAt returns the last sequence number up to a limit that was committed at or before a time.
func (l *log) seqAt(limit uint64, t time.Time) (seq uint64) {
	for _, s := range l.states {
		if s.seq <= limit && !s.time.After(t) {
			seq = s.seq
		}
	}
	return seq
}

// begin returns a copy of the newest state, for use by a transaction.
func (l *log) begin() *state {
	last := l.head()
	return &state{last.seq, new(time.Time), last.pages.Copy()}
}

// commit makes the state of a transaction the newest one. The time of its entries is later than the
// times of all earlier entries.
func (l *log) commit(s *state, now time.Time) {
	last := l.head()
	if s.seq == last.seq { // no visible change
		s.time = last.time
		l.states = l.states[:len(l.states)-1]
	} else if *s.time = now.Truncate(time.Millisecond); !s.time.After(*last.time) {
		*s.time = last.time.Add(time.Millisecond)
	}
	l.states = append(l.states, s)
}

// entry returns the entry of a page, or the zero entry if the page has no entry.
func (s *state) entry(url string) *entry {
	if e, ok := s.pages.Get(url); ok {
		return e
	}
	return &entry{url: url}
}

// enter adds an entry for a page.
func (s *state) enter(url string, e record.Entry, tags map[string]string) {
	s.seq++
	s.pages.Set(url, &entry{e, url, s.seq, s.time, tags})
}

// amend replaces the entry of a page without a new sequence number.
func (s *state) amend(old *entry, e record.Entry, tags map[string]string) {
	s.pages.Set(old.url, &entry{e, old.url, old.seq, old.time, tags})
}

// compact drops the states that no cursor from after logged needs, but keeps those from the sequence
// number limit on. It also deletes tombstones that are not newer than the time tombstones.
func (l *log) compact(limit uint64, logged, tombstones time.Time) {
	l.horizon = max(l.horizon, min(limit, l.seqAt(l.head().seq, logged)))
	next := l.begin()
	for _, e := range next.pages.Values() {
		if !e.Present && e.seq < l.horizon && !e.time.After(tombstones) {
			next.pages.Delete(e.url)
		}
	}
	l.commit(next, *l.head().time)
	l.states = slices.DeleteFunc(l.states, func(s *state) bool { return s.seq < l.horizon })
}

// fork returns a log that continues l after a sequence number.
func (l *log) fork(seq uint64) *log {
	f := newLog()
	f.earlier = append(slices.Clone(l.earlier), millrace.Epoch{Name: l.epoch, Last: seq})
	f.horizon = l.horizon
	f.states = slices.DeleteFunc(slices.Clone(l.states), func(s *state) bool { return s.seq > seq })
	return f
}

// continues reports whether l continues another log, directly or through other logs.
func (l *log) continues(other *log) bool {
	return slices.ContainsFunc(l.earlier, func(e millrace.Epoch) bool { return e.Name == other.epoch })
}
