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

// Saved compares the bytes of responses to machines with the HTML of the same
// pages.
//
// The baseline is a machine that fetches the HTML of a page each time that the real machine fetched
// the page by a protocol. Spent counts every byte sent by the protocol, with lists, searches and
// refusals. Instead counts:
//
//   - for each response with a whole page, or a 304 of one, the page as HTML:
//     measured if the page was extracted from HTML, else an estimate from other pages
//     or from its text;
//   - for collections of whole pages, such as those of SCP, an estimate: as many HTML pages as the
//     bytes of the collections can hold. Each page of the site counts once a day.
//
// Instead does not count lists, feeds, deltas of summaries, searches, robots.txt, and pages sent in
// parts. ZeroFetch counts the requests that a list made unnecessary. HTML that machines
// fetch counts in both Spent and Instead, so only a 304 saves something. Other files of the site
// are excluded.
//
// Tokens are estimated from the uncompressed bytes of pages, collections and search results. Lists
// have none, because programs read them, not models.
type Saved struct {
	Requests int64 `json:"requests"` // number of requests

	Pages    int64 `json:"pages"`    // responses for single pages
	Measured int64 `json:"measured"` // responses for pages whose HTML was measured
	Carried  int64 `json:"carried"`  // pages in collections, each counted once a day

	Answered        int64    `json:"answered"`                    // requests whose response was content or a 304
	NotModified     int64    `json:"not_modified"`                // requests whose response was a 304
	NotModifiedRate *float64 `json:"not_modified_rate,omitempty"` // not_modified divided by answered; absent if answered is 0

	Bytes  savings.Figure `json:"bytes"`       // bytes of bodies, as sent
	Lists  int64          `json:"lists_bytes"` // bytes of lists and discovery documents
	Tokens savings.Figure `json:"tokens"`      // tokens of the content
	KWh    savings.Figure `json:"kwh"`         // energy of the transfer in kWh

	ZeroFetch ZeroFetch `json:"zero_fetch"` // pages that bots did not have to request, because a list showed that they had not changed
}

// ZeroFetch estimates the requests that lists made unnecessary. It counts each page in the lists
// that a machine fetched in a day, minus the pages that the machine fetched that day by the
// protocol of the list or as HTML. It is never below 0 and not part of the other figures. It is an
// upper bound, because it also counts machines that read a list for the first time.
type ZeroFetch struct {
	Pages  int64         `json:"pages"`
	Bytes  float64       `json:"bytes"`  // bytes that the HTML of these pages would have taken
	Tokens float64       `json:"tokens"` // tokens that the HTML of these pages would have taken
	KWh    float64       `json:"kwh"`    // energy in kWh that the HTML of these pages would have taken
	Basis  savings.Basis `json:"basis"`  // always "estimate"
}

// Add adds the figures of other responses.
func (s *Saved) Add(u *Saved) {
	s.Requests, s.Pages, s.Measured, s.Carried = s.Requests+u.Requests, s.Pages+u.Pages, s.Measured+u.Measured, s.Carried+u.Carried
	s.Answered, s.NotModified = s.Answered+u.Answered, s.NotModified+u.NotModified
	s.NotModifiedRate = savings.Share(s.NotModified, s.Answered)
	s.Lists += u.Lists
	s.Bytes, s.Tokens, s.KWh = s.Bytes.Add(u.Bytes), s.Tokens.Add(u.Tokens), s.KWh.Add(u.KWh)
	z, w := &s.ZeroFetch, &u.ZeroFetch
	*z = ZeroFetch{z.Pages + w.Pages, z.Bytes + w.Bytes, z.Tokens + w.Tokens, savings.Round(z.KWh + w.KWh), savings.Estimate}
}

// DaySaved contains the savings of one bot by one protocol on one day in UTC.
type DaySaved struct {
	Day      time.Time `json:"day"` // the day, in UTC
	Bot      string    `json:"bot"`
	Family   string    `json:"family,omitempty"`
	Protocol string    `json:"protocol"`
	Saved
}

// listEntry is the maximum size in bytes of a list entry that only names a page. Larger entries
// contain text of the page.
const listEntry = 250

// Values of Event.Protocol that do not name a protocol.
const (
	asHTML   = "html" // pages and files of the site
	siteWide = "site" // site-wide documents, which every crawler fetches
)

// ByDay yields the savings of each bot by each protocol and day, ordered by day, bot and protocol.
// sums are daily sums of a store.
func ByDay(sums iter.Seq2[store.Sum, error], pages Pages, c savings.Coefficients) iter.Seq2[DaySaved, error] {
	return func(yield func(DaySaved, error) bool) {
		var (
			day     []*daySum // one daySum per protocol, of one bot and day
			current *daySum
		)
		// Collections of these protocols contain all text of the pages. Feeds have only
		// summaries. In sums, a file with the Markdown of all pages cannot be distinguished from a
		// feed.
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
				current = &daySum{DaySaved: DaySaved{Day: s.Start, Bot: s.Bot, Protocol: s.Protocol}, basis: savings.Measured, collections: collections[s.Protocol]}
				day = append(day, current)
			}
			current.add(&s, pages, c)
		}
		flush()
	}
}

// daySum sums the requests of one bot by one protocol on one day.
type daySum struct {
	DaySaved
	sent, instead     float64 // bytes on the wire
	read, insteadRead float64 // uncompressed bytes of readable content
	basis             savings.Basis
	collections       bool    // documents that name pages contain all their text
	fetched           int64   // requests for pages
	named             int64   // pages named in indexes
	collectionPages   int64   // pages named in documents that may contain their text
	collectionBytes   float64 // bytes of that text
}

func (t *daySum) add(s *store.Sum, pages Pages, c savings.Coefficients) {
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
		sized := min(s.HTMLKnown, s.Results)
		t.Measured += sized
		t.insteadRead += float64(s.HTML)
		t.instead += float64(s.Received)
		if unknown := s.HTML - s.HTMLWithReceived; unknown > 0 {
			t.instead += float64(unknown) / c.HTMLCompression
			t.basis = savings.Estimate
		}
		t.estimate(s.Results-sized, pages)
	case store.EndpointSearch:
		t.read += float64(s.Size)
	case store.EndpointIndex:
		t.named += s.Results
		if s.Outcome == store.Sent && t.collections {
			t.collectionPages += s.Results
			t.collectionBytes += max(0, float64(s.Size-listEntry*s.Results))
		}
	}
}

// estimate adds n pages of average size.
func (t *daySum) estimate(n int64, pages Pages) {
	if n <= 0 {
		return
	}
	t.instead += float64(n) * pages.HTML.Received
	t.insteadRead += float64(n) * pages.HTML.Bytes
	t.basis = savings.Estimate
}

// settle computes the figures of one bot and day. Each page of the site counts at most once: in a
// collection, or in ZeroFetch.
func settle(day []*daySum, pages Pages, c savings.Coefficients) {
	var html int64
	for _, t := range day {
		if t.Protocol == asHTML {
			html = t.fetched
		}
	}
	most := slices.SortedStableFunc(slices.Values(day), func(a, b *daySum) int { return cmp.Compare(b.named, a.named) })
	left := pages.Count
	for _, t := range most {
		t.read += t.collectionBytes
		if text := pages.HTML.Bytes / c.HTMLPerText; text > 0 {
			t.Carried = int64(min(t.collectionBytes/text, float64(min(t.collectionPages, left))))
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
