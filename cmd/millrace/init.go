package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/millrace/millrace/internal/setup"
)

type initCommand struct {
	common
	remote
	URL  string `arg:"" name:"url" help:"Public URL of your site."`
	File string `arg:"" optional:"" default:"millrace.yaml" help:"File to write (default: ${default}). An existing file is not changed."`
}

// Run probes a site and writes a configuration for it.
func (c *initCommand) Run(ctx context.Context, p *process) error {
	at, err := siteFolder(c.URL)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(c.File); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("%s: %w; name another FILE after the URL, and compare", c.File, fs.ErrExist)
		}
		return err
	}
	start := time.Now()
	client := c.client(p, forgetful{})
	bar := p.progress("probing " + at)
	bar.Count("requests")
	r, err := setup.Probe(ctx, client.HTTP(), at, &setup.Options{
		File: c.File, Private: c.AllowPrivate, Logger: p.log, Progress: func(n int) { bar.Show(n, n) },
	})
	bar.End()
	if err != nil {
		return err
	}
	made, err := newPassword()
	if err != nil {
		return err
	}
	r.Dashboard, r.Password, r.Hash = initDashboard, made.Password, made.Hash
	text, err := r.YAML(time.Now())
	if err != nil {
		return err
	}
	// The file contains the hash of a password, and may get secrets.
	if err := writeNew(c.File, []byte(text)); err != nil {
		return err
	}
	stats := client.Stats()
	r.Requests, r.Seconds = stats.Requests, time.Since(start).Round(time.Millisecond).Seconds()
	return p.report(r, func(w *bytes.Buffer) { _ = r.Text(w) })
}

// initDashboard is the dashboard's path in a new configuration. Few sites have such a path.
const initDashboard = "/millrace"
