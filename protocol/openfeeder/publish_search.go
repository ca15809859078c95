package openfeeder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// Costly reports whether a request is a search. All other requests are lookups.
func (p *publisher) Costly(r *http.Request) bool {
	if p.o.Static || r.URL.EscapedPath() != endpoint {
		return false
	}
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		name, _, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(name); err == nil && name == "q" {
			return true
		}
	}
	return false
}

// search returns the response to q (3.1): the ranked index, with the chunks found. It searches
// before it renders, because the ETag depends on the result.
func (p *publisher) search(ctx context.Context, v millrace.View, q query) (*millrace.Document, error) {
	site := v.Site()
	s, ok := v.(millrace.Searcher)
	if !ok {
		return nil, refuse(http.StatusServiceUnavailable, serverError, "This site has no search index.")
	}
	ask := millrace.Query{Text: q.text, Skip: (min(q.page, maxPage/maxLimit) - 1) * q.limit, Limit: q.limit, MinRelevance: q.least}
	if q.url != "" {
		t, err := p.lookUp(ctx, v, q.url)
		if err != nil {
			return nil, err
		}
		q.url, ask.Page = t.URL, t.URL
	}
	found, err := s.Search(ctx, ask)
	if errors.Is(err, millrace.ErrUnavailable) {
		return nil, fmt.Errorf("%s: %w: %w", Name,
			refuse(http.StatusServiceUnavailable, serverError, "The search index is not ready: try again later."), err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: search: %w", Name, err)
	}
	x := &index{Page: q.page, TotalPages: pagesOf(found.Total, q.limit), Corrected: found.Corrected}
	x.Meta = &meta{TotalChunks: found.Total, Page: x.Page, TotalPages: x.TotalPages}
	tags := make([]string, 0, 4+2*len(found.Hits))
	if found.Note != nil {
		x.Note = found.Note.Error()
	}
	tags = append(tags, "search", site.Base, fmt.Sprint(q.page, q.limit, found.Total), found.Corrected, x.Note)
	var pages []millrace.Tag
	best, same := map[string]float64{}, map[string]int{}
	for _, h := range found.Hits {
		if _, seen := best[h.URL]; !seen {
			t, err := v.Tag(ctx, Name, h.URL)
			if errors.Is(err, millrace.ErrNotFound) {
				continue // the index of passages also contains pages without a document
			}
			if err != nil {
				return nil, fmt.Errorf("%s: search: %w", Name, err)
			}
			best[h.URL] = round(h.Relevance)
			pages = append(pages, t)
			tags = append(tags, t.URL, t.Value)
		}
		relevance, id := round(h.Relevance), h.Chunk
		if same[h.Chunk]++; same[h.Chunk] > 1 {
			// Another page has the same text, and an ID must be unique in the response.
			id += "-" + strconv.Itoa(same[h.Chunk])
		}
		x.Chunks = append(x.Chunks, piece{ID: id, URL: h.URL, Text: canon.ValidUTF8(h.Text), Type: h.Type, Relevance: &relevance})
		tags = append(tags, id, strconv.FormatFloat(relevance, 'g', -1, 64), h.Text)
	}
	x.Meta.ReturnedChunks = len(x.Chunks)
	d := p.document(q.path(site), etag(tags...))
	if found.Stale {
		d.Header.Set("Cache-Control", "no-store") // a later search may find more
	}
	d.Query, d.PageCount = q.text, int64(len(x.Chunks))
	d.Write = func(ctx context.Context, w io.Writer) error {
		ranked := *x
		for _, t := range pages {
			it, err := p.itemAt(ctx, v, t.URL, t.Value)
			if err != nil {
				return fmt.Errorf("%s: search: %w", Name, err)
			}
			relevance := best[t.URL]
			it.URL, it.Relevance = relative(site.Base, it.URL), &relevance
			ranked.Items = append(ranked.Items, it)
		}
		_, err := w.Write(ranked.encode())
		return err
	}
	return d, nil
}

// round rounds a relevance to four decimals.
func round(f float64) float64 { return math.Round(min(max(f, 0), 1)*1e4) / 1e4 }
