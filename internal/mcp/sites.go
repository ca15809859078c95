package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// maxSites is the maximum number of sites in a result.
const maxSites = 50

// maxSections is the maximum number of sections of a site in a result.
const maxSections = 30

type sitesIn struct {
	After string `json:"after"`
}

type sitesOut struct {
	Sites []siteOut `json:"sites"`
	After string    `json:"after,omitempty" jsonschema:"more sites follow: call again with this value as after"`
}

type siteOut struct {
	Name     string       `json:"name" jsonschema:"name of the site, for the other tools"`
	URL      string       `json:"url,omitempty" jsonschema:"base URL of its pages"`
	Title    string       `json:"title,omitempty"`
	Language string       `json:"language,omitempty" jsonschema:"language of its home page, BCP 47"`
	Pages    int          `json:"pages"`
	Changed  string       `json:"changed,omitempty" jsonschema:"RFC 3339: when this server last learned of a change"`
	Sections []sectionOut `json:"sections,omitempty" jsonschema:"sections of the site, the largest first"`
	Cursor   string       `json:"cursor,omitempty" jsonschema:"pass it as since to list_changes to get later changes"`
	Terms    *TermsOut    `json:"terms,omitempty" jsonschema:"the site's terms for the use of its content; if absent, they are unknown, which is not a permission"`
	Note     string       `json:"note,omitempty" jsonschema:"why the site cannot be read"`
}

type sectionOut struct {
	Name  string `json:"name"`
	Pages int    `json:"pages"`
}

func (s *Server) addSites() {
	add(s, &sdk.Tool{
		Name: "list_sites", Title: "List the sites",
		Description: "Lists the available websites: the name for the other tools, title, number of pages, time of the last change, and the uses of the content that the owner allows. Start here.",
	}, []argument{
		{name: "after", most: maxName, about: "The value of after in the previous result. Omit it for the first sites."},
	}, s.sites)
}

// sites runs the tool list_sites.
func (s *Server) sites(ctx context.Context, c *call, in sitesIn) (*sitesOut, string, error) {
	names, err := c.library.Names(ctx)
	if err != nil {
		return nil, "", err
	}
	first := 0
	if in.After != "" {
		if first = slices.IndexFunc(names, func(name string) bool { return canon.Visible(name) > in.After }); first < 0 {
			first = len(names)
		}
	}
	out := &sitesOut{Sites: []siteOut{}}
	for i := first; i < len(names); i++ {
		if len(out.Sites) == maxSites {
			out.After = canon.Visible(names[i-1])
			break
		}
		site, err := c.library.Site(ctx, names[i])
		switch {
		case err == nil:
			out.Sites = append(out.Sites, describe(site))
		case ctx.Err() != nil:
			return nil, "", err
		case errors.Is(err, millrace.ErrNotFound), errors.Is(err, millrace.ErrConflict), errors.Is(err, millrace.ErrUnavailable):
			s.log.Debug("site cannot be read", "site", names[i], "err", err)
			out.Sites = append(out.Sites, siteOut{Name: canon.Visible(names[i]), Note: "its first sync is incomplete, or it is being rebuilt; try again later"})
		default:
			return nil, "", err
		}
	}
	return out, out.text(), nil
}

func describe(site *Site) siteOut {
	info := site.View.Site()
	out := siteOut{
		Name: canon.Visible(site.Name), URL: address(info.Base), Title: line(info.Title), Language: line(info.Language), Pages: info.Pages,
		Changed: date(info.Time), Cursor: start(site).String(), Terms: termsOf(site.Terms),
	}
	slices.SortStableFunc(info.Sections, func(a, b millrace.Section) int { return b.Pages - a.Pages })
	for _, section := range info.Sections[:min(len(info.Sections), maxSections)] {
		out.Sections = append(out.Sections, sectionOut{line(section.Name), section.Pages})
	}
	return out
}

// text returns the sites as text for a model.
func (o *sitesOut) text() string {
	if len(o.Sites) == 0 {
		return errEmpty.text
	}
	var head, in strings.Builder
	fmt.Fprintf(&head, "Sites: %d. ", len(o.Sites))
	if o.After != "" {
		fmt.Fprintf(&head, "More sites follow: call list_sites with after %q. ", o.After)
	}
	for i := range o.Sites {
		site := &o.Sites[i]
		fmt.Fprintf(&in, "%s", site.Name)
		if site.Note != "" {
			fmt.Fprintf(&in, ": %s\n", site.Note)
			continue
		}
		if site.URL != site.Name {
			fmt.Fprintf(&in, " (%s)", site.URL)
		}
		fmt.Fprintf(&in, ": %q, %d pages", site.Title, site.Pages)
		if site.Changed != "" {
			fmt.Fprintf(&in, ", last change %s", site.Changed)
		}
		in.WriteByte('\n')
		if says := site.Terms.sentence(); says != "" {
			fmt.Fprintf(&in, "  %s\n", says)
		}
		fmt.Fprintf(&in, "  cursor: %s\n", site.Cursor)
	}
	return fenced(strings.TrimSuffix(head.String(), " "), in.String())
}
