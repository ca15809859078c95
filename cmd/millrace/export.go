package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/export"
	"github.com/millrace/millrace/internal/humanize"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/replace"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

type exportCommand struct {
	common
	Store  string `required:"" placeholder:"FILE" help:"Mirror that pull has written, or the store of a site that is served. It is only read."`
	Format string `required:"" enum:"jsonl,markdown,parquet,csv" placeholder:"FORMAT" help:"jsonl: all of each page, a line each; markdown: a tree of files with front matter; parquet: pages.parquet and chunks.parquet; csv: the metadata of each page."`
	Out    string `placeholder:"PATH" help:"Where to write: a file for jsonl and csv (default, and -: standard output), a folder for markdown and parquet."`
	Site   string `placeholder:"URL" help:"Export only this site of the store (default: all of them)."`
	Since  string `placeholder:"CURSOR" help:"Export only what has changed of the site, as jsonl: since the cursor that an earlier export has reported, or since a time, such as 2026-11-20T12:00:00Z."`
}

// exportReport is what `millrace export --json` prints.
type exportReport struct {
	Store  string         `json:"store"`
	Format string         `json:"format"`
	Out    string         `json:"out"`
	Sites  []exportedSite `json:"sites"`
	export.Counts
}

// exportedSite is the state of a site that was exported.
type exportedSite struct {
	Site   string `json:"site"`
	Pages  int    `json:"pages"`
	Cursor string `json:"cursor"` // moves with every change of the site
	// Partial: no pull of the site has come to its end yet.
	Partial bool `json:"partial,omitempty"`
	// Terms are the documents that say what the content may be used for.
	Terms []string `json:"terms,omitempty"`
}

// Run writes the pages of a store in another form.
func (c *exportCommand) Run(ctx context.Context, p *process) error {
	p.limitMemory()
	folder := c.Format == "markdown" || c.Format == "parquet"
	piped := c.Out == "" || c.Out == "-"
	switch {
	case folder && piped:
		return usageError("--format " + c.Format + " writes a folder: name it with --out")
	case piped && c.JSON:
		return usageError("--json prints the report on standard output, where the pages go: name a file for them with --out")
	case c.Since != "" && c.Format != "jsonl":
		return usageError("--since: changes are exported as jsonl")
	case !folder && !piped && sameFile(c.Store, c.Out):
		return usageError("--out " + c.Out + ": that is the store itself")
	}
	st, err := stores.Open(ctx, c.Store, &store.Options{Logger: p.log, ReadOnly: true})
	if errors.Is(err, millrace.ErrNotFound) {
		return fmt.Errorf("%w: write one with millrace pull URL --store %s", err, c.Store)
	} else if err != nil {
		return err
	}
	r := &exportReport{Store: c.Store, Format: c.Format, Out: c.Out}
	err = c.export(ctx, p, st, r)
	if err = errors.Join(err, st.Close()); err != nil {
		if piped && errors.Is(err, syscall.EPIPE) {
			return errReported // whoever reads has seen enough
		}
		return err
	}
	if !piped {
		return p.report(r, r.text)
	}
	if c.Quiet {
		return nil
	}
	r.Out = "standard output"
	var w bytes.Buffer
	r.text(&w)
	_, err = p.stderr.Write(w.Bytes())
	return err
}

// export writes the sites that are meant.
func (c *exportCommand) export(ctx context.Context, p *process, st store.Store, r *exportReport) error {
	names, all, err := sitesOf(ctx, st, c.Store, c.Site)
	if err != nil {
		return err
	}
	var sites []export.Site
	var bases, exported []string
	pages := 0
	for _, name := range all {
		meant := len(names) == len(all) || name == names[0]
		site, v, err := ingest.Head(ctx, st, name)
		if err != nil && meant {
			return err
		} else if err != nil {
			bases = append(bases, name)
			continue
		}
		info := v.Site()
		bases = append(bases, info.Base)
		if !meant {
			continue
		}
		s := export.Site{View: v}
		s.Terms, err = exportTerms(ctx, st.State(), site, name)
		if err != nil {
			return err
		}
		partial, err := ingest.Partial(st.State(), name).Load(ctx)
		if err != nil {
			return err
		}
		said := exportedSite{Site: info.Base, Pages: info.Pages, Cursor: cursorOf(name, info.At(info.Seq)), Partial: partial}
		if said.Partial {
			p.log.Warn("mirror is partial; pull again", "site", name, "code", "partial-mirror")
		}
		for _, t := range s.Terms {
			said.Terms = append(said.Terms, t.URL)
		}
		sites, exported = append(sites, s), append(exported, name)
		pages += info.Pages
		r.Sites = append(r.Sites, said)
	}
	var since millrace.Cursor
	if c.Since != "" {
		if len(sites) > 1 {
			return usageError("--since is about one site: name it with --site")
		}
		if since, err = sinceOf(ctx, sites[0].View, exported[0], c.Since); err != nil {
			return err
		}
	}
	bar := p.progress("exporting")
	defer bar.End()
	o := &export.Options{Progress: func(done int) { bar.Show(done, max(done, pages)) }}
	switch c.Format {
	case "markdown":
		r.Counts, err = export.Markdown(ctx, export.Tree{Dir: c.Out, Folders: export.Folders(bases), Part: len(names) < len(all)}, sites, o)
		return err
	case "parquet":
		r.Counts, err = export.Parquet(ctx, c.Out, sites, o)
		return err
	}
	write := func(w io.Writer) error {
		switch {
		case c.Format == "csv":
			r.Counts, err = export.CSV(ctx, w, sites, o)
		case since != "":
			r.Counts, err = export.Changes(ctx, w, sites[0], since, o)
		default:
			r.Counts, err = export.Lines(ctx, w, sites, o)
		}
		return err
	}
	if c.Out == "" || c.Out == "-" {
		return write(p.stdout)
	}
	return replace.File(c.Out, write)
}

// cursorOf gives a place in the log of a site, with the site's mark at its end:
// all sites of a store count from 1, so that a place in one would be taken for
// a place in another.
func cursorOf(name string, c millrace.Cursor) string {
	sum := sha256.Sum256([]byte(name))
	return string(c) + ":" + hex.EncodeToString(sum[:4])
}

// sinceOf gives the place in a site's log that a time or a cursor is.
func sinceOf(ctx context.Context, v millrace.View, name, s string) (millrace.Cursor, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		seq, err := v.SeqAt(ctx, t)
		return v.Site().At(seq), err
	}
	if strings.Count(s, ":") != 2 {
		return "", usageError(fmt.Sprintf("--since %s: it is neither a cursor that an export has reported nor a time, such as 2026-11-20T12:00:00Z", s))
	}
	c := millrace.Cursor(s[:strings.LastIndex(s, ":")])
	if cursorOf(name, c) != s {
		return "", fmt.Errorf("--since %s: %w: it is the cursor of another site", s, millrace.ErrConflict)
	}
	return c, nil // whether it is of this store, the log says
}

// exportTerms gives the terms of a site, which are those of where it was pulled
// from, wherever it has been published since.
func exportTerms(ctx context.Context, st store.State, site store.Site, name string) ([]protocol.Terms, error) {
	if u, err := url.Parse(name); err == nil && u.Host != "" {
		r, err := ingest.LoadTerms(ctx, st, u)
		return r.Terms, err
	}
	r, err := ingest.SiteTerms(ctx, st, site)
	return r.Terms, err
}

// sameFile reports whether a file is a store, or lies beside it as a part of it.
func sameFile(store, file string) bool {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		a, err := os.Stat(store + suffix)
		if err != nil {
			a = nil
		}
		if b, err := os.Stat(file); err == nil && a != nil && os.SameFile(a, b) {
			return true
		}
		if x, err := filepath.Abs(store + suffix); err == nil {
			if y, err := filepath.Abs(file); err == nil && x == y {
				return true
			}
		}
	}
	return false
}

// text prints the report for a person.
func (r *exportReport) text(w *bytes.Buffer) {
	fmt.Fprintf(w, "%s of %s to %s: %s", humanize.Quantity(int64(r.Pages), "page"), humanize.Quantity(int64(len(r.Sites)), "site"), r.Out, humanize.Bytes(r.Bytes))
	if r.Chunks > 0 {
		fmt.Fprintf(w, ", %s", humanize.Quantity(int64(r.Chunks), "chunk"))
	}
	w.WriteByte('\n')
	if r.Format == "markdown" {
		fmt.Fprintf(w, "  %d written, %d unchanged, %d removed\n", r.Files-r.Unchanged, r.Unchanged, r.Removed)
	}
	for _, name := range r.Left {
		fmt.Fprintf(w, "  left: %s, which somebody has changed; the site does not have it any more\n", humanize.Printable(name))
	}
	if r.Format == "jsonl" && r.Removed > 0 {
		fmt.Fprintf(w, "  %s gone\n", humanize.Quantity(int64(r.Removed), "page"))
	}
	for _, s := range r.Sites {
		if r.Format == "jsonl" {
			fmt.Fprintf(w, "  what changes from now on of %s: --since %s\n", s.Site, s.Cursor)
		}
		if len(s.Terms) > 0 {
			fmt.Fprintf(w, "  %s says what its content may be used for, and so does each page: %s\n", s.Site, strings.Join(s.Terms, ", "))
		}
	}
}
