package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/store"
)

const (
	rowsPerPage = 50
	// Maximum number of pages for a full scan. Larger sites use the search index.
	maxScanned = 20_000
	// Maximum number of pages with read counts.
	pagesCounted = 5000
	// trafficTime is the period of the traffic counts.
	trafficTime = 30 * 24 * time.Hour
)

// Orders of the page list.
const (
	byAddress = ""
	byChange  = "changed"
	byDate    = "published"
	byTraffic = "read"
)

// pagesPage lists the pages of the site.
type pagesPage struct {
	Query   string // the search: the start of a URL, or words
	Section string
	Order   string
	Orders  []pagesOrder
	Site    millrace.Site
	Rows    []pageRow
	Counted bool   // traffic is recorded
	First   bool   // this is the first part of the list
	Next    string // path and query of the next part, or ""
	Words   bool   // the search index found the pages
	Found   int    // total number of results
	Note    string
}

type pagesOrder struct{ Order, Label string }

// pageRow is one page of the list.
type pageRow struct {
	Path       string
	Title      string
	Kind       millrace.PageKind
	Section    string
	Modified   time.Time
	HTML       int64 // size of the HTML in bytes; 0 = unknown
	Read       int64 // requests for the page, by any protocol
	Unmodified int64 // requests with a 304
	Published  bool  // the site has the page now
	Gone       bool  // the page was published and then deleted
}

// listed shows the pages of the site, ordered by URL, date or number of reads, or found by a
// search.
func (d *Dashboard) listed(r *http.Request) (*reply, error) {
	v, err := d.view(r.Context())
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	p := &pagesPage{
		Query: strings.TrimSpace(q.Get("q")), Section: q.Get("section"), Order: q.Get("order"), Site: v.Site(), Counted: d.site.Usage != nil,
		Orders: []pagesOrder{{byAddress, "By address"}, {byChange, "Last changed"}, {byDate, "Newest"}},
	}
	if p.Counted {
		p.Orders = append(p.Orders, pagesOrder{byTraffic, "Most read"})
	}
	if p.Site.Pages > maxScanned {
		p.Section, p.Site.Sections = "", nil
	}
	if len(p.Site.Sections) > 200 {
		p.Site.Sections = p.Site.Sections[:200]
	}
	skip, _ := strconv.Atoi(q.Get("skip"))
	skip = min(max(skip, 0), pagesCounted)
	after := q.Get("after")
	p.First = after == "" && skip == 0
	top, err := d.mostRead(r.Context())
	if err != nil {
		return nil, err
	}
	switch {
	case p.Query != "" && !strings.HasPrefix(p.Query, "/") && p.Site.Pages > maxScanned:
		err = p.words(r.Context(), v, skip)
	case p.Order == byTraffic && p.Counted && p.Query == "" && p.Section == "":
		err = d.readMost(r.Context(), p, v, top, skip)
	default:
		err = p.scan(r.Context(), v, after)
	}
	if errors.Is(err, millrace.ErrNotFound) && after != "" {
		return &reply{To: withQuery("/pages", "q", p.Query, "section", p.Section, "order", p.Order), Message: wrong("The page at which this part of the list began no longer exists. This is the start of the list.")}, nil
	}
	if err != nil {
		return nil, err
	}
	return &reply{Data: p}, d.completeRows(r.Context(), p.Rows, top)
}

// mostRead returns the pages with the most requests.
func (d *Dashboard) mostRead(ctx context.Context) ([]store.TopItem, error) {
	if d.site.Usage == nil {
		return nil, nil
	}
	now := d.now()
	top, err := d.site.Usage.Top(ctx, d.site.Name, store.TopPages, now.Add(-trafficTime), now, pagesCounted)
	if err != nil && !errors.Is(err, millrace.ErrNotFound) {
		return nil, err
	}
	return top, nil
}

// completeRows adds the HTML size and the traffic of pages.
func (d *Dashboard) completeRows(ctx context.Context, rows []pageRow, top []store.TopItem) error {
	at := make(map[string]int, len(rows))
	urls := make([]string, len(rows))
	for i, row := range rows {
		at[row.Path], urls[i] = i, row.Path
	}
	for _, item := range top {
		if i, ok := at[item.Name]; ok {
			rows[i].Read, rows[i].Unmodified = item.Events, item.Empty
		}
	}
	sizes, err := d.site.Pages.HTMLSizes(ctx, urls)
	if err != nil {
		return err
	}
	for i, w := range sizes {
		rows[i].HTML = w.Bytes
	}
	return nil
}

// add adds a row for a page.
func (p *pagesPage) add(page *millrace.Page) {
	p.Rows = append(p.Rows, pageRow{
		Path: canon.Relative(p.Site.Base, page.URL), Title: page.Title, Kind: page.Kind, Section: page.Section, Modified: page.Modified, Published: true,
	})
}

// scan adds the next pages that match the query, starting after the page with the path in after.
func (p *pagesPage) scan(ctx context.Context, v millrace.View, after string) error {
	order := map[string]millrace.Order{byChange: millrace.BySeq, byDate: millrace.ByPublished}[p.Order]
	if order == millrace.ByURL {
		p.Order = byAddress
	}
	scan := millrace.Scan{Section: p.Section, Order: order, After: after}
	prefix, words := "", strings.Fields(strings.ToLower(p.Query))
	if strings.HasPrefix(p.Query, "/") {
		prefix = canon.Relative(p.Site.Base, (&url.URL{Path: p.Query}).EscapedPath())
		if path, query, asks := strings.Cut(p.Query, "?"); asks {
			prefix = (&url.URL{Path: path}).EscapedPath() + "?" + query
		}
		if strings.Contains(p.Query, "%") {
			prefix = p.Query // percent-encoded, as in the list
		}
		p.Order, scan.Order = byAddress, millrace.ByURL
		if after == "" {
			switch page, err := v.Page(ctx, millrace.Ref{URL: prefix}); {
			case err == nil && (p.Section == "" || page.Section == p.Section):
				p.add(page)
			case err != nil && !errors.Is(err, millrace.ErrNotFound):
				return err
			}
			scan.After = prefix
		}
	}
	last := after
	for page, err := range v.Scan(ctx, scan) {
		if err != nil {
			return err
		}
		pagePath := canon.Relative(p.Site.Base, page.URL)
		if prefix != "" && !strings.HasPrefix(pagePath, prefix) {
			return nil
		}
		if prefix == "" && !hasAll(strings.ToLower(page.Title)+" "+strings.ToLower(pagePath), words) {
			continue
		}
		if len(p.Rows) == rowsPerPage {
			p.Next = withQuery("/pages", "q", p.Query, "section", p.Section, "order", p.Order, "after", last)
			return nil
		}
		p.add(page)
		last = pagePath
	}
	return nil
}

// hasAll reports whether a text contains all words.
func hasAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// readMost adds the pages with the most requests.
func (d *Dashboard) readMost(ctx context.Context, p *pagesPage, v millrace.View, top []store.TopItem, skip int) error {
	for i, item := range top[min(skip, len(top)):] {
		if i == rowsPerPage {
			p.Next = withQuery("/pages", "order", p.Order, "skip", skip+rowsPerPage)
			return nil
		}
		page, err := v.Page(ctx, millrace.Ref{URL: item.Name})
		switch {
		case errors.Is(err, millrace.ErrNotFound):
			gone, err := d.gone(ctx, v, item.Name)
			if err != nil {
				return err
			}
			p.Rows = append(p.Rows, pageRow{Path: item.Name, Gone: gone})
		case err != nil:
			return err
		default:
			p.add(page)
		}
	}
	return nil
}

// gone reports whether a path is that of a deleted page that a protocol had published.
func (d *Dashboard) gone(ctx context.Context, v millrace.View, path string) (bool, error) {
	for _, proto := range d.site.Protocols {
		switch _, err := v.Tag(ctx, proto.Name, path); {
		case errors.Is(err, millrace.ErrGone):
			return true, nil
		case err != nil && !errors.Is(err, millrace.ErrNotFound) && !errors.Is(err, millrace.ErrInvalid):
			return false, err
		}
	}
	return false, nil
}

// words adds the pages that the search index finds.
func (p *pagesPage) words(ctx context.Context, v millrace.View, skip int) error {
	p.Words, p.Order = true, byAddress
	s, ok := v.(millrace.Searcher)
	if !ok {
		return fmt.Errorf("search: %w", millrace.ErrUnavailable)
	}
	found, err := s.Search(ctx, millrace.Query{Text: p.Query, Skip: skip, Limit: rowsPerPage, PerPage: 1})
	if errors.Is(err, millrace.ErrUnavailable) {
		p.Note = "The search index is not ready yet. Until then, only paths can be searched: start with a /."
		return nil
	}
	if err != nil {
		return err
	}
	p.Found = found.Total
	if found.Corrected != "" {
		p.Note = "No results for this query. Showing results for “" + printable(found.Corrected) + "”."
	}
	for _, hit := range found.Hits {
		page, err := v.Page(ctx, millrace.Ref{URL: hit.URL})
		if errors.Is(err, millrace.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		p.add(page)
	}
	if skip+len(found.Hits) < found.Total && len(found.Hits) > 0 && skip+rowsPerPage <= pagesCounted {
		p.Next = withQuery("/pages", "q", p.Query, "skip", skip+rowsPerPage)
	}
	return nil
}
