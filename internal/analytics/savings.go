package analytics

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/store"
)

// Saved is what answers to machines have cost and saved.
//
// The yardstick is a machine that asks for the HTML of the same pages, each time
// that it has asked for a page by a protocol, and reads all of it. What is spent
// is every byte that it was sent by the protocol, its lists, searches and
// refusals too. Against that stand, in Instead:
//
//   - for each answer that was a whole page, or that the page stands, that page
//     as HTML: measured where the page was made of HTML, else an estimate by the
//     other pages or by their text;
//   - for collections of whole pages, as SCP has them, as many pages
//     as HTML as their bytes can hold, an estimate: of what a machine takes in one
//     day, each page of the site counts once.
//
// Lists that name pages, feeds and deltas of summaries, searches, robots.txt and what is no
// page stand against nothing, and pages that were answered in parts neither. What a machine did without because a list told it of the pages is
// apart, in ZeroFetch. The HTML that machines take has cost what it has cost: of
// it only a 304 saves something. The site's files are left out on both sides.
//
// Tokens are those of what is made to be read, by the bytes without coding: pages,
// collections of pages and what was found. Lists are for programs.
type Saved struct {
	Requests int64 `json:"requests"` // all, whatever became of them

	Pages    int64 `json:"pages"`    // answers that were one page, or that it stands
	Measured int64 `json:"measured"` // of those, of pages whose HTML was measured
	Carried  int64 `json:"carried"`  // pages that came in collections, each counted once a day

	Answered        int64    `json:"answered"`                    // what was asked for was there, or stands
	NotModified     int64    `json:"not_modified"`                // of those, it stands
	NotModifiedRate *float64 `json:"not_modified_rate,omitempty"` // of Answered; nil: there are none

	Bytes  savings.Figure `json:"bytes"`       // on the wire, without header fields
	Lists  int64          `json:"lists_bytes"` // of those that were spent, in indexes and discovery: what names pages or leads to it
	Tokens savings.Figure `json:"tokens"`
	KWh    savings.Figure `json:"kwh"`

	ZeroFetch ZeroFetch `json:"zero_fetch"`
}

// ZeroFetch is an estimate of what machines did not have to ask for: the pages
// that the lists name that a machine has had in a day, each once by whatever
// protocol, less those that it has then asked for that day, by the protocol of
// the list or as HTML. It is never below 0, and no part of the other figures.
// It is what may have been needless at most: who reads a list for the first time,
// or for other reasons than to keep pages, is counted, too.
type ZeroFetch struct {
	Pages  int64         `json:"pages"`
	Bytes  float64       `json:"bytes"` // of them as HTML, on the wire
	Tokens float64       `json:"tokens"`
	KWh    float64       `json:"kwh"`
	Basis  savings.Basis `json:"basis"` // always an estimate
}

// Add adds what was saved by other answers.
func (s *Saved) Add(u *Saved) {
	s.Requests, s.Pages, s.Measured, s.Carried = s.Requests+u.Requests, s.Pages+u.Pages, s.Measured+u.Measured, s.Carried+u.Carried
	s.Answered, s.NotModified = s.Answered+u.Answered, s.NotModified+u.NotModified
	s.NotModifiedRate = savings.Share(s.NotModified, s.Answered)
	s.Lists += u.Lists
	s.Bytes, s.Tokens, s.KWh = s.Bytes.Add(u.Bytes), s.Tokens.Add(u.Tokens), s.KWh.Add(u.KWh)
	z, w := &s.ZeroFetch, &u.ZeroFetch
	*z = ZeroFetch{z.Pages + w.Pages, z.Bytes + w.Bytes, z.Tokens + w.Tokens, savings.Round(z.KWh + w.KWh), savings.Estimate}
}

// DaySaved is what was saved of one bot by one protocol on one day of UTC.
type DaySaved struct {
	Day      time.Time `json:"day"`
	Bot      string    `json:"bot"`
	Family   string    `json:"family,omitempty"`
	Protocol string    `json:"protocol"`
	Saved
}

// listEntry is about the most bytes that a list takes to name a page. What a
// document has beyond is text of its pages.
const listEntry = 250

// The protocols that are none.
const (
	asHTML   = "html" // pages and files of the site
	siteWide = "site" // what is composed of all protocols, and what every crawler asks for
)

// ByDay tells what was saved of each bot by each protocol, day by day, in the
// order of days, bots and protocols. The sums are those of days, as a store gives
// them.
func ByDay(sums iter.Seq2[store.Sum, error], pages Pages, c savings.Coefficients) iter.Seq2[DaySaved, error] {
	return func(yield func(DaySaved, error) bool) {
		var (
			day     []*tally // of one bot and one day: one a protocol
			current *tally
		)
		// The protocols whose documents that name pages have all of their text, too. The
		// feeds of the web have summaries, and a file of all its Markdown looks like them
		// in sums.
		collections := make(map[string]bool)
		for _, p := range all.Protocols() {
			collections[p.Name] = p.Collections
		}
		flush := func() bool {
			settle(day, pages, c)
			for _, t := range day {
				if !yield(t.DaySaved, nil) {
					return false
				}
			}
			day, current = day[:0], nil
			return true
		}
		for s, err := range sums {
			if err != nil {
				yield(DaySaved{}, err)
				return
			}
			if current != nil && (s.Bot != current.Bot || !s.Start.Equal(current.Day)) && !flush() {
				return
			}
			if current == nil || current.Protocol != s.Protocol {
				current = &tally{DaySaved: DaySaved{Day: s.Start, Bot: s.Bot, Protocol: s.Protocol}, basis: savings.Measured, collections: collections[s.Protocol]}
				day = append(day, current)
			}
			current.add(&s, pages, c)
		}
		flush()
	}
}

// tally counts for one bot, protocol and day.
type tally struct {
	DaySaved
	sent, instead     float64 // bytes on the wire
	read, insteadRead float64 // bytes without coding, of what is to be read
	basis             savings.Basis
	collections       bool    // documents that name pages have all of their text, too
	fetched           int64   // pages that were asked for, as often as they were
	named             int64   // pages in indexes
	inWhole           int64   // of those, in documents that may have their text
	whole             float64 // bytes of that text
}

func (t *tally) add(s *store.Sum, pages Pages, c savings.Coefficients) {
	t.Family = cmp.Or(t.Family, s.Family)
	t.Requests += s.Events
	there := s.Outcome == store.Sent || s.Outcome == store.Unmodified
	if there {
		t.Answered += s.Events
	}
	if s.Outcome == store.Unmodified {
		t.NotModified += s.Events
	}
	if s.Endpoint == store.EndpointFile {
		return
	}
	t.sent += float64(s.Bytes)
	if s.Endpoint == store.EndpointIndex || s.Endpoint == store.EndpointDiscovery {
		t.Lists += s.Bytes
	}
	if t.Protocol == asHTML {
		t.instead += float64(s.Bytes)
	}
	if !there {
		return
	}
	switch s.Endpoint {
	case store.EndpointFetch:
		t.fetched += s.Results
		t.Pages += s.Results
		t.read += float64(s.Size)
		if t.Protocol == asHTML && s.Outcome == store.Sent {
			t.insteadRead += float64(s.Size)
			t.Measured += s.Results
			return
		}
		weighed := min(s.HTMLKnown, s.Results)
		t.Measured += weighed
		t.insteadRead += float64(s.HTML)
		t.instead += float64(s.Received)
		if unknown := s.HTML - s.Wired; unknown > 0 {
			t.instead += float64(unknown) / c.HTMLCompression
			t.basis = savings.Estimate
		}
		t.estimate(s.Results-weighed, pages)
	case store.EndpointSearch:
		t.read += float64(s.Size)
	case store.EndpointIndex:
		t.named += s.Results
		if s.Outcome == store.Sent && t.collections {
			t.inWhole += s.Results
			t.whole += max(0, float64(s.Size-listEntry*s.Results))
		}
	}
}

// estimate counts pages that are taken for the mean of the site.
func (t *tally) estimate(n int64, pages Pages) {
	if n <= 0 {
		return
	}
	t.instead += float64(n) * pages.HTML.Received
	t.insteadRead += float64(n) * pages.HTML.Bytes
	t.basis = savings.Estimate
}

// settle makes the figures of one bot and day. Each page of the site can have come
// in a collection, or have been needless, but once.
func settle(day []*tally, pages Pages, c savings.Coefficients) {
	var html int64
	for _, t := range day {
		if t.Protocol == asHTML {
			html = t.fetched
		}
	}
	most := slices.SortedStableFunc(slices.Values(day), func(a, b *tally) int { return cmp.Compare(b.named, a.named) })
	left := pages.Count
	for _, t := range most {
		t.read += t.whole
		if text := pages.HTML.Bytes / c.HTMLPerText; text > 0 {
			t.Carried = int64(min(t.whole/text, float64(min(t.inWhole, left))))
			t.estimate(t.Carried, pages)
			left -= t.Carried
		}
	}
	for _, t := range most {
		t.instead = math.Round(t.instead)
		t.NotModifiedRate = savings.Share(t.NotModified, t.Answered)
		t.Bytes = savings.NewFigure(t.sent, t.instead, t.basis)
		t.Tokens = savings.NewFigure(math.Round(t.read/c.BytesPerToken), math.Round(t.insteadRead/c.BytesPerToken), savings.Estimate)
		t.KWh = savings.NewFigure(energy(t.sent, c), energy(t.instead, c), savings.Estimate)
		t.ZeroFetch.Basis = savings.Estimate
		if t.Protocol == asHTML || t.Protocol == siteWide {
			continue
		}
		n := max(0, min(left, min(t.named, pages.Count)-t.fetched-t.Carried-html))
		left -= n
		wire := math.Round(float64(n) * pages.HTML.Received)
		t.ZeroFetch = ZeroFetch{n, wire, math.Round(float64(n) * pages.HTML.Bytes / c.BytesPerToken), energy(wire, c), savings.Estimate}
	}
}

func energy(bytes float64, c savings.Coefficients) float64 {
	return savings.Round(bytes / 1e9 * c.KWhPerGB)
}
