package discover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/sitemap"
	"github.com/millrace/millrace/protocol"
)

const (
	maxList    = 512 << 10 // maximum number of coded bytes read from a list
	maxNames   = 1000      // maximum number of sitemap URLs taken from an index
	maxLists   = 6         // maximum number of lists fetched
	maxLinks   = 2000      // maximum number of links of the root that are counted
	sampleOf   = 3         // number of pages, and of sitemaps in a list of sitemaps, that are fetched
	sampleSize = 64        // maximum number of URLs in a sample
)

// pageEstimate is an estimate of the number and size of the pages, from a sample of them.
type pageEstimate struct {
	pages int           // number of pages; -1 if unknown
	lists protocol.Cost // cost of the sitemaps
	still int64         // bytes of the sitemaps that have no validators
	links int           // number of links of the root, if there is no sitemap
	urls  []string      // sample of page URLs, evenly spread
	basis string
}

// estimatePages estimates the number of pages from the sitemaps, or else returns the links of the
// root.
func (l *prober) estimatePages(ctx context.Context) pageEstimate {
	var named []string
	for _, ref := range l.robots.Sitemaps() {
		if u, err := canon.Resolve(l.root, ref); err == nil && !sitemap.IsOther(u) && !slices.Contains(named, u) {
			named = append(named, u)
		}
	}
	c := &counter{prober: l, here: l.aliases()}
	var t listCounts
	if len(named) > 0 {
		t = c.count(ctx, named, 0)
	} else {
		for _, name := range []string{"sitemap.xml", "sitemap_index.xml"} {
			if t = c.count(ctx, []string{l.site.URL + name}, 0); t.lists > 0 {
				break
			}
		}
	}
	switch {
	case t.pages >= 1:
	case l.home == nil:
		return pageEstimate{pages: -1}
	default:
		return l.fromLinks()
	}
	s := pageEstimate{
		pages: int(math.Round(min(t.pages, 1e9))), urls: t.urls,
		lists: expectedCost{t.lists, t.bytes}.cost(), still: int64(t.still),
	}
	switch {
	case c.cut && c.open:
		s.basis = "the first part of its sitemap (which lists more pages)"
	case c.cut || float64(c.read) < t.lists:
		s.basis = fmt.Sprintf("parts of its %s", sitemapsText(t.lists))
	default:
		s.basis = "its " + sitemapsText(t.lists)
	}
	return s
}

func sitemapsText(n float64) string {
	if n < 1.5 {
		return "sitemap"
	}
	return number(int64(math.Round(n))) + " sitemaps"
}

// aliases returns the origins that the site's URLs may have: the site's own, with http and with
// https, and the one that its root declares as canonical.
func (l *prober) aliases() []string {
	_, host, _ := strings.Cut(canon.Origin(l.site.URL), "://")
	out := []string{"https://" + host, "http://" + host}
	if l.home == nil {
		return out
	}
	for _, link := range l.home.head().Links {
		if link.Is("canonical", "") {
			out = append(out, canon.Origin(link.URL))
		}
	}
	return out
}

// listCounts contains measured or estimated counts of the entries of some lists.
type listCounts struct {
	pages, lists, bytes, still float64
	urls                       []string
}

// counter counts the pages of sitemaps.
type counter struct {
	prober *prober
	here   []string // origins of the site
	read   int      // number of lists read
	cut    bool     // whether a list was not read to its end
	open   bool     // whether the length of such a list is unknown
}

// count estimates the contents of lists from a sample of them.
func (c *counter) count(ctx context.Context, lists []string, depth int) listCounts {
	var sum listCounts
	read := 0.0
	for _, u := range spread(lists) {
		if c.read == maxLists {
			break
		}
		t, children, err := c.list(ctx, u)
		if err != nil {
			c.prober.Logger.Debug("could not read sitemap", "url", u, "err", err)
			continue
		}
		read++
		if len(children) > 0 && depth < 2 {
			below := c.count(ctx, children, depth+1)
			t.pages, t.lists = t.pages+below.pages, t.lists+below.lists
			t.bytes, t.still = t.bytes+below.bytes, t.still+below.still
			t.urls = append(t.urls, below.urls...)
		}
		sum.pages, sum.lists = sum.pages+t.pages, sum.lists+t.lists
		sum.bytes, sum.still = sum.bytes+t.bytes, sum.still+t.still
		sum.urls = append(sum.urls, t.urls...)
	}
	if read == 0 {
		return listCounts{}
	}
	more := float64(len(lists)) / read
	if len(lists) <= sampleOf {
		more = 1 // the remaining lists cannot be read
	}
	return listCounts{sum.pages * more, sum.lists * more, sum.bytes * more, sum.still * more, sum.urls}
}

// list reads one sitemap, or as much of it as an estimate needs.
func (c *counter) list(ctx context.Context, u string) (t listCounts, children []string, err error) {
	c.read++
	resp, count, err := c.prober.ask(ctx, u, "application/xml, text/xml, text/plain, */*;q=0.5")
	if err != nil {
		return t, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	size := resp.ContentLength
	content, err := fetch.Decode(resp)
	if err != nil {
		return t, nil, err
	}
	defer func() { _ = content.Close() }()
	at := resp.Request.URL
	urls := &urlSample{}
	cut := false
	for e, err := range sitemap.Parse(content, nil) {
		if err != nil {
			if t.pages == 0 && len(children) == 0 {
				return t, nil, err
			}
			cut = cut || errors.Is(err, millrace.ErrTooLarge) || errors.Is(err, millrace.ErrUnavailable)
			break
		}
		abs, err := canon.Resolve(at, e.URL)
		switch {
		case err != nil:
		case e.Sitemap:
			if len(children) < maxNames {
				children = append(children, abs)
			}
		case slices.Contains(c.here, canon.Origin(abs)):
			urls.add(abs)
			if !c.prober.disallows(abs) {
				t.pages++
			}
		}
		if cut = count.n > maxList; cut {
			break
		}
	}
	t.lists, t.bytes, t.urls = 1, float64(count.n), urls.urls
	if !cut {
		// Count the bytes after the last entry as part of the transfer.
		_, _ = io.Copy(io.Discard, io.LimitReader(content, 64<<10))
		t.bytes = float64(count.n)
	} else if c.cut = true; size > count.n {
		more := float64(size) / float64(count.n)
		t.pages, t.bytes = t.pages*more, float64(size)
	} else {
		c.open = true
	}
	if (fetch.ValidatorsOf(resp) == fetch.Validators{}) {
		t.still = t.bytes
	}
	return t, children, nil
}

// spread returns up to sampleOf elements of a list, evenly spread.
func spread(list []string) []string {
	if len(list) <= sampleOf {
		return list
	}
	out := make([]string, 0, sampleOf)
	for i := range sampleOf {
		out = append(out, list[(2*i+1)*len(list)/(2*sampleOf)])
	}
	return out
}

// urlSample collects an evenly spread sample of URLs from a list of any length.
type urlSample struct {
	urls   []string
	stride int
	seen   int
}

func (k *urlSample) add(u string) {
	k.stride = max(1, k.stride)
	if k.seen++; (k.seen-1)%k.stride != 0 {
		return
	}
	if k.urls = append(k.urls, u); len(k.urls) < sampleSize {
		return
	}
	for i := range k.urls[:sampleSize/2] {
		k.urls[i] = k.urls[2*i]
	}
	k.urls, k.stride = k.urls[:sampleSize/2], 2*k.stride
}

// fromLinks returns the estimate for a site without a sitemap, with the links of the root.
func (l *prober) fromLinks() pageEstimate {
	links := pageLinks(l.home.body, l.home.head().Base, canon.Origin(l.site.URL))
	links = slices.DeleteFunc(links, func(u string) bool { return u == l.site.URL || l.disallows(u) })
	return pageEstimate{
		pages: -1, links: len(links), urls: links,
		basis: fmt.Sprintf("no sitemap; the root, with links to %s of the site", pagesText(len(links))),
	}
}

// recordObserved sets SiteReport.Observed.
func (l *prober) recordObserved(s pageEstimate) {
	head := l.home.head()
	seen := Observed{Server: l.home.header.Get("Server"), Links: pageLinks(l.home.body, head.Base, canon.Origin(l.site.URL))}
	for _, m := range head.Metas {
		if m.Name == "generator" && seen.Generator == "" {
			seen.Generator = m.Content
		}
	}
	if s.pages >= 0 {
		seen.Listed = s.urls
	}
	l.site.Observed = seen
}

// pageLinks returns the distinct URLs of an origin that an HTML document links to, at most
// maxLinks.
func pageLinks(doc []byte, base *url.URL, origin string) []string {
	var out []string
	seen := map[string]bool{}
	z := html.NewTokenizer(bytes.NewReader(doc))
	for tt := z.Next(); tt != html.ErrorToken && len(out) < maxLinks; tt = z.Next() {
		if tt != html.StartTagToken && tt != html.SelfClosingTagToken {
			continue
		}
		name, more := z.TagName()
		if atom.Lookup(name) != atom.A {
			continue
		}
		for more {
			var k, v []byte
			k, v, more = z.TagAttr()
			if string(k) != "href" {
				continue
			}
			u, err := canon.Resolve(base, string(v))
			if err == nil && canon.Origin(u) == origin && !seen[u] {
				seen[u] = true
				out = append(out, u)
			}
			break
		}
	}
	return out
}

// samples fetches a sample of the pages. If it cannot fetch any, the sample is the root. It returns
// their mean size in coded bytes, the fraction with validators, and a description of the sample.
func (l *prober) samples(ctx context.Context, s pageEstimate) (page int64, valid float64, of string) {
	var docs []*document
	own := canon.Origin(l.site.URL)
	urls := slices.DeleteFunc(slices.Clone(s.urls), func(u string) bool { return l.disallows(u) || own+strings.TrimPrefix(u, canon.Origin(u)) == l.site.URL })
	for _, u := range spread(urls) {
		// A URL on an alias denotes the same page on this origin.
		d, err := l.get(ctx, own+strings.TrimPrefix(u, canon.Origin(u)))
		if err == nil && d.html && canon.Origin(d.url.String()) == own {
			docs = append(docs, d)
		}
	}
	of = fmt.Sprintf(" and %d of its pages", len(docs))
	switch {
	case len(docs) == 0:
		docs = []*document{l.home}
		if of = ", and the root"; s.pages < 0 {
			of = ""
		}
	case s.pages < 0:
		of = fmt.Sprintf(", and %d of them", len(docs))
	}
	for _, d := range docs {
		page += d.size
		if (fetch.ValidatorsOf(&http.Response{Header: d.header}) != fetch.Validators{}) {
			valid++
		}
	}
	return max(1, page/int64(len(docs))), valid / float64(len(docs)), of
}
