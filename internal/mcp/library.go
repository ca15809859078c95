package mcp

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol"
)

// Library provides the sites of a [Server]. It is safe for concurrent use.
type Library interface {
	// Names returns the names of all sites in order.
	Names(ctx context.Context) ([]string, error)
	// Site opens the current state of a site. If no site has the name, it returns ErrNotFound. If
	// the site is temporarily unreadable, it returns ErrConflict or ErrUnavailable.
	Site(ctx context.Context, name string) (*Site, error)
}

// Indexer is an optional interface of a [Library] that updates the index of a site before
// a search.
type Indexer interface {
	// Index brings the index of a site up to date. progress receives the number of pages.
	Index(ctx context.Context, name string, progress func(done, total int)) error
}

// Site is one site of a [Library].
type Site struct {
	Name  string           // name in list_sites and in the arguments of other tools
	View  millrace.View    // current state; a [millrace.Searcher] if searchable; nil for a single page of the web
	Terms []protocol.Terms // terms of use, or nil if unknown
}

// published is the library of a gateway: its published site.
type published struct {
	live  millrace.Live
	terms []protocol.Terms
}

// Names implements [Library].
func (p published) Names(context.Context) ([]string, error) {
	v, err := p.live.View()
	if err != nil {
		return nil, err
	}
	return []string{v.Site().Base}, nil
}

// Site implements [Library].
func (p published) Site(_ context.Context, name string) (*Site, error) {
	v, err := p.live.View()
	if err != nil {
		return nil, err
	}
	base := v.Site().Base
	if name != base {
		return nil, millrace.ErrNotFound
	}
	return &Site{Name: base, View: v, Terms: p.terms}, nil
}

// maxName and maxURL are the maximum sizes of a site's name and of a URL in bytes.
const (
	maxName = 2048
	maxURL  = 4096
)

// site opens the site with a name. For "", it opens the only site.
func (c *call) site(ctx context.Context, name string) (*Site, error) {
	names, err := c.library.Names(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(names) == 0:
		return nil, errEmpty
	case name == "" && len(names) > 1:
		return nil, advise("site-required", "this server has %d sites; pass one as site, by its name in list_sites", len(names))
	case name == "":
		return c.library.Site(ctx, names[0])
	}
	trimmed := strings.TrimSuffix(name, "/")
	for _, n := range names {
		if strings.TrimSuffix(n, "/") == trimmed {
			return c.library.Site(ctx, n)
		}
	}
	// A site may have pages whose URLs do not start with its name.
	for _, n := range names {
		s, err := c.library.Site(ctx, n)
		switch {
		case err == nil && strings.TrimSuffix(s.View.Site().Base, "/") == trimmed:
			return s, nil
		case err != nil && ctx.Err() != nil:
			return nil, err
		}
	}
	return nil, advise("no-site", "site %q not found; call list_sites for the names", short(name))
}

var errEmpty = advice{"no-site", "no site is available yet; nothing was mirrored or published"}

// page finds a page by its URL, in one site or in all.
func (c *call) page(ctx context.Context, where, site string) (*Site, *millrace.Page, error) {
	names, err := c.spellings(where)
	if err != nil {
		return nil, nil, err
	}
	if site != "" || !strings.Contains(names[0], "://") {
		s, err := c.site(ctx, site)
		if err != nil {
			return nil, nil, err
		}
		p, err := pageOf(ctx, s, names)
		return s, p, missing(err, where)
	}
	all, err := c.library.Names(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(all) == 0 {
		return nil, nil, errEmpty
	}
	// First try sites whose name is a prefix of the URL.
	slices.SortStableFunc(all, func(a, b string) int { return above(b, names[0]) - above(a, names[0]) })
	var passing error
	for _, name := range all {
		s, err := c.library.Site(ctx, name)
		var p *millrace.Page
		if err == nil {
			p, err = pageOf(ctx, s, names)
		}
		switch {
		case err == nil:
			return s, p, nil
		case ctx.Err() != nil:
			return nil, nil, err
		case !errors.Is(err, millrace.ErrNotFound):
			passing = err
		}
	}
	if passing != nil {
		return nil, nil, passing
	}
	return nil, nil, missing(millrace.ErrNotFound, where)
}

// missing replaces the error of an absent page with one for the client. It returns other
// errors unchanged.
func missing(err error, where string) error {
	if errors.Is(err, millrace.ErrNotFound) {
		return advise("no-page", "page %s not found; use search to find pages, and list_sites to list the sites", short(where))
	}
	return err
}

// above returns the length of a site's name if it is a prefix of the URL, else 0.
func above(name, url string) int {
	if strings.HasPrefix(url, strings.TrimSuffix(name, "/")+"/") {
		return len(name)
	}
	return 0
}

// spellings returns the possible names of a page with a URL: the URL itself, and common variants.
func (c *call) spellings(where string) ([]string, error) {
	if len(where) > maxURL {
		return nil, advise("url-size", "the url has %d bytes, the maximum is %d", len(where), maxURL)
	}
	where, _, _ = strings.Cut(strings.TrimSpace(where), "#")
	if strings.HasPrefix(where, "/") && !strings.HasPrefix(where, "//") {
		return slashes(where), nil
	}
	u, err := url.Parse(where)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, advise("bad-url", "%q is not the URL of a page; pass a URL from search or list_changes, such as https://example.com/about/", short(where))
	}
	if u.User != nil {
		return nil, advise("url-credentials", "the URL has a user name or password; remove them")
	}
	out := slashes(where)
	if canonical, err := canon.URL(where); err == nil && canonical != where {
		out = append(out, slashes(canonical)...)
	}
	return out, nil
}

// slashes returns a URL with and without a trailing slash.
func slashes(where string) []string {
	path, query, asks := strings.Cut(where, "?")
	other, cut := strings.CutSuffix(path, "/")
	if !cut {
		other += "/"
	}
	if asks {
		other += "?" + query
	}
	return []string{where, other}
}

// pageOf returns the page of the first name that the site has.
func pageOf(ctx context.Context, s *Site, names []string) (*millrace.Page, error) {
	for _, name := range names {
		p, err := s.View.Page(ctx, millrace.Ref{URL: name})
		if !errors.Is(err, millrace.ErrNotFound) {
			return p, err
		}
	}
	return nil, millrace.ErrNotFound
}
