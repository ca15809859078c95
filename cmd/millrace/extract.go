package main

import (
	"bytes"
	"context"
	"strings"

	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/ingest"
)

// pageFlags holds the flags of commands that read one page.
type pageFlags struct {
	fetchFlags
	extractFlags
	Page string `arg:"" help:"Page: an HTML FILE, a URL, or - for standard input."`
	URL  string `name:"url" placeholder:"URL" help:"URL of a page that is read from a file, to resolve its links."`
}

type extractCommand struct {
	commonFlags
	pageFlags
	Text    bool `help:"Print only the text."`
	Explain bool `help:"Show, by selector, which elements were kept or dropped, and why."`
}

// Run extracts a page. If the page has no content, Run reports the reason and does not fail.
func (c *extractCommand) Run(ctx context.Context, p *process) error {
	if c.Text && c.JSON {
		return usageError("--json prints the whole page; omit --text")
	}
	res, err := c.extract(ctx, p)
	if err != nil {
		return err
	}
	r := ingest.ReportOf(res, c.Explain)
	return p.report(r, func(w *bytes.Buffer) { r.WriteText(w, c.Text) })
}

// extract reads the page and extracts it.
func (c *pageFlags) extract(ctx context.Context, p *process) (*extract.Result, error) {
	rules, err := c.rules()
	if err != nil {
		return nil, err
	}
	page, err := c.page(ctx, p, c.Page, c.URL)
	if err != nil {
		return nil, err
	}
	return page.Extract(ctx, rules)
}

// page reads a page from a file, a URL, or standard input for "-". address is the URL of a
// file, or "".
func (r *fetchFlags) page(ctx context.Context, p *process, name, address string) (_ *ingest.Input, err error) {
	name = ingest.Source(name)
	switch site := strings.Contains(name, "://"); {
	case site && address != "":
		return nil, usageError("--url: the page already has the URL " + name)
	case site:
		name, err = siteURL(name)
	case address != "":
		address, err = siteURL(address)
	}
	if err != nil {
		return nil, err
	}
	return ingest.ReadPage(ctx, r.client(p, nil).HTTP(), name, address, p.stdin)
}
