package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/accesslog"
	"github.com/millrace/millrace/internal/report"
)

// readsLogs reports whether the sources are access logs: several sources, standard input, or a
// file that is not a store.
func (c *reportCommand) readsLogs() bool {
	if len(c.Logs) > 0 || c.Source == "-" {
		return true
	}
	info, err := os.Stat(c.Source)
	return err == nil && info.Mode().IsRegular() && !isStore(c.Source)
}

// isStore reports whether a file is an SQLite database.
func isStore(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // opened only for reading
	magic := make([]byte, 16)
	_, err = io.ReadFull(f, magic)
	return err == nil && bytes.Equal(magic, []byte("SQLite format 3\x00"))
}

// logs reports the traffic in access logs.
func (c *reportCommand) logs(ctx context.Context, p *process, since time.Time) (err error) {
	if c.Store != "" || c.As != "" {
		return usageError("--store and --as are for a source of serve, not for access logs")
	}
	if c.Site != "" {
		if c.Site, err = siteURL(c.Site); err != nil {
			return err
		}
	}
	table, err := c.table(p)
	if err != nil {
		return err
	}
	local, err := accesslog.Local()
	if err != nil {
		p.log.Warn("read addresses of this machine failed", "err", err)
	}
	files := append([]string{c.Source}, c.Logs...)
	o := &report.LogOptions{Files: files, Site: c.Site, Bots: table, Local: local, Coefficients: c.values()}
	if c.Since != "" {
		o.Since = since
	}
	p.memory().Save()
	r := report.NewLogReport(o)
	s := &accesslog.Scanner{Parser: accesslog.Parser{Unit: map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond}[c.Unit]}}
	var damaged []string
	var failed error
	for _, name := range files {
		err := scanLog(ctx, p, s, name, r.Add)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			damaged, failed = append(damaged, err.Error()), errors.Join(failed, err)
		}
	}
	switch {
	case s.Requests == 0 && failed != nil:
		return failed
	case s.Requests == 0:
		why := "the logs are empty"
		if s.Lines > 0 {
			why = "no line is a request in the combined or common format, or JSON of Caddy, Cloudflare or nginx"
		}
		if len(s.Examples) > 0 {
			why += fmt.Sprintf("; line %d of %s: %s", s.Examples[0].Line, s.Examples[0].File, s.Examples[0].Text)
		}
		return fmt.Errorf("read access logs: %w: %s", millrace.Coded("no-requests", millrace.ErrInvalid), why)
	}
	out, err := r.Report(s, damaged)
	if err != nil {
		return err
	}
	if c.Site != "" {
		if err := r.Measure(ctx, c.client(p, forgetful{}).HTTP(), out); err != nil {
			return err
		}
	}
	return c.print(p, out)
}

// scanLog reads one log.
func scanLog(ctx context.Context, p *process, s *accesslog.Scanner, name string, each func(*accesslog.Line)) error {
	in := p.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("access log: %w", err)
		}
		defer func() { _ = f.Close() }() // opened only for reading
		in = f
	}
	return s.Scan(ctx, name, in, each)
}
