package profile

import (
	"bytes"
	"context"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/sitemap"
	"github.com/millrace/millrace/internal/weblink"
)

// maxLists is the maximum number of sitemaps that are read.
const maxLists = 6

// site contains the documents that the rules of [AgentReady] share.
type site struct {
	kit.SiteContext
	home    *check.Response   // home page, requested as HTML
	robots  *check.Response   // robots.txt, or nil if absent
	llms    *check.Response   // llms.txt, or nil if absent
	links   []string          // absolute URLs of the links in llms.txt
	listed  []string          // pages in the sitemaps
	pages   []*page           // sample of the site's pages
	gated   []*check.Response // responses with 401 or 403, and login pages
	mcp     bool              // the site has an MCP endpoint
	visited map[string]bool
}

// page is a page of the sample.
type page struct {
	asked string // URL that was requested
	html  *check.Response
	text  string          // visible text of the whole page
	main  *millrace.Page  // extracted content of the page, or nil
	md    *check.Response // Markdown at a separate URL, or nil
	own   *check.Response // Markdown from the page's URL for Accept: text/markdown, or nil
}

// markdown returns the Markdown of the page, or nil if it has none.
func (p *page) markdown() *check.Response {
	if p.md != nil {
		return p.md
	}
	return p.own
}

var aboutSite = kit.Rule("agent-ready", func(ctx context.Context, t *check.Target) (*site, error) {
	s := &site{SiteContext: kit.NewSiteContext(t), visited: map[string]bool{}}
	return s, s.see(ctx)
})

// document requests a document. The result is nil if the document is absent, or if the response is
// HTML.
func (s *site) document(ctx context.Context, path string) (*check.Response, error) {
	resp, _, err := s.Document(ctx, s.At(path))
	if resp == nil || weblink.IsHTML(resp.Header) || kit.LooksHTML(resp.Body) {
		return nil, err
	}
	return resp, nil
}

var mdLink = regexp.MustCompile(`\[[^\]\n]*\]\(\s*<?([^)\s>]+)`)

// linksOf returns the URLs that Markdown links to, resolved against the response's URL.
func linksOf(r *check.Response) (urls []string) {
	base, err := url.Parse(r.URL)
	if err != nil {
		return nil
	}
	for _, m := range mdLink.FindAllStringSubmatch(string(r.Body), -1) {
		if u, err := base.Parse(m[1]); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
			urls = append(urls, u.String())
		}
	}
	return urls
}

func (s *site) see(ctx context.Context) (err error) {
	if s.home, err = s.Do(ctx, http.MethodGet, s.Site(), http.Header{"Accept": {"text/html"}}); err != nil {
		return err
	}
	s.AddHosts(s.home.URL)
	if s.robots, err = s.document(ctx, "/robots.txt"); err != nil {
		return err
	}
	if s.llms, err = s.document(ctx, "/llms.txt"); err != nil {
		return err
	}
	if s.llms != nil {
		s.links = linksOf(s.llms)
	}
	if err := s.seeSitemaps(ctx); err != nil {
		return err
	}
	stream, err := s.Do(ctx, http.MethodGet, s.At("/mcp"), http.Header{"Accept": {"text/event-stream"}})
	if check.IsInconclusive(err) || ctx.Err() != nil {
		return err
	}
	s.mcp = err == nil && stream.Status != http.StatusNotFound && stream.Status < 500 && !weblink.IsHTML(stream.Header)
	for _, u := range append([]string{s.home.URL}, check.Sample(s.Target, s.listed)...) {
		if s.HasHost(u) && !s.visited[u] {
			s.visited[u] = true
			if err := s.seePage(ctx, u); err != nil {
				return err
			}
		}
	}
	return nil
}

// seeSitemaps reads the sitemaps that robots.txt names, or the one at the usual path.
func (s *site) seeSitemaps(ctx context.Context) error {
	todo := []string{s.At(sitemap.Path)}
	if s.robots != nil {
		if named := kit.Sitemaps(fetch.ParseRobots(s.robots.Body, "millrace"), s.Root(), func(u string) bool { return !sitemap.IsOther(u) }); len(named) > 0 {
			todo = named
		}
	}
	for i := 0; i < len(todo) && i < maxLists; i++ {
		if !s.HasHost(todo[i]) {
			continue
		}
		resp, _, err := s.Document(ctx, todo[i])
		if err != nil {
			return err
		}
		if resp == nil {
			continue
		}
		for e, err := range sitemap.Parse(bytes.NewReader(resp.Body), nil) {
			switch {
			case err != nil:
			case e.Sitemap:
				todo = append(todo, e.URL)
			case s.HasHost(e.URL) && !slices.Contains(s.listed, e.URL) && len(s.listed) < 1000:
				s.listed = append(s.listed, e.URL)
			}
		}
	}
	return nil
}

func (s *site) seePage(ctx context.Context, u string) error {
	resp, err := s.Do(ctx, http.MethodGet, u, http.Header{"Accept": {"text/html"}})
	switch {
	case check.IsInconclusive(err), ctx.Err() != nil:
		return err
	case err != nil:
		return nil //nolint:nilerr // no rule can check it
	case resp.Status == http.StatusUnauthorized, resp.Status == http.StatusForbidden, resp.OK() && gate.MatchString(resp.URL) && resp.URL != u:
		s.gated = append(s.gated, resp)
		return nil
	case !resp.OK() || !weblink.IsHTML(resp.Header):
		return nil
	}
	p := &page{asked: u, html: resp, text: visible(resp.Body)}
	if got, err := extract.HTML(ctx, resp.Body, resp.URL, &extract.Options{ContentType: resp.Header.Get("Content-Type")}); err == nil {
		p.main = got.Page
	}
	names := []string{}
	for _, l := range kit.Links(resp) {
		if l.Is("alternate", "text/markdown") && s.HasHost(l.URL) {
			names = append(names, l.URL)
		}
	}
	if at, err := url.Parse(resp.URL); err == nil && s.HasHost(resp.URL) {
		at.RawQuery = ""
		if strings.HasSuffix(at.Path, "/") {
			at.Path += "index"
		}
		at.Path += ".md"
		names = append(names, at.String())
	}
	for _, name := range names {
		md, _, err := s.Document(ctx, name)
		if err != nil {
			return err
		}
		if md != nil && !weblink.IsHTML(md.Header) && !kit.LooksHTML(md.Body) {
			p.md = md
			break
		}
	}
	own, err := s.Do(ctx, http.MethodGet, resp.URL, http.Header{"Accept": {"text/markdown"}})
	if check.IsInconclusive(err) || ctx.Err() != nil {
		return err
	}
	if err == nil && isMarkdown(own) {
		p.own = own
	}
	s.pages = append(s.pages, p)
	return nil
}

var (
	gate    = regexp.MustCompile(`(?i)/(log-?in|sign-?in|sso|auth)\b`)
	unseen  = regexp.MustCompile(`(?is)<script\b.*?</script\s*>|<style\b.*?</style\s*>|<template\b.*?</template\s*>|<!--.*?-->`)
	anyTag  = regexp.MustCompile(`(?s)<[^>]*>`)
	bodyTag = regexp.MustCompile(`(?i)<body\b[^>]*>`)
)

// visible returns the text of an HTML page, with one space for each run of white space.
func visible(page []byte) string {
	text := body(page)
	return strings.Join(strings.Fields(html.UnescapeString(anyTag.ReplaceAllString(text, " "))), " ")
}

// body returns the markup of an HTML page's body without scripts and styles.
func body(page []byte) string {
	if at := bodyTag.FindIndex(page); at != nil {
		page = page[at[1]:]
	}
	return string(unseen.ReplaceAll(page, nil))
}
