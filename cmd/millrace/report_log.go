package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"time"

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
		return usageError("--store and --as: not valid with access logs")
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
	local, err := accesslog.LocalAddresses()
	if err != nil {
		p.log.Warn("could not read addresses of this machine", "err", err)
	}
	p.memory().SaveMemory()
	o := &report.LogOptions{
		Files: append([]string{c.Source}, c.Logs...), Stdin: p.stdin, Unit: map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond}[c.Unit],
		Site: c.Site, Bots: table, Local: local, Coefficients: c.values(), Client: c.client(p, discardRobots{}).HTTP(),
	}
	if c.Since != "" {
		o.Since = since
	}
	out, err := report.Logs(ctx, o)
	if err != nil {
		return err
	}
	return c.print(p, out)
}
