package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/replace"
	"github.com/millrace/millrace/internal/snapshot"
	"github.com/millrace/millrace/protocol/arc"
)

// arcCommand contains the commands for pages with data-ai-* attributes.
type arcCommand struct {
	Snapshot arcSnapshotCommand `cmd:"" help:"Print the snapshot of a page, from its data-ai-* attributes or from its content."`
	Lint     arcLintCommand     `cmd:"" help:"Check the data-ai-* attributes of pages, or snapshots."`
	Annotate arcAnnotateCommand `cmd:"" help:"Add proposed data-ai-* attributes to a page and print it. The rest of the page stays the same."`
}

type arcSnapshotCommand struct {
	commonFlags
	fetchFlags
	extractFlags
	Page string `arg:"" help:"Page: an HTML FILE, a URL, or - for standard input."`
	URL  string `name:"url" placeholder:"URL" help:"URL of a page that is read from a file, to resolve its links."`
}

// Run prints the canonical snapshot of a page.
func (c *arcSnapshotCommand) Run(ctx context.Context, p *process) error {
	rules, err := c.rules()
	if err != nil {
		return err
	}
	page, err := c.page(ctx, p, c.Page, c.URL)
	if err != nil {
		return err
	}
	res, err := page.Extract(ctx, rules)
	if err != nil {
		return err
	}
	s := arc.Snapshot(res.Page)
	switch err := res.Failed[arc.Name]; {
	case err != nil:
		return page.Err(fmt.Errorf("extract %s: %w", page.URL, err))
	case len(s) == 0:
		return page.Err(fmt.Errorf("extract %s: %w: the page has no snapshot", page.URL, millrace.ErrNotFound))
	}
	_, err = p.stdout.Verbatim().Write(append(bytes.Clone(s), '\n')) // always canonical JSON
	return err
}

type arcLintCommand struct {
	commonFlags
	fetchFlags
	Pages []string `arg:"" name:"page" help:"Pages: HTML FILEs, URLs, or - for standard input; or snapshots as JSON."`
	URL   string   `name:"url" placeholder:"URL" help:"URL of a page that is read from a file."`
}

// Run lints pages one after the other. It fails if it finds a problem or cannot read a page.
func (c *arcLintCommand) Run(ctx context.Context, p *process) error {
	if c.URL != "" && len(c.Pages) > 1 {
		return usageError("--url: only valid with a single page")
	}
	var results []snapshot.LintReport
	failed := false
	for _, name := range c.Pages {
		v := snapshot.LintReport{Page: name, Findings: []snapshot.Finding{}}
		list, err := c.lint(ctx, p, name)
		if _, usage := errors.AsType[usageError](err); usage || ctx.Err() != nil {
			return cmp.Or(err, ctx.Err())
		}
		if err != nil {
			v.Error, v.Code = err.Error(), millrace.ErrorCode(err)
		}
		v.Findings = append(v.Findings, list...)
		failed = failed || err != nil || len(list) > 0
		results = append(results, v)
	}
	err := p.report(oneOrAll(results), func(w *bytes.Buffer) {
		for i := range results {
			results[i].WriteText(w)
		}
	})
	if err == nil && failed {
		err = errReported
	}
	return err
}

func (c *arcLintCommand) lint(ctx context.Context, p *process, name string) ([]snapshot.Finding, error) {
	page, err := c.page(ctx, p, name, c.URL)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(bytes.TrimSpace(page.Data), []byte("{")) {
		return snapshot.LintJSON(page.Data)
	}
	list, err := snapshot.Lint(ctx, page.Data, page.URL)
	return list, page.Err(err)
}

type arcAnnotateCommand struct {
	commonFlags
	fetchFlags
	Page string `arg:"" help:"Page: an HTML FILE, a URL, or - for standard input."`
	URL  string `name:"url" placeholder:"URL" help:"URL of a page that is read from a file."`
	Out  string `placeholder:"FILE" help:"File to write the page to, which may be the file that is read (default: standard output)."`
}

// arcAdditions is the report of `millrace arc annotate --json`.
type arcAdditions struct {
	Page  string              `json:"page"`
	Out   string              `json:"out,omitempty"` // file that was written
	Added []snapshot.Addition `json:"added"`         // added attributes
}

// Run proposes attributes. With --json it prints the additions instead of the page.
func (c *arcAnnotateCommand) Run(ctx context.Context, p *process) error {
	page, err := c.page(ctx, p, c.Page, c.URL)
	if err != nil {
		return err
	}
	out, added, err := snapshot.Annotate(ctx, page.Data, page.URL)
	if err != nil {
		return page.Err(err)
	}
	if c.Out != "" {
		if err := replace.File(c.Out, func(w io.Writer) error { _, err := w.Write(out); return err }); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		p.log.Info("annotated", "url", c.Page, "attributes", len(added), "path", c.Out)
	}
	if c.Out == "" && !c.JSON {
		_, err := p.stdout.Verbatim().Write(out)
		return err
	}
	r := arcAdditions{Page: c.Page, Out: c.Out, Added: append([]snapshot.Addition{}, added...)}
	return p.report(&r, func(*bytes.Buffer) {})
}
