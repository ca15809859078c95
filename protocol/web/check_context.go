package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/sitemap"
	"github.com/millrace/millrace/internal/weblink"
)

const (
	// maxCheckedLists is the maximum number of sitemaps that are fetched from one site.
	maxCheckedLists = 6
	// maxTried is the number of pages without Markdown after which the checker tries no further
	// pages.
	maxTried = 3

	pathLLMs    = "/llms.txt"
	pathRobots  = "/robots.txt"
	pathSitemap = "/sitemap.xml"
	pathCatalog = "/.well-known/api-catalog"
)

// siteContext contains the documents of this protocol on a site, which the rules share. It accepts
// invalid documents, which the reader refuses, so that rules can report them.
type siteContext struct {
	kit.SiteContext
	root     *check.Response
	robots   *seenRobots
	noRobots *check.Response // response for robots.txt, if it was a server error; else nil
	sitemaps []*seenSitemap
	named    []namedSitemap
	llms     *seenLLMs
	atom     *seenAtom
	json     *seenJSONFeed
	catalog  *seenCatalog
	pages    []*seenPage       // sampled pages
	failed   []*check.Response // responses 404, 410 and 5xx for sampled pages of the sitemaps
}

// seenPage is a sampled page.
type seenPage struct {
	url       string
	html      *check.Response // response to a request for HTML
	links     []weblink.Link
	linkedURL string          // URL of the Markdown according to the links of the page
	at        string          // URL of the Markdown, or "" if the Markdown has no URL of its own
	md        *check.Response // response at that URL, or nil
	own       *check.Response // Markdown at the page's own URL, requested with accept, or nil
	accept    http.Header     // header fields of the request for own
}

func (s *siteContext) run(ctx context.Context) error {
	var err error
	if s.root, err = s.Target.Get(ctx, s.Target.Root()); err != nil {
		return err
	}
	s.AddHosts(s.root.URL)
	for _, see := range []func(context.Context) error{s.seeLLMs, s.seeRobots, s.seeSitemaps, s.seeFeeds, s.seeCatalog, s.seePages} {
		if err := see(ctx); err != nil {
			return err
		}
	}
	alternates := slices.ContainsFunc(s.pages, func(p *seenPage) bool { return p.md != nil || p.own != nil })
	if s.llms == nil && s.atom == nil && s.json == nil && s.catalog == nil && !alternates {
		return fmt.Errorf("%s has no llms.txt, no Markdown of its pages, no feed in Atom or JSON, and no API catalog: %w", s.Target.Root(), check.ErrAbsent)
	}
	return nil
}

// document fetches a document. If the document is absent or on another host, or the server sends an
// HTML page in its place, document returns nil.
func (s *siteContext) document(ctx context.Context, u string) (*check.Response, error) {
	resp, _, err := s.Document(ctx, u)
	if resp == nil || weblink.IsHTML(resp.Header) || !s.HasHost(resp.URL) {
		return nil, err
	}
	return resp, nil
}

func (s *siteContext) seeLLMs(ctx context.Context) error {
	resp, err := s.document(ctx, s.At(pathLLMs))
	if resp != nil {
		s.llms = &seenLLMs{resp, decodeLLMs(resp.Body)}
	}
	return err
}

func (s *siteContext) seeRobots(ctx context.Context) error {
	resp, err := s.Target.Get(ctx, s.At(pathRobots))
	switch {
	case check.IsInconclusive(err), ctx.Err() != nil:
		return err
	case err == nil && resp.Status >= 500:
		s.noRobots = resp
	case err == nil && resp.Status == http.StatusOK && resp.BodyErr == nil && !kit.LooksHTML(resp.Body):
		s.robots = &seenRobots{resp, robotsLines(resp.Body)}
	}
	return nil
}

// seeSitemaps fetches the sitemaps in robots.txt, or else the one at the usual path, and some of
// the sitemaps of an index.
func (s *siteContext) seeSitemaps(ctx context.Context) error {
	var todo []namedSitemap
	if s.robots != nil {
		robots := fetch.ParseRobots(s.robots.resp.Body, "millrace")
		for _, u := range kit.Sitemaps(robots, s.Root(), func(u string) bool { return !sitemap.IsOther(u) }) {
			todo = append(todo, namedSitemap{by: s.robots.resp.URL, url: u})
		}
	}
	if len(todo) == 0 {
		todo = []namedSitemap{{url: s.At(pathSitemap)}}
	}
	for i := 0; i < len(todo) && i < maxCheckedLists; i++ {
		n := todo[i]
		if !s.HasHost(n.url) || slices.ContainsFunc(s.named, func(o namedSitemap) bool { return o.url == n.url }) {
			continue
		}
		resp, err := s.Target.Get(ctx, n.url)
		if check.IsInconclusive(err) || ctx.Err() != nil {
			return err
		}
		n.resp, n.err = resp, err
		s.named = append(s.named, n)
		if err != nil || resp.Status != http.StatusOK || resp.BodyErr != nil || n.by == "" && kit.LooksHTML(resp.Body) {
			continue
		}
		m := seeSitemap(resp)
		s.sitemaps = append(s.sitemaps, m)
		for _, u := range m.children() {
			if abs, err := canon.URL(u); err == nil && len(todo) < maxCheckedLists {
				todo = append(todo, namedSitemap{by: n.url, url: abs})
			}
		}
	}
	return nil
}

// seeFeeds fetches the feeds to which the root links, one of each format.
func (s *siteContext) seeFeeds(ctx context.Context) error {
	for _, l := range kit.Links(s.root) {
		atom, json := l.Is("alternate", atomType) && s.atom == nil, l.Is("alternate", jsonFeedType) && s.json == nil
		if !atom && !json || !s.HasHost(l.URL) {
			continue
		}
		resp, err := s.document(ctx, l.URL)
		if err != nil {
			return err
		}
		switch {
		case resp == nil:
		case atom:
			s.atom = seeAtom(resp)
		default:
			s.json = seeJSONFeed(resp)
		}
	}
	return nil
}

func (s *siteContext) seeCatalog(ctx context.Context) error {
	resp, err := s.document(ctx, s.At(pathCatalog))
	if resp != nil {
		s.catalog = seeCatalog(resp)
	}
	return err
}

// seePages fetches a sample of the pages, including the page that the user has named.
func (s *siteContext) seePages(ctx context.Context) error {
	var all []string
	for _, m := range s.sitemaps {
		for _, u := range m.pages() {
			if abs, err := canon.URL(u); err == nil && s.HasHost(abs) {
				all = append(all, abs)
			}
		}
	}
	urls := []string{s.Target.Site()}
	for _, u := range append(check.Sample(s.Target, all), s.Target.Root()) {
		if !slices.Contains(urls, u) {
			urls = append(urls, u)
		}
	}
	none := 0
	for _, u := range urls {
		p, err := s.seePage(ctx, u, none < maxTried)
		if err != nil {
			return err
		}
		if p == nil {
			continue
		}
		if s.pages = append(s.pages, p); p.md == nil && p.own == nil {
			none++
		} else {
			none = -len(urls) // the site has Markdown, so try all pages
		}
	}
	s.failed = slices.DeleteFunc(s.failed, func(r *check.Response) bool { return !slices.Contains(all, r.URL) })
	return nil
}

func (s *siteContext) seePage(ctx context.Context, u string, try bool) (*seenPage, error) {
	resp, err := s.Target.Do(ctx, http.MethodGet, u, http.Header{"Accept": {"text/html"}})
	switch {
	case check.IsInconclusive(err), ctx.Err() != nil:
		return nil, err
	case err == nil && (resp.Status >= 500 || resp.Status == http.StatusNotFound || resp.Status == http.StatusGone):
		s.failed = append(s.failed, resp)
		return nil, nil //nolint:nilnil // a rule reports this
	case err != nil, resp.Status != http.StatusOK, resp.BodyErr != nil, !s.HasHost(resp.URL), !weblink.IsHTML(resp.Header):
		return nil, nil //nolint:nilnil,nilerr // no rule can check this
	}
	p := &seenPage{url: resp.URL, html: resp, links: kit.Links(resp), accept: http.Header{"Accept": {"text/markdown"}}}
	for _, l := range p.links {
		if p.linkedURL == "" && s.HasHost(l.URL) && (l.Is("alternate", "text/markdown") || l.Is("alternate", "text/x-markdown")) {
			p.linkedURL = l.URL
		}
	}
	names := []string{p.linkedURL}
	if try && s.llms != nil {
		names = append(names, usualNames(p.url)...)
	}
	for _, at := range names {
		if at == "" || p.md != nil {
			continue
		}
		md, err := s.document(ctx, at)
		if err != nil {
			return nil, err
		}
		if md != nil {
			p.at, p.md = at, md
		}
	}
	if !try {
		return p, nil
	}
	own, err := s.Target.Do(ctx, http.MethodGet, p.url, p.accept)
	switch {
	case check.IsInconclusive(err), ctx.Err() != nil:
		return nil, err
	case err == nil && own.Status == http.StatusOK && own.BodyErr == nil && isMarkdownType(own.Header.Get("Content-Type")):
		p.own = own
	}
	return p, nil
}

// needsKey returns an error if the server requires a key for the document.
func needsKey(r *check.Response) error {
	if r.Status != http.StatusUnauthorized {
		return nil
	}
	return &fetch.StatusError{URL: r.URL, Code: r.Status}
}
