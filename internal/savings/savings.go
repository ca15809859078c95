package savings

import (
	"math"
	"strconv"

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

// NewFigure makes a figure of what was spent and what the yardstick would have
// spent, which is as the basis says.
func NewFigure(spent, instead float64, b Basis) Figure {
	return Figure{Round(spent), Round(instead), Round(instead - spent), b}
}

// Round gives a sum without the noise of floating point: 12 digits, or all of a
// whole number.
func Round(f float64) float64 {
	if f != math.Trunc(f) {
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'g', 12, 64), 64)
	}
	return f
}

// Add gives the sum of two figures; an estimate makes it one.
func (f Figure) Add(g Figure) Figure {
	if g.Basis == Estimate {
		f.Basis = Estimate
	}
	return NewFigure(f.Spent+g.Spent, f.Instead+g.Instead, f.Basis)
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

// Mean gives the mean size of a site's HTML pages: what was measured, where it
// was measured of all pages or of enough of them, else what the mean text of
// them makes it, in bytes; 0 = not known. A measured size without the one on the
// wire makes that an estimate.
func (c Coefficients) Mean(measured HTML, all bool, text float64) HTML {
	h := HTML{Documents: measured.Documents, From: FromNone}
	switch {
	case h.Documents > 0 && (h.Documents >= sampled || all):
		h.Received, h.Bytes = measured.Received, measured.Bytes
		if h.From = FromSample; all {
			h.From = FromHTML
		}
	case text > 0:
		h.Bytes, h.From = text*c.HTMLPerText, FromText
	}
	if h.Received == 0 {
		h.Received = h.Bytes / c.HTMLCompression
	}
	return h
}

// Of tells what pulls of one site have saved. site is all that is known of the
// site, these pulls included; of it only HTML and text count.
func Of(t, site store.Traffic, c Coefficients) *Saved {
	s := &Saved{
		Pages: t.Pages, Brought: t.Fetched, Stand: t.Unmodified, Skipped: max(0, t.Pages-t.Fetched-t.Unmodified),
		Conditional: t.Conditional, NotModified: t.NotModified,
	}
	measured, text := HTML{Documents: site.HTML}, 0.0
	if site.HTML > 0 {
		measured.Received, measured.Bytes = float64(site.HTMLReceived)/float64(site.HTML), float64(site.HTMLBytes)/float64(site.HTML)
	}
	if site.Fetched > 0 {
		text = float64(site.Text) / float64(site.Fetched)
	}
	s.HTML = new(c.Mean(measured, site.HTML*t.Pulls >= t.Pages, text))
	basis := Estimate
	if s.HTML.From == FromHTML {
		basis = Measured
	}
	pages := float64(t.Pages)
	s.Requests = NewFigure(float64(t.Requests), pages, Measured)
	s.Bytes = NewFigure(float64(t.Received), math.Round(pages*s.HTML.Received), basis)
	s.Tokens = NewFigure(math.Round(float64(t.Text)/c.BytesPerToken), math.Round(pages*s.HTML.Bytes/c.BytesPerToken), Estimate)
	s.KWh = NewFigure(s.Bytes.Spent/1e9*c.KWhPerGB, s.Bytes.Instead/1e9*c.KWhPerGB, Estimate)
	return s.rate()
}

// Add adds what was saved of another site.
func (s *Saved) Add(u *Saved) {
	s.Pages, s.Brought, s.Stand, s.Skipped = s.Pages+u.Pages, s.Brought+u.Brought, s.Stand+u.Stand, s.Skipped+u.Skipped
	s.Conditional, s.NotModified = s.Conditional+u.Conditional, s.NotModified+u.NotModified
	s.Requests, s.Bytes, s.Tokens, s.KWh = s.Requests.Add(u.Requests), s.Bytes.Add(u.Bytes), s.Tokens.Add(u.Tokens), s.KWh.Add(u.KWh)
	s.HTML = nil
	s.rate()
}

// rate makes the rates of the counts.
func (s *Saved) rate() *Saved {
	s.SkipRate, s.NotModifiedRate = Share(s.Skipped, s.Pages), Share(s.NotModified, s.Conditional)
	return s
}

// Share gives n of all; nil: there are none.
func Share(n, of int64) *float64 {
	if of == 0 {
		return nil
	}
	return new(float64(n) / float64(of))
}
