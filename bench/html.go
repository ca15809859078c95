package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/klauspost/compress/gzip"

	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/report"
	"github.com/millrace/millrace/internal/savings"
)

// html measures the size of articles' HTML relative to their text, to the HTML in gzip, and to their
// Markdown. millrace uses these ratios to estimate savings for HTML that it has never fetched.
func (b *bench) html(ctx context.Context, data string) error {
	pages, err := readPages(data)
	if err != nil {
		return err
	}
	var html, coded, text, document float64
	var perText, perCoded, perDocument []float64
	for _, p := range pages {
		if p.Kind != "article" || p.Text == "" {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		body, err := p.html()
		if err != nil {
			return err
		}
		res, err := extract.HTML(ctx, body, "https://www.example.com/", nil)
		if err != nil {
			return err
		}
		c, err := gzipped(body)
		if err != nil {
			return err
		}
		d, err := gzipped([]byte(res.Page.Markdown()))
		if err != nil {
			return err
		}
		h, t := float64(len(body)), float64(len(p.Text))
		html, coded, text, document = html+h, coded+c, text+t, document+d
		perText, perCoded, perDocument = append(perText, h/t), append(perCoded, h/c), append(perDocument, c/d)
	}
	if len(perText) == 0 {
		return fmt.Errorf("no articles in %s", data)
	}
	slices.Sort(perText)
	slices.Sort(perCoded)
	slices.Sort(perDocument)
	used := savings.Default()
	for _, r := range []struct {
		what       string
		ours, used float64
		all        []float64
	}{
		{"bytes of HTML per byte of text", html / text, used.HTMLPerText, perText},
		{"bytes of HTML per byte of gzip -6", html / coded, used.HTMLCompression, perCoded},
		{"bytes of HTML per byte of Markdown, both compressed by gzip -6", coded / document, report.HTMLPerDocumentGzip, perDocument},
	} {
		off := r.ours / r.used
		b.add(row{
			what: fmt.Sprintf("%s, %d articles (the median %.1f)", r.what, len(r.all), r.all[len(r.all)/2]), limit: fmt.Sprintf("%.1f (used for estimates)", r.used),
			ours: fmt.Sprintf("%.1f", r.ours), ratio: fmt.Sprintf("%.2f", off), reach: "0.95 to 1.05", good: off > 0.95 && off < 1.05,
		})
	}
	return nil
}

// gzipped returns the size of b compressed by gzip -6.
func gzipped(b []byte) (float64, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, 6)
	if err != nil {
		return 0, err
	}
	_, err = w.Write(b)
	if err = errors.Join(err, w.Close()); err != nil {
		return 0, err
	}
	return float64(out.Len()), nil
}
