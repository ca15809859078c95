package discover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/weblink"
	"github.com/millrace/millrace/protocol"
)

const (
	maxPage    = 2 << 20 // maximum decoded size of a page
	usualBytes = 20_000  // assumed size of an HTML page in bytes if none was fetched
)

// document is a fetched document.
type document struct {
	url    *url.URL // URL after redirects
	header http.Header
	html   bool
	body   []byte // decoded body
	size   int64  // size of the coded body in bytes
}

func (d *document) head() weblink.Head { return weblink.HTML(bytes.NewReader(d.body), d.url) }

// counting counts the bytes that are read from a body.
type counting struct {
	io.ReadCloser
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n += int64(n)
	return n, err
}

// ask requests a URL. It returns an error unless the status of the response is 2xx.
func (l *prober) ask(ctx context.Context, u, accept string) (*http.Response, *counting, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", err, millrace.ErrInvalid)
	}
	req.Header.Set("Accept", accept)
	client := l.client
	if l.Reader != nil {
		client = fetch.WithKeys(client, l.Reader.Key)
	}
	resp, err := fetch.Do(ctx, client, req)
	if err != nil {
		return nil, nil, err
	}
	if err := fetch.CheckStatus(resp); err != nil {
		_ = resp.Body.Close()
		return nil, nil, err
	}
	count := &counting{ReadCloser: resp.Body}
	resp.Body = count
	return resp, count, nil
}

// get fetches a page.
func (l *prober) get(ctx context.Context, u string) (*document, error) {
	resp, count, err := l.ask(ctx, u, "text/html, */*;q=0.1")
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	d := &document{url: resp.Request.URL, header: resp.Header, html: weblink.IsHTML(resp.Header)}
	d.body, err = fetch.ReadBody(resp, maxPage)
	d.size = count.n
	return d, err
}

// probeWeb returns the way that reads the pages and follows their links. protocols are the other
// ways, which may know the number of pages.
func (l *prober) probeWeb(ctx context.Context, protocols []*Way) Way {
	w := Way{Protocol: Web, Allowed: true}
	l.site.Page = protocol.Cost{Requests: 1, Bytes: usualBytes}
	switch {
	case refusedByRobots(l.homeErr):
		w.Allowed = false
		fallthrough
	case l.homeErr != nil:
		w.Allowed = w.Allowed && !errors.Is(l.homeErr, millrace.ErrForbidden)
		w.Reason, w.Code, w.Unavailable = reason(l.homeErr, Web), millrace.ErrorCode(l.homeErr), errors.Is(l.homeErr, millrace.ErrUnavailable)
	case l.site.Moved != "":
		w.Code, w.Reason = "site-moved", "the root redirects to another site, "+l.site.Moved
	case !l.home.html:
		w.Code, w.Reason = "no-html", "the root is not HTML: "+l.home.header.Get("Content-Type")
	}
	if w.Reason != "" {
		return w
	}
	if was := l.earlier(Web); was != nil {
		l.site.Page = l.Previous.Page
		return *was
	}
	if l.Quick && !slices.ContainsFunc(protocols, func(r *Way) bool { return r != nil && r.Open() }) {
		// With only one way, there is nothing to compare.
		w.Offer = &protocol.Offer{
			Entry: l.site.URL, Pages: -1, Detail: millrace.DetailBlocks, Fields: millrace.AllFields &^ millrace.FieldExtra, Deletes: true,
			Basis: "nothing, since there is no other way", First: l.site.Page, Unchanged: l.site.Page, Changed: l.site.Page,
		}
		return w
	}
	s := l.estimatePages(ctx)
	l.recordObserved(s)
	pages := s.pages
	for _, r := range protocols {
		if pages < 0 && r != nil && r.Offer != nil {
			pages = max(pages, r.Offer.Pages)
		}
	}
	if pages < 0 {
		pages = s.links + 1
	}
	page, valid, of := l.samples(ctx, s)
	l.site.Page.Bytes = page
	s.basis += of
	w.Offer = l.webOffer(s, pages, page, valid)
	return w
}

// webOffer estimates the cost of reading the HTML pages. page is the size of a page in bytes, and
// valid is the fraction of pages with validators.
func (l *prober) webOffer(s pageEstimate, pages int, page int64, valid float64) *protocol.Offer {
	n := int64(max(1, pages))
	again := int64(float64(n*page) * (1 - valid)) // pages without validators are fetched again in full
	return &protocol.Offer{
		Entry: l.site.URL, Pages: s.pages, Detail: millrace.DetailBlocks, Fields: millrace.AllFields &^ millrace.FieldExtra,
		Deletes: true, Basis: s.basis,
		First:     s.lists.Add(protocol.Cost{Requests: 1, Bytes: page}, n),
		Unchanged: protocol.Cost{Requests: s.lists.Requests + n, Bytes: again + s.still},
		Changed:   protocol.Cost{Requests: s.lists.Requests + n, Bytes: again + s.lists.Bytes},
		PerChange: protocol.Cost{Bytes: int64(float64(page) * valid)},
	}
}
