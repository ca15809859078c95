package savings

import (
	"math"

	"github.com/millrace/millrace/store"
)

// Basis says how a figure came about.
type Basis string

// The bases of figures.
const (
	Measured Basis = "measured" // counted, and nothing else
	Estimate Basis = "estimate" // with a coefficient in it, or with some pages taken for others
)

// Origin says what the size of a site's HTML is taken from.
type Origin string

// The origins of sizes.
const (
	FromHTML   Origin = "html"   // as many documents of it were had as the site has pages
	FromSample Origin = "sample" // the mean of fewer documents
	FromText   Origin = "text"   // the text of the pages
	FromNone   Origin = "none"   // nothing: of no page is anything known
)

// sampled is how many documents of HTML stand for those of a site.
const sampled = 10

// Figure is what was spent, what the yardstick would have spent, and the
// difference.
type Figure struct {
	Spent   float64 `json:"spent"`
	Instead float64 `json:"instead_of"`
	Saved   float64 `json:"saved"` // below 0: it has cost more
	Basis   Basis   `json:"basis"` // of Instead, and so of Saved
}

func figure(spent, instead float64, b Basis) Figure {
	return Figure{spent, instead, instead - spent, b}
}

func (f Figure) add(g Figure) Figure {
	if g.Basis == Estimate {
		f.Basis = Estimate
	}
	return figure(f.Spent+g.Spent, f.Instead+g.Instead, f.Basis)
}

// HTML is the mean size of a site's HTML pages, in bytes.
type HTML struct {
	Received  float64 `json:"received"`  // on the wire, with header fields
	Bytes     float64 `json:"bytes"`     // without coding
	Documents int64   `json:"documents"` // that were measured
	From      Origin  `json:"from"`
}

// Saved is what one or more pulls of a site have saved.
type Saved struct {
	Pages   int64 `json:"pages"`   // that the pulls know the state of, each once a pull
	Brought int64 `json:"brought"` // that came
	Stand   int64 `json:"stand"`   // that were looked at one by one, and stand
	Skipped int64 `json:"skipped"` // that were not asked for: the list said that they stand

	Conditional int64 `json:"conditional"`  // requests that a 304 can answer, for lists too
	NotModified int64 `json:"not_modified"` // that it did

	SkipRate        *float64 `json:"skip_rate,omitempty"`         // Skipped of Pages; nil: there are none
	NotModifiedRate *float64 `json:"not_modified_rate,omitempty"` // NotModified of Conditional; nil: there are none

	HTML     *HTML  `json:"html,omitempty"` // nil: of several sites
	Requests Figure `json:"requests"`
	Bytes    Figure `json:"bytes"` // received on the wire
	Tokens   Figure `json:"tokens"`
	KWh      Figure `json:"kwh"`
}

// Of tells what pulls of one site have saved. site is all that is known of the
// site, these pulls included; of it only HTML and text count.
func Of(t, site store.Traffic, c Coefficients) *Saved {
	s := &Saved{
		Pages: t.Pages, Brought: t.Brought, Stand: t.Stand, Skipped: max(0, t.Pages-t.Brought-t.Stand),
		Conditional: t.Conditional, NotModified: t.NotModified,
		HTML: &HTML{Documents: site.HTML, From: FromNone},
	}
	basis := Estimate
	switch {
	case site.HTML > 0 && (site.HTML >= sampled || site.HTML*t.Pulls >= t.Pages):
		s.HTML.Received, s.HTML.Bytes = float64(site.HTMLReceived)/float64(site.HTML), float64(site.HTMLBytes)/float64(site.HTML)
		if s.HTML.From = FromSample; site.HTML*t.Pulls >= t.Pages {
			s.HTML.From, basis = FromHTML, Measured
		}
	case site.Brought > 0:
		s.HTML.Bytes = float64(site.Text) / float64(site.Brought) * c.HTMLPerText
		s.HTML.Received = s.HTML.Bytes / c.HTMLCompression
		s.HTML.From = FromText
	}
	pages := float64(t.Pages)
	s.Requests = figure(float64(t.Requests), pages, Measured)
	s.Bytes = figure(float64(t.Received), math.Round(pages*s.HTML.Received), basis)
	s.Tokens = figure(math.Round(float64(t.Text)/c.BytesPerToken), math.Round(pages*s.HTML.Bytes/c.BytesPerToken), Estimate)
	s.KWh = figure(s.Bytes.Spent/1e9*c.KWhPerGB, s.Bytes.Instead/1e9*c.KWhPerGB, Estimate)
	return s.rate()
}

// Add adds what was saved of another site.
func (s *Saved) Add(u *Saved) {
	s.Pages, s.Brought, s.Stand, s.Skipped = s.Pages+u.Pages, s.Brought+u.Brought, s.Stand+u.Stand, s.Skipped+u.Skipped
	s.Conditional, s.NotModified = s.Conditional+u.Conditional, s.NotModified+u.NotModified
	s.Requests, s.Bytes, s.Tokens, s.KWh = s.Requests.add(u.Requests), s.Bytes.add(u.Bytes), s.Tokens.add(u.Tokens), s.KWh.add(u.KWh)
	s.HTML = nil
	s.rate()
}

// rate makes the rates of the counts.
func (s *Saved) rate() *Saved {
	s.SkipRate, s.NotModifiedRate = share(s.Skipped, s.Pages), share(s.NotModified, s.Conditional)
	return s
}

func share(n, of int64) *float64 {
	if of == 0 {
		return nil
	}
	return new(float64(n) / float64(of))
}
