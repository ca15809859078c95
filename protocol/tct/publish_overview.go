package tct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/kit"
)

// overview is the document of a home page without a tag. It describes the page to which "/"
// redirects, such as a list of posts, or else the site, with its sections or some of its pages.
type overview struct {
	document
	path  string // path under the endpoint base
	tag   string // ETag without quotes
	names int    // number of pages in the overview
}

// Maximum numbers of pages in an overview: one per section, or some pages of a site without
// sections.
const (
	maxSections = 50
	maxPages    = 20
)

// homeOf returns the path of a site's home page: "/", or the page to which "/" redirects.
func homeOf(site millrace.Site) string { return cmp.Or(site.Home, "/") }

// Home returns the tag of the home page. If there is no home page, the error is ErrNotFound.
func (d *draft) Home(ctx context.Context, v millrace.View) (millrace.Tag, error) {
	return v.Tag(ctx, d.Name, homeOf(v.Site()))
}

// overviewPath returns the path of a site's overview. If pages map to the same name, the path has a
// number. If the home page is published, the site has no overview, and the error is ErrNotFound.
func (d *draft) overviewPath(ctx context.Context, v millrace.View) (string, error) {
	_, err := d.Home(ctx, v)
	if err == nil {
		return "", fmt.Errorf("overview: %w", millrace.ErrNotFound)
	}
	if !errors.Is(err, millrace.ErrNotFound) {
		return "", err
	}
	home, n := homeOf(v.Site()), 1
	before, _ := d.Names.Conflicts(home)
	for _, b := range before {
		_, err := v.Page(ctx, millrace.Ref{URL: b})
		if err == nil {
			n++
		} else if !errors.Is(err, millrace.ErrNotFound) {
			return "", err
		}
	}
	return d.Names.Of(home, n), nil
}

// overview returns the overview of a site, or nil if the home page is published. Its Modified is
// the latest Modified of the pages in the overview.
func (d *draft) overview(ctx context.Context, v millrace.View) (*overview, error) {
	path, err := d.overviewPath(ctx, v)
	if errors.Is(err, millrace.ErrNotFound) {
		return nil, nil //nolint:nilnil // absent
	} else if err != nil {
		return nil, err
	}
	site := v.Site()
	o := &overview{path: path}
	home, err := v.Page(ctx, millrace.Ref{URL: homeOf(site)})
	if err != nil && !errors.Is(err, millrace.ErrNotFound) {
		return nil, err
	}
	if doc := d.Document(site, home); doc != nil {
		o.document, o.names = *doc, 1
		o.tag = d.tag(doc)
		return o, nil
	}
	var b strings.Builder
	sections, limit := site.Sections[:min(len(site.Sections), maxSections)], 1
	head := "Sections:"
	if len(sections) == 0 {
		sections, limit, head = []millrace.Section{{}}, maxPages, "Pages:"
	}
	b.WriteString(head)
	var modified time.Time
	for _, s := range sections {
		for page, err := range v.Scan(ctx, millrace.Scan{Section: s.Name, Limit: limit}) {
			if err != nil {
				return nil, fmt.Errorf("site overview: %w", err)
			}
			fmt.Fprintf(&b, "\n- %s\n  %s", strings.Join(strings.Fields(cmp.Or(s.Name, kit.Title(page, page.URL))), " "), page.URL)
			o.names++
			if page.Modified.After(modified) {
				modified = page.Modified
			}
		}
	}
	doc := d.Document(site, &millrace.Page{URL: site.Base, Title: site.Title, Language: site.Language, Modified: modified, Blocks: millrace.TextBlocks(b.String())})
	if doc == nil {
		return nil, fmt.Errorf("site overview: %s is not a URL", site.Base)
	}
	o.document = *doc
	o.tag = d.tag(&o.document)
	return o, nil
}
