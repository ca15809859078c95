package report

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"

	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/savings"
)

// Documents compares the pages that machines fetched with Markdown documents of the same pages. In
// the figures, spent is the cost of the documents, and instead_of is the cost of the pages as
// logged.
type Documents struct {
	From        savings.Origin `json:"from"`              // source of the sizes: "sample" = pages of the site; "text" = the ratio of other sites
	Sample      *Sample        `json:"sample,omitempty"`  // measured pages
	Bytes       savings.Figure `json:"bytes"`             // bytes on the wire
	Conditional savings.Figure `json:"conditional_bytes"` // bytes on the wire if bots also sent conditional requests, and got a 304 for probably unchanged pages
	Tokens      savings.Figure `json:"tokens"`            // tokens of the content
	KWh         savings.Figure `json:"kwh"`               // energy of the transfer in kWh
}

// Sample contains the sizes of measured pages. Compressed sizes are those of gzip -6.
type Sample struct {
	Pages        int   `json:"pages"`
	Failed       int   `json:"failed"`        // pages that could not be fetched, or have no content
	HTML         int64 `json:"html"`          // bytes of the HTML of the measured pages
	HTMLGzip     int64 `json:"html_gzip"`     // the same, compressed
	Document     int64 `json:"document"`      // bytes of the documents of the measured pages
	DocumentGzip int64 `json:"document_gzip"` // the same, compressed

	visits, coded     float64 // visits of these pages, and visits whose logged size is that of compressed HTML
	logged, documents float64 // bytes of the visits as logged, and as documents
}

// Bytes of HTML per byte of Markdown, measured by bench/html.go on the same 476 articles as the
// [savings.Coefficients].
const (
	HTMLPerDocument     = 11.3
	HTMLPerDocumentGzip = 5.8 // both compressed by gzip -6
)

// documents returns the comparison for the pages in t, or nil if t has none. If s is nil or empty,
// the comparison is an estimate from other sites. For bytes on the wire, it then uses the ratio of
// compressed sizes, because this ratio is lower.
func documents(t *Traffic, s *Sample, c savings.Coefficients) *Documents {
	if t.PageBytes == 0 {
		return nil
	}
	d := &Documents{From: savings.FromText, Sample: s}
	wire, plain, html := 1/HTMLPerDocumentGzip, 1/HTMLPerDocument, 1.0
	if s != nil && s.Pages > 0 {
		d.From = savings.FromSample
		wire, plain = s.documents/s.logged, float64(s.Document)/float64(s.HTML)
		html += s.coded / s.visits * (float64(s.HTML)/float64(s.HTMLGzip) - 1)
	}
	pages, unchanged := float64(t.PageBytes), float64(t.UnchangedPageBytes)
	d.Bytes = savings.NewFigure(math.Round(pages*wire), pages, savings.Estimate)
	d.Conditional = savings.NewFigure(math.Round((pages-unchanged)*wire), pages, savings.Estimate)
	read := pages * html / c.BytesPerToken
	d.Tokens = savings.NewFigure(math.Round(read*plain), math.Round(read), savings.Estimate)
	d.KWh = savings.NewFigure(d.Bytes.Spent/1e9*c.KWhPerGB, pages/1e9*c.KWhPerGB, savings.Estimate)
	return d
}

// Names of the coefficients that a [Log] uses. The other coefficients estimate the HTML of pages
// from their text.
const (
	perGB    = "kwh-per-gb"
	perToken = "bytes-per-token"
)

// coefficients returns the coefficients with the given names.
func coefficients(all []savings.Coefficient, names ...string) []savings.Coefficient {
	return slices.DeleteFunc(slices.Clone(all), func(c savings.Coefficient) bool { return !slices.Contains(names, c.Name) })
}

const (
	samplePages = 10
	sampleTries = 20
)

// measure fetches the most requested pages of the site and compares their HTML with their
// documents. The client must obey robots.txt. out must be the result of r.report.
func (r *logReport) measure(ctx context.Context, client *http.Client, out *Report) error {
	log := out.Served[0].Log
	s := new(Sample)
	base, err := url.Parse(r.o.Site)
	if err != nil {
		return err
	}
	var failed error
	for _, name := range r.pages.names(sampleTries) {
		p := r.pages.of[name]
		if s.Pages == samplePages {
			break
		}
		if p.sent == 0 {
			continue
		}
		address, err := canon.URL(canon.Absolute(canon.Origin(base.String()), name))
		if err == nil {
			err = s.add(ctx, client, address, p)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.Failed++
			failed = errors.Join(failed, err)
		}
	}
	if s.Pages == 0 && s.Failed > 0 {
		return fmt.Errorf("measure pages of %s: %w", r.o.Site, failed)
	}
	log.Documents = documents(&log.Total, s, r.o.Coefficients)
	return nil
}

// add measures a page.
func (s *Sample) add(ctx context.Context, client *http.Client, address string, p *TopPage) error {
	body, address, contentType, err := ingest.Document(ctx, client, address)
	if err != nil {
		return err
	}
	res, err := extract.HTML(ctx, body, address, &extract.Options{ContentType: contentType})
	if err != nil {
		return err
	}
	if res.Reason != nil {
		return fmt.Errorf("%s: %w", address, res.Reason)
	}
	document := []byte(res.Page.Markdown())
	html, small := float64(len(body)), float64(zipped(body))
	logged, visits := float64(p.pageBytes)/float64(p.sent), float64(p.sent)
	s.Pages++
	s.HTML += int64(len(body))
	s.HTMLGzip += int64(small)
	s.Document += int64(len(document))
	s.DocumentGzip += int64(zipped(document))
	size := float64(len(document)) // in the content coding of the logged page
	if math.Abs(math.Log(logged/small)) < math.Abs(math.Log(logged/html)) {
		size = float64(zipped(document))
		s.coded += visits
	}
	s.visits += visits
	s.logged += logged * visits
	s.documents += size * visits
	return nil
}

// zipped returns the size of b compressed by gzip -6.
func zipped(b []byte) int {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, 6)
	if err == nil {
		_, err = w.Write(b)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return len(b) // never happens, because writing to a buffer never fails
	}
	return out.Len()
}
