package main

import (
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
	URL  string `arg:"" name:"url" help:"Your site, by the address that visitors know."`
	File string `arg:"" optional:"" default:"millrace.yaml" help:"File to write; one that is there stays as it is (default: ${default})."`
}

// Run looks at a site, and writes a configuration for it.
func (c *initCommand) Run(ctx context.Context, p *process) error {
	p.start(&c.common)
	if err := c.remote.validate(); err != nil {
		return err
	}
	at, err := siteFolder(c.URL)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(c.File); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("%s: %w, and stays as it is: name another FILE behind the URL, and compare", c.File, fs.ErrExist)
		}
		return err
	}
	start := time.Now()
	client := c.client(p, forgetful{})
	bar := p.progress("looking at " + at)
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
	if err := writeConfig(c.File, r); err != nil {
		return err
	}
	stats := client.Stats()
	r.Requests, r.Seconds = stats.Requests, time.Since(start).Round(time.Millisecond).Seconds()
	return p.report(r, r.Text)
}

// initDashboard is where a new configuration has the dashboard. Few sites have
// something of the name.
const initDashboard = "/millrace"

// writeConfig writes the configuration into a new file.
func writeConfig(file string, r *setup.Report) error {
	text, err := r.YAML(time.Now())
	if err != nil {
		return err
	}
	// It has the hash of a password, and is where secrets go.
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	return nil
}
