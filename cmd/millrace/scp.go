package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol/scp"
)

// scpCommand contains the commands for SCP collections in files.
type scpCommand struct {
	Inspect scpInspectCommand `cmd:"" help:"Show the metadata and a summary of an SCP collection."`
	Verify  scpVerifyCommand  `cmd:"" help:"Verify SCP collections: compression, limits, checksum, every line."`
	Cat     scpCatCommand     `cmd:"" help:"Print the pages of an SCP collection as JSON Lines."`
}

type scpVerifyCommand struct {
	commonFlags
	fetchFlags
	Files []string `arg:"" name:"file" help:"Collections: FILEs, URLs, or - for standard input."`
}

// Run verifies files one after the other. An invalid file or page is a failure.
func (c *scpVerifyCommand) Run(ctx context.Context, p *process) error {
	var reports []*scp.FileReport
	failed := false
	for _, name := range c.Files {
		r := new(scp.FileReport)
		f, err := c.openSCP(ctx, p, name)
		if err == nil {
			r, err = f.Report(ctx)
			_ = f.Close()
		}
		if _, usage := errors.AsType[usageError](err); usage || ctx.Err() != nil {
			return cmp.Or(err, ctx.Err())
		}
		r.File = name
		r.Fail(err)
		failed = failed || err != nil || r.Skipped > 0
		reports = append(reports, r)
	}
	err := p.report(oneOrAll(reports), func(w *bytes.Buffer) {
		for _, r := range reports {
			fmt.Fprintf(w, "%s: %s\n", r.File, r)
		}
	})
	if err == nil && failed {
		err = errReported
	}
	return err
}

// openSCP opens a collection and shows its progress bar.
func (r *fetchFlags) openSCP(ctx context.Context, p *process, name string) (*scp.File, error) {
	if strings.Contains(name, "://") {
		address, err := siteURL(name)
		if err != nil {
			return nil, err
		}
		name = address
	}
	show := p.steps()
	return scp.OpenFile(ctx, name, &scp.FileOptions{
		Stdin: p.stdin, Client: r.client(p, nil).HTTP(), Logger: p.log,
		Progress: func(step string, read, total int64) { show(step, "MB", int(read>>20), int(total>>20)) },
	})
}

type scpInspectCommand struct {
	commonFlags
	fetchFlags
	File string `arg:"" help:"Collection: a FILE, a URL, or - for standard input."`
}

// Run shows the content of a file. It shows as much as possible of an invalid file.
func (c *scpInspectCommand) Run(ctx context.Context, p *process) error {
	r := &scp.Inspection{Sections: map[string]int{}, Blocks: map[string]int{}}
	f, err := c.openSCP(ctx, p, c.File)
	if err == nil {
		r, err = f.Inspect(ctx)
		_ = f.Close()
	} else if _, usage := errors.AsType[usageError](err); !usage {
		err = fmt.Errorf("%s: %w", c.File, err)
		r.Fail(err)
	}
	if err = cmp.Or(ctx.Err(), err); f == nil && (r.Error == "" || !c.JSON) || ctx.Err() != nil {
		return err
	}
	r.File = c.File
	if err := p.report(r, func(w *bytes.Buffer) { _ = r.WriteText(w) }); err != nil {
		return err
	}
	if r.Error != "" {
		return errReported
	}
	return nil
}

type scpCatCommand struct {
	commonFlags
	fetchFlags
	File string `arg:"" help:"Collection: a FILE, a URL, or - for standard input."`
}

// Run verifies a file, then prints its pages. If the file is invalid, it prints no pages.
func (c *scpCatCommand) Run(ctx context.Context, p *process) error {
	err := c.cat(ctx, p)
	if _, usage := errors.AsType[usageError](err); err == nil || usage {
		return err
	}
	return fmt.Errorf("%s: %w", c.File, err)
}

func (c *scpCatCommand) cat(ctx context.Context, p *process) error {
	f, err := c.openSCP(ctx, p, c.File)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	f.Step("verify", 1)
	if _, err := f.Verify(ctx); err != nil {
		return err
	}
	step := "print"
	if p.stdout.Terminal {
		step = "" // the pages show the progress
	}
	f.Step(step, 1)
	out := bufio.NewWriterSize(p.stdout, 64<<10)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	var skips ingest.SkipGroups
	defer func() { ingest.LogSkips(p.log.With("path", c.File), skips.Groups) }()
	for page, err := range f.Pages(ctx) {
		if skip, ok := errors.AsType[*millrace.SkipError](err); ok {
			skips.Add(mirror.Skip{URL: strings.Clone(skip.URL), Code: millrace.ErrorCode(skip.Err), Reason: skip.Err.Error()})
			continue
		}
		if err == nil {
			err = e.Encode(page)
		}
		if err != nil {
			return errors.Join(err, out.Flush())
		}
	}
	return out.Flush()
}
