package tct

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
)

const (
	probeBytes = 256 << 10 // maximum number of transferred bytes of a list or document
	// maxItems is the maximum number of items in an estimate, whatever the server declares.
	maxItems = 1 << 28
)

// maxProbed is the maximum number of lists of a site that are probed. The other lists are assumed
// to be similar.
const maxProbed = 4

// probe finds the lists like a reader, and probes them and a few documents. Documents that are not
// lists are skipped.
func (d *draft) probe(ctx context.Context, client *http.Client, endpoint string, o *protocol.ReaderOptions) (*protocol.Offer, error) {
	r := d.newReader(client, endpoint, o)
	if r.Err != nil {
		return nil, r.Err
	}
	lists, cost, err := r.discover(ctx)
	if err != nil {
		return nil, err
	}
	if d.PolicyPath != "" {
		cost.Requests++ // request for the policy
	}
	p := r.NewProbe()
	var other error
	for named := len(lists); len(lists) > 0 && p.Lists < maxProbed; named-- { // the lists of an index are added at the end
		at := lists[0].URL
		lists = lists[1:]
		resp, err := r.GetList(ctx, kit.Resource{URL: at}) //nolint:bodyclose // List closes it
		if err == nil {
			err = r.announced(p.List(resp, at))
		}
		if in := listsIn(err, at); in != nil && named > 0 {
			lists = append(lists, in...)
			continue
		}
		if err != nil && !isOtherDocument(err) {
			return nil, err
		}
		if other = cmp.Or(other, err); d.OneList {
			if err == nil {
				lists = nil
			} else {
				cost.Requests++
			}
		}
	}
	if p.Lists == 0 {
		return nil, r.noList(other)
	}
	offer, err := p.Offer(ctx, len(lists), cost)
	if err == nil && d.Handshake && r.Options.CheckPageLinks {
		offer.PerChange.Requests++
		offer.First.Requests += int64(p.Items)
	}
	return offer, err
}

// siteProbe is the result of probing the beginnings of a site's lists, and some documents.
type siteProbe struct {
	r     *tctReader
	Entry string // URL of the first list
	Lists int    // number of probed lists
	Items int    // number of items in these lists

	bytes    int64      // transferred bytes of these lists
	unending bool       // a list has an unknown length, so Items and bytes are lower bounds
	guessed  bool       // a list was not read to its end, so Items is an estimate
	free     int        // number of lists that have validators
	items    []listItem // items of the first list that has items

	documents int             // number of fetched documents
	document  int64           // average size of a document in transferred bytes
	known     millrace.Fields // known fields of the documents
	detail    millrace.Detail // detail of the documents
	mismatch  int             // number of documents whose validator differs from the one in the list; the reader fetches them whenever the list changes
}

// NewProbe starts a probe of the reader's site.
func (r *tctReader) NewProbe() *siteProbe { return &siteProbe{r: r} }

// List probes the list in a response, and closes the response. If only the beginning of the list
// was read, a parse error is ignored, unless the beginning contains no items.
func (p *siteProbe) List(resp *http.Response, at string) error {
	defer resp.Body.Close()
	b, err := fetch.ReadBeginning(resp, probeBytes)
	if err != nil {
		return p.r.listError(at, err)
	}
	n, origins := 0, originsOf(resp, at)
	var items []listItem
	err = p.r.d.ScanList(bytes.NewReader(b.Content), 0, func(_ int, it *listItem, err error) bool {
		if err == nil {
			if is, bad := it.Check(origins); bad == nil {
				n++
				items = append(items, listItem{MURL: is.MURL, ETag: is.Version()})
			}
		}
		return true
	})
	if err != nil && (b.Complete || n == 0 || isOtherDocument(err)) {
		return p.r.listError(at, err)
	}
	times, unending := kit.SizeRatio(b)
	p.unending, p.guessed = p.unending || unending, p.guessed || !b.Complete && !unending
	p.Entry = cmp.Or(p.Entry, at)
	p.Lists++
	p.Items += int(min(maxItems, times*float64(n)))
	p.bytes += max(b.Size, b.Read)
	if fetch.ValidatorsOf(resp) != (fetch.Validators{}) {
		p.free++
	}
	if len(p.items) == 0 {
		p.items = items
	}
	return nil
}

// sample fetches a few documents of the first list. If a document is unavailable, it returns that
// error. If all documents fail, it returns the first error.
func (p *siteProbe) sample(ctx context.Context) error {
	var first error
	var size int64
	for _, it := range kit.ProbeSample(p.items) {
		b, tag, err := p.fetch(ctx, it.MURL)
		if err == nil && b.Complete {
			var d *document
			if d, _, err = p.r.d.Decode(b.Content); err == nil {
				page := p.r.d.Page(d)
				p.known, p.detail = p.known|page.Known, max(p.detail, page.Detail)
			}
		}
		if err != nil {
			if errors.Is(err, millrace.ErrUnavailable) {
				return err
			}
			if first == nil {
				first = err
			}
			continue
		}
		p.documents++
		if strings.Contains(tag, hashPrefix) && !millrace.SameVersion(tag, it.ETag) {
			p.mismatch++
		}
		size += min(max(b.Size, b.Read), 4<<30)
	}
	if p.documents == 0 {
		return first
	}
	p.document = size / int64(p.documents)
	if p.known == 0 {
		p.known = coreFields
	}
	if p.detail == 0 {
		p.detail = millrace.DetailText
	}
	return nil
}

func (p *siteProbe) fetch(ctx context.Context, murl string) (b *fetch.Beginning, tag string, err error) {
	resp, err := p.r.Get(ctx, murl, mediaType, fetch.Validators{})
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	if err := fetch.CheckStatus(resp); err != nil {
		return nil, "", err
	}
	if final, err := canon.URL(resp.Request.URL.String()); err != nil || canon.Origin(final) != canon.Origin(murl) {
		return nil, "", fmt.Errorf("%s: redirects to another origin: %w", murl, millrace.ErrInvalid)
	}
	b, err = fetch.ReadBeginning(resp, probeBytes)
	return b, resp.Header.Get("ETag"), err
}

// Offer fetches a few documents, and returns the offer of the site. rest is the number of lists
// that were not probed, and discovery is the cost of finding the lists.
func (p *siteProbe) Offer(ctx context.Context, rest int, discovery protocol.Cost) (*protocol.Offer, error) {
	if err := p.sample(ctx); err != nil {
		return nil, fmt.Errorf("%s: document: %w", p.r.d.Name, err)
	}
	all := p.Lists + rest
	pages, lists := int64(p.Items*all/p.Lists), protocol.Cost{Requests: int64(all), Bytes: p.bytes * int64(all) / int64(p.Lists)}
	offer := &protocol.Offer{
		Entry: p.Entry, Pages: int(pages), Estimated: p.guessed, Detail: p.detail, Fields: p.known, Deletes: true, Basis: p.basis(),
		Unchanged: protocol.Cost{Requests: lists.Requests},
		Changed:   lists,
		PerChange: protocol.Cost{Requests: 1, Bytes: p.document},
	}
	offer.First = discovery.Add(lists, 1).Add(offer.PerChange, pages)
	offer.Changed.Requests += pages * int64(p.mismatch) / int64(max(1, p.documents))
	if p.free < p.Lists {
		offer.Unchanged.Bytes = lists.Bytes
	}
	if p.unending {
		offer.Pages, offer.Estimated = -1, false
	}
	return offer, nil
}

// basis describes the data on which an offer is based.
func (p *siteProbe) basis() string {
	s := "the list"
	if p.guessed || p.unending {
		s = "the beginning of the list"
	}
	if p.unending {
		s += ", which is longer"
	}
	if p.documents < p.Items {
		s += fmt.Sprintf(" and %d of its documents", p.documents)
	}
	return s
}
