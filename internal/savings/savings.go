package savings

import (
	"math"
	"strconv"

	"github.com/millrace/millrace/store"
)

// Basis says how a figure was obtained.
type Basis string

// Values of Basis.
const (
	Measured Basis = "measured" // counted
	Estimate Basis = "estimate" // computed with a coefficient, or from other pages
)

// Origin is the source of the size of a site's HTML.
type Origin string

// Values of Origin.
const (
	FromHTML   Origin = "html"   // as many HTML documents as the site has pages
	FromSample Origin = "sample" // the mean of fewer documents
	FromText   Origin = "text"   // the text of the pages
	FromNone   Origin = "none"   // unknown
)

// sampled is the least number of HTML documents for a mean.
const sampled = 10

// Figure is the amount spent, the amount of the baseline, and the difference.
type Figure struct {
	Spent   float64 `json:"spent"`
	Instead float64 `json:"instead_of"`
	Saved   float64 `json:"saved"` // below 0: more was spent
	Basis   Basis   `json:"basis"` // of Instead and Saved
}

// NewFigure returns a figure with the basis of instead.
func NewFigure(spent, instead float64, b Basis) Figure {
	return Figure{Round(spent), Round(instead), Round(instead - spent), b}
}

// Round rounds a sum to 12 digits, or to a whole number.
func Round(f float64) float64 {
	if f != math.Trunc(f) {
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'g', 12, 64), 64)
	}
	return f
}

// Add returns the sum of two figures; with an estimate, it is one.
func (f Figure) Add(g Figure) Figure {
	if g.Basis == Estimate {
		f.Basis = Estimate
	}
	return NewFigure(f.Spent+g.Spent, f.Instead+g.Instead, f.Basis)
}

// HTML is the mean size of a site's HTML pages, in bytes.
type HTML struct {
	Received  float64 `json:"received"`  // on the wire, with header fields
	Bytes     float64 `json:"bytes"`     // uncompressed
	Documents int64   `json:"documents"` // measured documents
	From      Origin  `json:"from"`
}

// Saved is the savings by one or more pulls of a site.
type Saved struct {
	Pages   int64 `json:"pages"`   // pages whose state the pulls know, each once per pull
	Brought int64 `json:"brought"` // fetched pages
	Stand   int64 `json:"stand"`   // pages confirmed one by one
	Skipped int64 `json:"skipped"` // pages not requested, because a list confirmed them

	Conditional int64 `json:"conditional"`  // conditional requests, for lists too
	NotModified int64 `json:"not_modified"` // of those, answered with 304

	SkipRate        *float64 `json:"skip_rate,omitempty"`         // Skipped of Pages; nil: Pages is 0
	NotModifiedRate *float64 `json:"not_modified_rate,omitempty"` // NotModified of Conditional; nil: Conditional is 0

	HTML     *HTML  `json:"html,omitempty"` // nil: several sites
	Requests Figure `json:"requests"`
	Bytes    Figure `json:"bytes"` // received on the wire
	Tokens   Figure `json:"tokens"`
	KWh      Figure `json:"kwh"`
}

// Mean returns the mean size of a site's HTML pages in bytes: measured if enough
// pages were, else from the mean of their text; 0 = unknown. Without the size on
// the wire, it is an estimate.
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

// Of returns the savings by pulls of one site. site is the traffic of all its
// pulls, used for HTML and text only.
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

// Add adds the savings of another site.
func (s *Saved) Add(u *Saved) {
	s.Pages, s.Brought, s.Stand, s.Skipped = s.Pages+u.Pages, s.Brought+u.Brought, s.Stand+u.Stand, s.Skipped+u.Skipped
	s.Conditional, s.NotModified = s.Conditional+u.Conditional, s.NotModified+u.NotModified
	s.Requests, s.Bytes, s.Tokens, s.KWh = s.Requests.Add(u.Requests), s.Bytes.Add(u.Bytes), s.Tokens.Add(u.Tokens), s.KWh.Add(u.KWh)
	s.HTML = nil
	s.rate()
}

// rate sets the rates.
func (s *Saved) rate() *Saved {
	s.SkipRate, s.NotModifiedRate = Share(s.Skipped, s.Pages), Share(s.NotModified, s.Conditional)
	return s
}

// Share returns n/of; nil if of is 0.
func Share(n, of int64) *float64 {
	if of == 0 {
		return nil
	}
	return new(float64(n) / float64(of))
}
