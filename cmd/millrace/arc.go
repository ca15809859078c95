package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/replace"
	"github.com/millrace/millrace/internal/snapshot"
	"github.com/millrace/millrace/protocol/arc"
)

// arcCommand has the commands for pages with data-ai-* attributes.
type arcCommand struct {
	Snapshot arcSnapshotCommand `cmd:"" help:"Print the snapshot of a page, from its data-ai-* attributes or from its content."`
	Lint     arcLintCommand     `cmd:"" help:"Check the data-ai-* attributes of pages, or snapshots."`
	Annotate arcAnnotateCommand `cmd:"" help:"Add proposed data-ai-* attributes to a page and print it. The rest of the page stays the same."`
}

// arcPage is a page from the command line.
type arcPage struct {
	data        []byte
	address     string
	contentType string
}

// arcRead reads a page from a file, a URL, or standard input for "-". address is the URL of a
// file; "" = unknown.
func arcRead(ctx context.Context, p *process, r *remote, name, address string) (*arcPage, error) {
	c := onePage{remote: *r, Page: name, URL: address}
	page := &arcPage{}
	var err error
	page.data, page.address, page.contentType, err = c.read(ctx, p)
	if base := filepath.Base(name); err == nil && strings.HasPrefix(page.address, nowhere) && (base == "index.html" || base == "index.htm") {
		// index.html is the page of its folder.
		if dir, bad := filepath.Abs(filepath.Dir(name)); bad == nil {
			if u, bad := canon.URL(canon.Absolute(nowhere, "/"+filepath.Base(dir)+"/")); bad == nil {
				page.address = u
			}
		}
	}
	return page, err
}

// named replaces the placeholder address in an error with the name of the page.
func (g *arcPage) named(name string, err error) error {
	if err == nil || !strings.HasPrefix(g.address, nowhere) {
		return err
	}
	return millrace.Coded(millrace.ErrorCode(err), errors.New("page "+name+": "+strings.ReplaceAll(err.Error(), "extract "+g.address+": ", "")))
}

type arcSnapshotCommand struct {
	common
	remote
	correcting
	Page string `arg:"" help:"Page: an HTML FILE, a URL, or - for standard input."`
	URL  string `name:"url" placeholder:"URL" help:"URL of a page that is read from a file. It resolves the links of the page."`
}

// Run prints the canonical snapshot of a page.
func (c *arcSnapshotCommand) Run(ctx context.Context, p *process) error {
	rules, err := c.rules()
	if err != nil {
		return err
	}
	page, err := arcRead(ctx, p, &c.remote, c.Page, c.URL)
	if err != nil {
		return err
	}
	res, err := extract.HTML(ctx, page.data, page.address, &extract.Options{ContentType: page.contentType, Rules: rules})
	if err == nil && res.Failed[arc.Name] != nil {
		err = fmt.Errorf("extract %s: %w", page.address, res.Failed[arc.Name])
	}
	if err != nil {
		return page.named(c.Page, err)
	}
	s := arc.Snapshot(res.Page)
	if len(s) == 0 {
		return page.named(c.Page, fmt.Errorf("extract %s: %w: the page has no snapshot", page.address, millrace.ErrNotFound))
	}
	_, err = p.stdout.Write(append(bytes.Clone(s), '\n')) // always canonical JSON
	return err
}

type arcLintCommand struct {
	common
	remote
	Pages []string `arg:"" name:"page" help:"Pages: HTML FILEs, URLs, or - for standard input; or snapshots as JSON."`
	URL   string   `name:"url" placeholder:"URL" help:"URL of a page that is read from a file."`
}

// arcLintResult is the report of `millrace arc lint --json` for a page.
type arcLintResult struct {
	Page     string             `json:"page"`
	Findings []snapshot.Finding `json:"findings"` // places that break a rule
	Error    string             `json:"error,omitempty"`
	Code     string             `json:"code,omitempty"`
}

// Run lints pages one after the other. Findings and unreadable pages are failures.
func (c *arcLintCommand) Run(ctx context.Context, p *process) error {
	if c.URL != "" && len(c.Pages) > 1 {
		return usageError("--url: only valid with a single page")
	}
	var results []arcLintResult
	failed := false
	for _, name := range c.Pages {
		v := arcLintResult{Page: name, Findings: []snapshot.Finding{}}
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
			results[i].text(w)
		}
	})
	if err == nil && failed {
		err = errReported
	}
	return err
}

func (c *arcLintCommand) lint(ctx context.Context, p *process, name string) ([]snapshot.Finding, error) {
	page, err := arcRead(ctx, p, &c.remote, name, c.URL)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(bytes.TrimSpace(page.data), []byte("{")) {
		return snapshot.LintJSON(page.data)
	}
	list, err := snapshot.Lint(ctx, page.data, page.address)
	return list, page.named(name, err)
}

// text writes the findings as text, one line each, as compilers do.
func (v *arcLintResult) text(w *bytes.Buffer) {
	switch {
	case strings.Contains(v.Error, v.Page):
		fmt.Fprintln(w, v.Error)
		return
	case v.Error != "":
		fmt.Fprintf(w, "%s: %s\n", v.Page, v.Error)
		return
	case len(v.Findings) == 0:
		fmt.Fprintf(w, "%s: no findings\n", v.Page)
	}
	for _, f := range v.Findings {
		w.WriteString(v.Page)
		if f.Line > 0 {
			fmt.Fprintf(w, ":%d:%d", f.Line, f.Column)
		}
		fmt.Fprintf(w, ": %s: %s (%s)\n", f.Rule, f.Message, cmp.Or(f.Path, "the whole"))
	}
}

type arcAnnotateCommand struct {
	common
	remote
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
	page, err := arcRead(ctx, p, &c.remote, c.Page, c.URL)
	if err != nil {
		return err
	}
	out, added, err := snapshot.Annotate(ctx, page.data, page.address)
	if err != nil {
		return page.named(c.Page, err)
	}
	if c.Out != "" {
		if err := replace.File(c.Out, func(w io.Writer) error { _, err := w.Write(out); return err }); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		p.log.Info("annotated", "url", c.Page, "attributes", len(added), "path", c.Out)
	}
	r := arcAdditions{Page: c.Page, Out: c.Out, Added: append([]snapshot.Addition{}, added...)}
	return p.report(&r, func(w *bytes.Buffer) {
		if c.Out == "" {
			w.Write(out)
		}
	})
}
