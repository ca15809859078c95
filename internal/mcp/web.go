package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol"
)

// Web reads sites that the library does not contain. It is safe for concurrent use.
type Web interface {
	// Page reads one page of any site, with the terms of the site. It must obey the site's
	// robots.txt and policy.
	Page(ctx context.Context, url string) (*millrace.Page, []protocol.Terms, error)
	// Add adds a site to the library and keeps it up to date. It returns the site's name and
	// its number of pages, or -1 if the site is not complete when ctx ends.
	Add(ctx context.Context, url string) (name string, pages int, err error)
}

// addWait is the maximum time that add_site waits for a site to be complete.
const addWait = 20 * time.Second

type addIn struct {
	URL string `json:"url"`
}

type addOut struct {
	Name     string `json:"name" jsonschema:"name of the site, for the other tools"`
	Pages    int    `json:"pages" jsonschema:"number of pages that were read"`
	Complete bool   `json:"complete" jsonschema:"whether all pages were read; if not, call list_sites later"`
}

func (s *Server) addWeb() {
	no, yes := false, true
	add(s, &sdk.Tool{
		Name: "add_site", Title: "Add a site",
		Description: "Adds a website to those that can be searched here, and keeps it up to date. It reads the site in the cheapest way that the site offers, and obeys its robots.txt and its policy. To read a single page, call read_page instead.",
		Annotations: &sdk.ToolAnnotations{Title: "Add a site", IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &yes},
	}, []argument{
		{name: "url", least: 1, most: maxURL, about: "URL of the site, such as https://example.com/, or of a folder of it."},
	}, s.addSite)
}

// addSite runs the tool add_site.
func (s *Server) addSite(ctx context.Context, c *call, in addIn) (*addOut, string, error) {
	var a advice
	switch _, err := c.spellings(in.URL); {
	case strings.HasPrefix(in.URL, "/"), errors.As(err, &a) && a.code == "bad-url":
		return nil, "", advise("bad-url", "%q is not the URL of a site; pass one with https://, such as https://example.com/", short(in.URL))
	case err != nil:
		return nil, "", err
	}
	wait, cancel := context.WithTimeout(ctx, min(addWait, s.o.Time/2))
	defer cancel()
	name, pages, err := s.o.Web.Add(wait, in.URL)
	if err != nil {
		return nil, "", outside(ctx, err)
	}
	out := &addOut{Name: canon.Visible(name), Pages: max(pages, 0), Complete: pages >= 0}
	if !out.Complete {
		return out, fmt.Sprintf("%s is being read, which takes a while. list_sites shows the number of pages; search finds pages that have been read.", out.Name), nil
	}
	return out, fmt.Sprintf("%s was added with %d pages. It is kept up to date.", out.Name, out.Pages), nil
}

// fetchPage reads a page that the library does not contain. absent is the library's error.
func (s *Server) fetchPage(ctx context.Context, c *call, in readIn, absent error) (*Site, *millrace.Page, error) {
	var a advice
	if s.o.Web == nil || in.Site != "" || !errors.As(absent, &a) || a.code != "no-page" && a.code != "no-site" || !strings.Contains(in.URL, "://") {
		return nil, nil, absent
	}
	if _, err := c.spellings(in.URL); err != nil {
		return nil, nil, err
	}
	p, terms, err := s.o.Web.Page(ctx, in.URL)
	if err != nil {
		return nil, nil, outside(ctx, err)
	}
	return &Site{Name: canon.Origin(p.URL) + "/", Terms: terms}, p, nil
}

// outside converts an error from reading another site for the client.
func outside(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	text, _, _ := strings.Cut(err.Error(), "; ") // the rest is advice for the operator
	return advise(millrace.ErrorCode(err), "%s", short(text))
}
