package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/replace"
	"github.com/millrace/millrace/internal/setup"
)

type initCommand struct {
	commonFlags
	fetchFlags
	Source string `arg:"" help:"Public URL of your site, or the folder of its files."`
	File   string `arg:"" optional:"" default:"millrace.yaml" help:"File to write (default: ${default}). An existing file is not changed."`
}

// Run probes a site and writes a configuration for it.
func (c *initCommand) Run(ctx context.Context, p *process) error {
	if _, err := os.Lstat(c.File); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("%s: %w; name another FILE after the source, and compare the two", c.File, fs.ErrExist)
		}
		return err
	}
	r, err := c.probe(ctx, p, c.Source, "", c.File)
	if err != nil {
		return err
	}
	if err := writeConfig(r); err != nil {
		return err
	}
	return p.report(r, func(w *bytes.Buffer) { _ = r.Text(w) })
}

// probe probes a site or a folder. base is the URL of the folder's pages, or "" if unknown.
func (c *fetchFlags) probe(ctx context.Context, p *process, source, base, file string) (*setup.Report, error) {
	o := &setup.Options{File: file, Private: c.AllowPrivate, Logger: p.log}
	if source == "" {
		return nil, usageError("SOURCE is missing; name the URL or the folder of your site")
	}
	if info, err := os.Stat(source); err == nil && info.IsDir() {
		return setup.ProbeFolder(ctx, source, base, o)
	} else if err == nil {
		return nil, usageError(fmt.Sprintf("%s is a file; name the URL or the folder of your site", source))
	} else if !strings.Contains(source, "://") && strings.ContainsAny(source, `/\`) {
		return nil, fmt.Errorf("source: %w", err)
	}
	at, err := siteFolder(source)
	if err != nil {
		return nil, orFolder(source, err)
	}
	start := time.Now()
	client := c.client(p, discardRobots{})
	defer client.CloseIdleConnections()
	bar := p.progress("probing " + at)
	bar.Count("requests")
	o.Progress = func(n int) { bar.Show(n, n) }
	r, err := setup.Probe(ctx, client.HTTP(), at, o)
	bar.End()
	if err != nil {
		return nil, err
	}
	stats := client.Stats()
	r.Requests, r.Seconds = stats.Requests, time.Since(start).Round(time.Millisecond).Seconds()
	return r, nil
}

// writeConfig writes the configuration, with a new password for its dashboard.
func writeConfig(r *setup.Report) error {
	if r.Dashboard != "" {
		made, err := newPassword()
		if err != nil {
			return err
		}
		r.Password, r.Hash = made.Password, made.Hash
	}
	text, err := r.YAML(time.Now())
	if err != nil {
		return err
	}
	// The file contains the hash of a password, and the owner may add secrets.
	return replace.New(r.File, []byte(text), 0o600)
}
