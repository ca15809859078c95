package web

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/sitemap"
	"github.com/millrace/millrace/protocol"
)

const (
	// probeBytes is the maximum number of transferred bytes of a document that a probe reads.
	probeBytes = 256 << 10
	// probedLists and probedSamples are the maximum numbers of sitemaps and of pages that a probe
	// fetches.
	probedLists    = 3
	probedSamples  = 3
	probedNames    = 2000    // maximum number of pages whose URLs are stored
	feedProbeBytes = 1 << 20 // maximum number of bytes of a feed that a probe reads
	// noMarkdownRequests is the number of requests for finding out that a page has no Markdown.
	noMarkdownRequests = 2
	mostPages          = 1 << 28 // maximum number of pages in an estimate, whatever the server declares
)

// probe finds sitemaps, the feed and Markdown like a reader. It reads the beginning of the lists
// and a few pages.
func probe(ctx context.Context, client *http.Client, endpoint string, o *protocol.ReaderOptions) (*protocol.Offer, error) {
	l := &siteProbe{run: &run{reader: newReader(client, endpoint, o)}}
	if l.Err != nil {
		return nil, l.Err
	}
	site, err := l.discover(ctx)
	if err != nil {
		return nil, err
	}
	l.usual = site.usual
	if err := l.probeLists(ctx, site.lists); err != nil {
		return nil, err
	}
	if err := l.sample(ctx); err != nil {
		return nil, err
	}
	offer := l.offer()
	if site.feed != "" {
		if err := l.probeFeed(ctx, site.feed, offer); err != nil {
			return nil, err
		}
	}
	return offer, nil
}

// siteProbe is the state and the result of one probe of a site.
type siteProbe struct {
	*run
	entry    string
	pages    float64
	lists    float64
	bytes    float64     // bytes of the sitemaps
	still    float64     // bytes of the sitemaps without validators
	guessed  bool        // whether a sitemap is longer than the part that was read, or there are further sitemaps
	unending bool        // whether the length of a sitemap is unknown
	urls     []string    // first URLs in the sitemaps
	times    []time.Time // modification times of these pages

	got    int // number of probed pages with Markdown
	none   int // number of probed pages without Markdown
	size   int64
	html   int64 // bytes of the pages without Markdown
	fields millrace.Fields
}

// probeLists reads the given sitemaps, or else the first sitemap found at a usual path.
func (l *siteProbe) probeLists(ctx context.Context, named []string) error {
	var first error
	for i, u := range named {
		if l.lists > 0 && (l.usual || i >= probedLists) {
			if !l.usual {
				l.more(float64(len(named)) / float64(i))
			}
			break
		}
		err := l.probeList(ctx, u, 0)
		if err != nil && !absent(err) {
			return err
		}
		if first == nil {
			first = err
		}
		if err == nil && l.entry == "" {
			l.entry = u
		}
	}
	if l.lists == 0 {
		return fmt.Errorf("%s: %s has no sitemap: %w: %w", Name, l.Root, millrace.ErrNotFound, first)
	}
	return nil
}

// more scales the counts, assuming that the other lists are similar to those that were read.
func (l *siteProbe) more(times float64) {
	l.pages, l.lists, l.bytes, l.still, l.guessed = l.pages*times, l.lists*times, l.bytes*times, l.still*times, true
}

// probeList reads the beginning of a sitemap, or of some sitemaps of an index.
func (l *siteProbe) probeList(ctx context.Context, u string, depth int) error {
	resp, err := l.Open(ctx, "sitemap", u, sitemapTypes, fetch.Validators{})
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	at, free := resp.Request.URL, fetch.ValidatorsOf(resp) != fetch.Validators{}
	b, err := fetch.ReadBeginning(resp, probeBytes)
	if err != nil {
		return fmt.Errorf("%s: sitemap: %w", Name, err)
	}
	children, pages, err := l.names(b.Content, at)
	if err != nil && (b.Complete || pages == 0 && len(children) == 0) {
		return fmt.Errorf("%s: sitemap %s: %w", Name, u, err)
	}
	times, unending := kit.SizeRatio(b)
	size := float64(max(b.Size, b.Read))
	l.unending, l.guessed = l.unending || unending, l.guessed || !b.Complete && !unending
	l.lists, l.pages, l.bytes = l.lists+1, l.pages+times*float64(pages), l.bytes+size
	if !free {
		l.still += size
	}
	if len(children) == 0 || depth > 0 {
		return nil
	}
	return l.probeChildren(ctx, children)
}

// probeChildren probes some of the sitemaps of an index, evenly spread.
func (l *siteProbe) probeChildren(ctx context.Context, children []string) error {
	before := *l
	l.pages, l.lists, l.bytes, l.still = 0, 0, 0, 0
	read := min(len(children), probedLists)
	for i := range read {
		err := l.probeList(ctx, children[(2*i+1)*len(children)/(2*read)], 1)
		if err != nil && !absent(err) {
			return err
		}
	}
	if l.lists > 0 && len(children) > read {
		l.more(float64(len(children)) / float64(read))
	}
	l.pages, l.lists, l.bytes, l.still = l.pages+before.pages, l.lists+before.lists, l.bytes+before.bytes, l.still+before.still
	return nil
}

// names parses the beginning of a sitemap. It returns the sitemaps of an index, or the number
// of pages.
func (l *siteProbe) names(content []byte, at *url.URL) (children []string, pages int, err error) {
	for e, err := range sitemap.Parse(bytes.NewReader(content), &sitemap.Options{MaxEntries: maxEntries}) {
		if err != nil {
			return children, pages, err
		}
		u, bad := canon.Resolve(at, e.URL)
		switch {
		case bad != nil:
		case e.Sitemap:
			if len(children) < maxLists {
				children = append(children, u)
			}
		case l.here(u) != "":
			if pages++; len(l.urls) < probedNames {
				l.urls, l.times = append(l.urls, u), append(l.times, e.Modified)
			}
		}
	}
	return children, pages, nil
}

// some returns a few of the pages. If there are enough others, it omits the root, which is not
// typical.
func (l *siteProbe) some() (pages []string) {
	for _, u := range l.urls {
		if u = l.here(u); u != l.Root || len(l.urls) <= probedSamples {
			pages = append(pages, u)
		}
	}
	return kit.ProbeSample(pages)
}

// sample fetches a few pages. If none of them has Markdown, the error is ErrNotFound.
func (l *siteProbe) sample(ctx context.Context) error {
	if l.pages == 0 {
		return fmt.Errorf("%s: the sitemaps of %s name no page: %w", Name, l.Root, millrace.ErrNotFound)
	}
	if !l.manner().known() {
		some := l.some()
		for _, u := range l.urls {
			if u = l.here(u); u != l.Root && !slices.Contains(some, u) {
				some = append(some, u)
			}
		}
		if err := l.tryPages(ctx, tried(some)); err != nil {
			return err
		}
	}
	var first error
	for _, u := range l.some() {
		t, err := l.seek(ctx, u, "", false)
		switch {
		case err == nil:
			l.got++
			l.size += min(t.size, maxAlternate)
			l.fields |= t.page.Known
		case !absent(err):
			return fmt.Errorf("%s: page: %w", Name, err)
		default:
			if htmlErr, ok := errors.AsType[*htmlError](err); ok {
				l.html += htmlErr.size
			}
			l.none++
			first = cmp.Or(first, err)
		}
	}
	if l.got == 0 {
		return fmt.Errorf("%s: page: %w", Name, first)
	}
	return nil
}

// offer returns the result of the probe.
func (l *siteProbe) offer() *protocol.Offer {
	pages := int64(min(l.pages, mostPages))
	lists := protocol.Cost{Requests: int64(min(l.lists, mostPages)), Bytes: int64(min(l.bytes, 1<<45))}
	o := &protocol.Offer{
		Entry: l.entry, Pages: int(pages), Estimated: l.guessed, Detail: millrace.DetailBlocks, Fields: l.fields, Deletes: true,
		First:     protocol.Cost{Requests: 1}.Add(lists, 1), // request for the root
		Unchanged: protocol.Cost{Requests: lists.Requests, Bytes: int64(min(l.still, 1<<45))},
		Changed:   lists,
		PerChange: protocol.Cost{Requests: 1, Bytes: l.size / int64(l.got)},
	}
	missing := pages * int64(l.none) / int64(l.none+l.got)
	missCost := protocol.Cost{Requests: noMarkdownRequests, Bytes: l.html / int64(max(1, l.none))}
	o.First = o.First.Add(o.PerChange, pages-missing).Add(missCost, missing)
	// When a list has changed, the reader requests its pages without a date, and all pages without
	// Markdown, which it gets as HTML.
	undated := 0
	for _, t := range l.times {
		if t.IsZero() {
			undated++
		}
	}
	o.Changed = o.Changed.Add(protocol.Cost{Requests: 1}, (pages-missing)*int64(undated)/int64(len(l.times))).
		Add(missCost, missing).Add(protocol.Cost{Requests: 1, Bytes: missCost.Bytes}, missing)
	o.Basis = fmt.Sprintf("the sitemaps and %d of its pages", l.got)
	o.WithoutContent = int(missing)
	switch {
	case l.unending:
		o.Pages, o.WithoutContent, o.Estimated = -1, 0, false
		o.Basis = "the beginning of the sitemaps, which are longer"
	case l.guessed:
		o.Basis = "the beginning of the sitemaps and " + fmt.Sprint(l.got) + " of its pages"
	}
	return o
}

// probeFeed reduces the cost of a refresh to that of reading the feed, if the feed lists all
// changes.
func (l *siteProbe) probeFeed(ctx context.Context, at string, o *protocol.Offer) error {
	resp, err := l.Get(ctx, at, feedTypes, fetch.Validators{})
	switch {
	case err != nil && !absent(err):
		return fmt.Errorf("%s: feed: %w", Name, err)
	case err != nil:
		return nil
	}
	defer func() { _ = resp.Body.Close() }()
	if fetch.CheckStatus(resp) != nil {
		return nil
	}
	free := fetch.ValidatorsOf(resp) != fetch.Validators{}
	b, err := fetch.ReadBeginning(resp, feedProbeBytes)
	if err != nil || !b.Complete {
		return nil //nolint:nilerr // use the sitemaps without the feed
	}
	o.First = o.First.Add(protocol.Cost{Requests: 1, Bytes: b.Size}, 1)
	doc, err := decodeFeed(b.Content, resp.Request.URL)
	if err != nil {
		return nil //nolint:nilerr // use the sitemaps without the feed
	}
	fr := newFeed(at)
	fr.take(l.run, doc)
	for i, u := range l.urls {
		fr.compare(u, l.times[i])
	}
	if !fr.tombstones || fr.missed > 0 || fr.oldest.IsZero() {
		return nil
	}
	o.Unchanged, o.Changed = protocol.Cost{Requests: 1}, protocol.Cost{Requests: 1, Bytes: b.Size}
	if !free {
		o.Unchanged.Bytes = b.Size
	}
	o.Basis += ", and its feed of changes"
	return nil
}
