package savings

import (
	"math"
	"strconv"

	"github.com/millrace/millrace/store"
)

// Basis is the method by which a figure was obtained.
type Basis string

// Values of Basis.
const (
	Measured Basis = "measured" // counted, not estimated
	Estimate Basis = "estimate" // computed with a coefficient, or from other pages
)

// Origin is the source of the size of a site's HTML.
type Origin string

// Values of Origin.
const (
	FromHTML   Origin = "html"   // measured on as many HTML documents as the site has pages
	FromSample Origin = "sample" // the mean of a sample of HTML documents
	FromText   Origin = "text"   // estimated from the text of the pages
	FromNone   Origin = "none"   // the size is unknown
)

// sampled is the minimum number of HTML documents for a mean.
const sampled = 10

// Figure contains the amount spent, the amount of the baseline, and the difference.
type Figure struct {
	Spent   float64 `json:"spent"`      // amount spent
	Instead float64 `json:"instead_of"` // amount that fetching HTML would have cost
	Saved   float64 `json:"saved"`      // the difference; negative if more was spent
	Basis   Basis   `json:"basis"`      // "measured" or "estimate"
}

// NewFigure returns a figure. b is the basis of instead.
func NewFigure(spent, instead float64, b Basis) Figure {
	return Figure{Round(spent), Round(instead), Round(instead - spent), b}
}

// Round rounds a sum to 12 significant digits, unless it is a whole number.
func Round(f float64) float64 {
	if f != math.Trunc(f) {
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'g', 12, 64), 64)
	}
	return f
}

// Add returns the sum of two figures. If either is an estimate, the sum is an estimate.
func (f Figure) Add(g Figure) Figure {
	if g.Basis == Estimate {
		f.Basis = Estimate
	}
	return NewFigure(f.Spent+g.Spent, f.Instead+g.Instead, f.Basis)
}

// HTML is the mean size of a site's HTML pages, in bytes.
type HTML struct {
	Received  float64 `json:"received"`  // bytes on the wire; with header fields if they were measured in pulls
	Bytes     float64 `json:"bytes"`     // bytes after decoding
	Documents int64   `json:"documents"` // number of measured documents
	From      Origin  `json:"from"`      // source of the size: html, sample, text or none
}

// Saved contains the savings of one or more pulls of a site.
type Saved struct {
	Pages      int64 `json:"pages"`      // pages whose state is known after a pull, counted once per pull
	Fetched    int64 `json:"fetched"`    // pages that were fetched
	Unmodified int64 `json:"unmodified"` // pages that were checked one by one and had not changed
	Skipped    int64 `json:"skipped"`    // pages that were not requested, because a list showed that they had not changed

	Conditional int64 `json:"conditional"`  // conditional requests
	NotModified int64 `json:"not_modified"` // requests whose response was a 304

	SkipRate        *float64 `json:"skip_rate,omitempty"`         // share of skipped pages; absent if there are no pages
	NotModifiedRate *float64 `json:"not_modified_rate,omitempty"` // not_modified divided by conditional; absent if conditional is 0

	HTML     *HTML  `json:"html,omitempty"` // size of the site's HTML; absent in a sum of sites
	Requests Figure `json:"requests"`       // number of requests
	Bytes    Figure `json:"bytes"`          // bytes received
	Tokens   Figure `json:"tokens"`         // tokens of the content
	KWh      Figure `json:"kwh"`            // energy of the transfer in kWh
}

// Mean returns the mean size of a site's HTML pages in bytes. If enough pages were measured, it
// uses their sizes; otherwise it estimates the size from text, the mean size of the pages' text. A
// size of 0 is unknown. If the size on the wire was not measured, Mean estimates it. all reports
// whether every page was measured.
func Mean(c Coefficients, measured HTML, all bool, text float64) HTML {
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

// Of returns the savings of the pulls in t, which are pulls of one site. site is the traffic of all
// pulls of the site; Of uses it only to compute the mean sizes of HTML and text.
func Of(t, site store.Traffic, c Coefficients) *Saved {
	s := &Saved{
		Pages: t.Pages, Fetched: t.Fetched, Unmodified: t.Unmodified, Skipped: max(0, t.Pages-t.Fetched-t.Unmodified),
		Conditional: t.Conditional, NotModified: t.NotModified,
	}
	measured, text := HTML{Documents: site.HTML}, 0.0
	if site.HTML > 0 {
		measured.Received, measured.Bytes = float64(site.HTMLReceived)/float64(site.HTML), float64(site.HTMLBytes)/float64(site.HTML)
	}
	if site.Fetched > 0 {
		text = float64(site.Text) / float64(site.Fetched)
	}
	s.HTML = new(Mean(c, measured, site.HTML*t.Pulls >= t.Pages, text))
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

// Add adds the savings u of another site to s.
func (s *Saved) Add(u *Saved) {
	s.Pages, s.Fetched, s.Unmodified, s.Skipped = s.Pages+u.Pages, s.Fetched+u.Fetched, s.Unmodified+u.Unmodified, s.Skipped+u.Skipped
	s.Conditional, s.NotModified = s.Conditional+u.Conditional, s.NotModified+u.NotModified
	s.Requests, s.Bytes, s.Tokens, s.KWh = s.Requests.Add(u.Requests), s.Bytes.Add(u.Bytes), s.Tokens.Add(u.Tokens), s.KWh.Add(u.KWh)
	s.HTML = nil
	s.rate()
}

// rate sets the rates of s and returns s.
func (s *Saved) rate() *Saved {
	s.SkipRate, s.NotModifiedRate = Share(s.Skipped, s.Pages), Share(s.NotModified, s.Conditional)
	return s
}

// Share returns n/of, or nil if of is 0.
func Share(n, of int64) *float64 {
	if of == 0 {
		return nil
	}
	return new(float64(n) / float64(of))
}
