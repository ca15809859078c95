package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/export"
	"github.com/millrace/millrace/internal/tree"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

type exportCommand struct {
	commonFlags
	chosenSites
	Store  string `required:"" placeholder:"FILE|URL" help:"Mirror that pull has written, or the store of a published site. It is opened read-only."`
	Format string `required:"" enum:"jsonl,markdown,parquet,csv,atom" placeholder:"FORMAT" help:"Format: jsonl has each page in full, one per line; markdown is a folder of files with front matter; parquet is pages.parquet and chunks.parquet; csv has the metadata of each page. The format atom is a folder with a feed of the newest changes of each site."`
	Out    string `placeholder:"PATH" help:"File for jsonl and csv, or folder for markdown, parquet and atom; - is standard output (default: standard output)."`
	Since  string `placeholder:"CURSOR|TIME|FILE" help:"Export only changes, as jsonl: since the cursor that an earlier export has reported for the site, since a time, such as 2026-11-20T12:00:00Z, or since the export whose report, from --json, is in a file."`
}

// Run exports the pages of a store.
func (c *exportCommand) Run(ctx context.Context, p *process) error {
	p.memory().Limit()
	folder := c.Format == "markdown" || c.Format == "parquet" || c.Format == "atom"
	piped := c.Out == "" || c.Out == "-"
	switch {
	case folder && piped:
		return usageError("--format " + c.Format + " writes a folder; name it with --out")
	case piped && c.JSON:
		return usageError("--json: the report and the pages cannot both go to standard output; name a file for the pages with --out")
	case c.Since != "" && c.Format != "jsonl":
		return usageError("--since: changes can be exported only as jsonl; use --format jsonl")
	case !folder && !piped && ofStore(c.Out, c.Store):
		return usageError("--out " + c.Out + ": this is the store")
	}
	st, err := stores.Open(ctx, c.Store, &store.Options{Logger: p.log, ReadOnly: true})
	if errors.Is(err, millrace.ErrNotFound) {
		return fmt.Errorf("%w; run millrace pull URL --store %s first", err, stores.Name(c.Store))
	} else if err != nil {
		return err
	}
	r, err := c.export(ctx, p, st)
	if err = errors.Join(err, st.Close()); err != nil {
		if piped && errors.Is(err, syscall.EPIPE) {
			return errReported // the reader of standard output has closed the pipe
		}
		return err
	}
	if !piped {
		return p.report(r, func(w *bytes.Buffer) { _ = r.WriteText(w) })
	}
	if c.Quiet {
		return nil
	}
	r.Out = "standard output"
	return r.WriteText(p.stderr)
}

// export exports the selected sites.
func (c *exportCommand) export(ctx context.Context, p *process, st store.Store) (*export.Report, error) {
	names, all, err := c.of(ctx, st, c.Store)
	if err != nil {
		return nil, err
	}
	since := &export.Since{Text: c.Since}
	switch {
	case c.Since == "":
		since = nil
	case !export.IsSince(c.Since):
		if since, err = export.ReadSince(c.Since); err != nil {
			return nil, usageError(fmt.Sprintf("--since %s: not a cursor, a time, such as 2026-11-20T12:00:00Z, or a file with the report of an export: %v", c.Since, err))
		}
	case len(names) > 1 && !export.IsTime(c.Since):
		return nil, usageError("--since: a cursor belongs to one site; name the site with --site, or use the report of the earlier export")
	}
	out := c.Out
	if out == "-" {
		out = ""
	}
	bar := p.progress("exporting")
	defer bar.End()
	r, err := export.Run(ctx, st, &export.Request{
		Sites: names, All: all, Format: c.Format, Out: out, Stdout: p.stdout, Since: since, Progress: bar.Show, Logger: p.log,
	})
	if r != nil {
		r.Store, r.Out = stores.Name(c.Store), c.Out
	}
	return r, err
}

// ofStore reports whether a file is the store or one of the store's files.
func ofStore(file, store string) bool {
	return slices.Contains([]string{"", "-wal", "-shm", "-journal"}, strings.TrimPrefix(tree.Real(file), tree.Real(store)))
}
