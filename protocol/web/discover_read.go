package web

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/internal/sitemap"
)

// maxProbes is the number of pages, in addition to one for each path form that splitPage
// distinguishes, that are tried before the reader concludes that a site has no Markdown.
const maxProbes = 2

// found contains the results of reading a site's root and robots.txt.
type found struct {
	lists []string          // sitemaps in robots.txt, else those at the usual paths
	usual bool              // whether lists contains the usual paths
	feed  string            // URL of the feed, or "" if the site has none
	also  map[string]string // see reader.also
}

// discover fetches robots.txt and the root.
func (r *reader) discover(ctx context.Context) (*found, error) {
	root, err := url.Parse(r.Root)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", Name, err, millrace.ErrInvalid)
	}
	f := &found{also: map[string]string{}}
	origin := canon.Origin(r.Root)
	_, host, _ := strings.Cut(origin, "://")
	for _, scheme := range []string{"http://", "https://"} {
		if scheme+host != origin {
			f.also[scheme+host] = origin
		}
	}
	robots, err := fetch.RobotsOf(ctx, r.Client, root)
	if err != nil {
		return nil, fmt.Errorf("%s: discovery: %w", Name, err)
	}
	f.lists = r.listsOf(robots)
	if len(f.lists) == 0 {
		f.usual = true
		for _, name := range []string{"sitemap.xml", "sitemap_index.xml", "wp-sitemap.xml"} {
			f.lists = append(f.lists, r.Root+name)
		}
	}
	links, err := r.links(ctx, r.Root)
	switch {
	case err != nil && !absent(err):
		return nil, fmt.Errorf("%s: discovery: %w", Name, err)
	case err != nil:
		links = &pageLinks{final: r.Root} // other pages may exist
	}
	if at := canon.Origin(links.final); at != origin && f.also[at] == "" {
		return nil, fmt.Errorf("%s: the root of %s leads to another site, %s: %w", Name, r.Root, at, millrace.ErrNotFound)
	}
	if at := canon.Origin(links.canonical); links.canonical != "" && at != origin {
		f.also[at] = origin
	}
	r.restore(r.manner(), f.also)
	for _, u := range links.feeds {
		if r.here(u) != "" {
			f.feed = u
			break
		}
	}
	// These links lead only to the Markdown of the root. If the root is not a page, run.probe tries
	// the first pages of the sitemaps.
	for _, at := range links.alternates {
		if r.here(at) == "" || r.manner().known() {
			continue
		}
		if _, err := r.ask(ctx, at, r.Root, fetch.Validators{}); err == nil {
			r.learn(r.Root, at, false)
			break
		} else if !absent(err) {
			return nil, fmt.Errorf("%s: discovery: %w", Name, err)
		}
	}
	return f, nil
}

// listsOf returns the sitemaps in robots.txt.
func (r *reader) listsOf(robots *fetch.Robots) []string {
	return kit.Sitemaps(robots, r.Root, func(u string) bool { return !sitemap.IsOther(u) })
}

// recentRobots is the maximum age of robots.txt when a list of sitemaps is used to delete pages.
const recentRobots = time.Minute

// moved fetches robots.txt again, which is otherwise cached for a day, and reports whether it
// contains other sitemaps. Those sitemaps may list the pages that are absent from the known ones.
// Later calls return false.
func (r *run) moved(ctx context.Context) (bool, error) {
	if r.recent {
		return false, nil
	}
	r.recent = true
	root, err := url.Parse(r.Root)
	if err != nil {
		return false, fmt.Errorf("%s: %w: %w", Name, err, millrace.ErrInvalid)
	}
	robots, err := fetch.RecentRobots(ctx, r.Client, root, recentRobots)
	if err != nil {
		return false, fmt.Errorf("%s: discovery: %w", Name, err)
	}
	for _, u := range r.listsOf(robots) {
		known := func(l list) bool { return l.URL == u }
		if !slices.Contains(r.named, u) && !slices.ContainsFunc(r.is.Lists, known) {
			return true, nil
		}
	}
	return false, nil
}

// rediscover repeats discovery without the results of the last one.
func (r *run) rediscover(ctx context.Context, now time.Time) error {
	site, err := r.discover(ctx)
	if err != nil {
		return err
	}
	r.named, r.usual, r.fresh = site.lists, site.usual, true
	r.is.Found, r.is.Also, r.is.Way = now, site.also, r.manner()
	switch {
	case site.feed == "":
		r.is.Feed = nil
	case r.is.Feed == nil || r.is.Feed.URL != site.feed:
		r.is.Feed = &feedState{URL: site.feed}
	}
	return nil
}

// probe finds out whether the site has Markdown, and which rules give the URLs of the Markdown for
// pages with other path forms. If the root does not link to Markdown, probe tries the first pages.
// If the site has no Markdown, the error is ErrNotFound.
func (r *run) probe(ctx context.Context, files []*file) error {
	m := r.manner()
	if m.known() && (m.Accept || m.Guess || len(m.Names) > 1) {
		return nil
	}
	pages, forms, err := r.first(ctx, files)
	if err != nil {
		return err
	}
	if !m.known() {
		for _, form := range []string{formFolder, formHTML, formFile} {
			if page, ok := forms[form]; ok {
				pages = append(pages, page)
			}
		}
		if err := r.tryPages(ctx, tried(pages)); err != nil {
			return err
		}
	}
	for form, page := range forms {
		m := r.manner()
		if _, ok := m.Names[form]; ok || m.Accept || m.Guess {
			continue
		}
		links, err := r.links(ctx, page)
		switch {
		case err != nil && !absent(err):
			return fmt.Errorf("%s: discovery: %w", Name, err)
		case err == nil && len(links.alternates) > 0 && r.here(links.alternates[0]) != "":
			r.learn(page, links.alternates[0], false)
		}
	}
	r.is.Way = r.manner()
	return nil
}

// tried returns the first few of the pages, and one more for each path form that these pages do not
// have. If several systems produce a site's pages, some of the pages may have no Markdown.
func tried(pages []string) (out []string) {
	forms := map[string]bool{}
	for i, page := range pages {
		if _, _, form := splitPage(page); i < maxProbes || !forms[form] {
			forms[form] = true
			out = append(out, page)
		}
	}
	return out
}

// tryPages tries to fetch the Markdown of a few pages.
func (r *reader) tryPages(ctx context.Context, pages []string) error {
	guess, guessed := false, map[string]bool{}
	var failed error
	for i, page := range pages {
		_, err := r.seek(ctx, page, "", false)
		if err == nil {
			return nil
		}
		if !absent(err) { // other pages may still have Markdown
			if failed = err; ctx.Err() != nil {
				break
			}
			continue
		}
		if i == 0 {
			guess = r.hasIndex(ctx)
		}
		_, _, form := splitPage(page)
		if !guess || guessed[form] {
			continue
		}
		guessed[form] = true
		// A site with llms.txt may name its Markdown as llmstxt.org proposes.
		for _, at := range usualNames(page) {
			_, err := r.ask(ctx, at, page, fetch.Validators{})
			if err == nil {
				r.learn(page, at, true)
				return nil
			}
			if !absent(err) {
				return fmt.Errorf("%s: discovery: %w", Name, err)
			}
		}
	}
	if failed != nil {
		return fmt.Errorf("%s: discovery: %w", Name, failed)
	}
	return fmt.Errorf("%s: no page of %s has Markdown: %w", Name, r.Root, millrace.ErrNotFound)
}

// hasIndex reports whether the site has llms.txt.
func (r *reader) hasIndex(ctx context.Context) bool {
	resp, err := r.Get(ctx, r.Root+"llms.txt", "text/markdown, text/plain, */*;q=0.1", fetch.Validators{})
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }()
	if fetch.CheckStatus(resp) != nil {
		return false
	}
	b, err := fetch.ReadBeginning(resp, probeBytes)
	return err == nil && decodeLLMs(b.Content) != nil
}

// maxFirst is the number of entries of a sitemap that are searched for path forms.
const maxFirst = 1000

// first returns the first pages in the sitemaps, except the root, and one page for each path form
// that splitPage distinguishes. If the sitemaps list no other page, it returns the root.
func (r *run) first(ctx context.Context, files []*file) (pages []string, forms map[string]string, err error) {
	forms = map[string]string{}
	for _, f := range files {
		if f.spool == nil {
			got, err := r.load(ctx, list{Resource: kit.Resource{URL: f.URL}})
			if err != nil && absent(err) {
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			f.at, f.spool, f.same, f.Validators = got.at, got.spool, false, got.Validators
		}
		left := maxFirst
		err := f.entries(r.o.MaxList, func(e sitemap.Entry) error {
			u, err := canon.Resolve(f.at, e.URL)
			if page := r.here(u); err == nil && !e.Sitemap && page != "" && page != r.Root {
				if len(pages) < maxProbes {
					pages = append(pages, page)
				}
				if _, _, form := splitPage(page); forms[form] == "" {
					forms[form] = page
				}
			}
			if left--; left == 0 {
				return kit.ErrStop
			}
			return nil
		})
		if len(pages) == maxProbes && (err == nil || errors.Is(err, kit.ErrStop)) {
			break
		}
	}
	if len(pages) == 0 {
		pages = []string{r.Root} // the site may have a single page
	}
	return pages, forms, nil
}
