package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// Prefixes of the URIs of resources. The URL of a page or the name of a site follows.
const (
	pagePrefix = "millrace://page/"
	sitePrefix = "millrace://site/"
)

// addResources adds pages and sites as resources, for clients in which users select them.
func (s *Server) addResources() {
	s.addResource(pagePrefix, &sdk.ResourceTemplate{
		Name: "page", Title: "A page as Markdown", MIMEType: "text/markdown",
		Description: "The first 100,000 characters of a page, by its URL from search or list_changes; read_page returns the rest.",
	}, func(ctx context.Context, c *call, where string) (string, error) {
		site, p, err := c.page(ctx, where, "")
		if err != nil {
			return "", err
		}
		c.annotate(millrace.Subject{Page: canon.Relative(site.View.Site().Base, p.URL)})
		out, err := partOf(site, p, "", budget{characters: maxPart})
		if err != nil {
			return "", err
		}
		return out.text(), nil
	})
	s.addResource(sitePrefix, &sdk.ResourceTemplate{
		Name: "site", Title: "A site", MIMEType: "text/plain",
		Description: "A site by its name from list_sites: its title, number of pages, time of the last change, and terms.",
	}, func(ctx context.Context, c *call, name string) (string, error) {
		site, err := c.site(ctx, name)
		if err != nil {
			return "", err
		}
		return (&sitesOut{Sites: []siteOut{describe(site)}}).text(), nil
	})
}

// addResource adds a kind of resource. A URI consists of the prefix and the argument of read.
func (s *Server) addResource(prefix string, t *sdk.ResourceTemplate, read func(ctx context.Context, c *call, rest string) (string, error)) {
	t.URITemplate = prefix + "{+" + t.Name + "}"
	s.sdk.AddResourceTemplate(t, func(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		text, err := run(ctx, s, "resources/read", func(ctx context.Context, c *call) (string, error) {
			return read(ctx, c, strings.TrimPrefix(r.Params.URI, prefix))
		})
		if _, ok := errors.AsType[advice](err); ok {
			return nil, sdk.ResourceNotFoundError(cutTo(r.Params.URI, 200))
		} else if err != nil {
			return nil, err
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: t.MIMEType, Text: text}}}, nil
	})
}

// listResources lists the sites. It does not list pages, because there may be too many; search
// and list_changes return them.
func (s *Server) listResources(ctx context.Context, r *sdk.ListResourcesRequest) (*sdk.ListResourcesResult, error) {
	var in sitesIn
	if r.Params != nil {
		in.After = r.Params.Cursor
	}
	found, err := run(ctx, s, "resources/list", func(ctx context.Context, c *call) (*sitesOut, error) {
		out, _, err := s.sites(ctx, c, in)
		return out, err
	})
	if err != nil {
		return nil, err
	}
	out := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}, NextCursor: found.After, Cacheable: sdk.Cacheable{CacheScope: "private"}}
	for _, site := range found.Sites {
		out.Resources = append(out.Resources, &sdk.Resource{
			URI: sitePrefix + site.Name, Name: site.Name, Title: site.Title, MIMEType: "text/plain",
			Description: cmp.Or(site.Note, fmt.Sprintf("%d pages", site.Pages)),
		})
	}
	return out, nil
}
