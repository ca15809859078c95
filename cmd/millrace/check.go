package main

import (
	"bytes"
	"context"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
)

type checkCommand struct {
	common
	remote
	keyed
	URL      string `arg:"" name:"url" help:"Site to check: its root or any of its pages."`
	Protocol string `placeholder:"NAME" help:"Check only this protocol."`
	KeyFile  string `placeholder:"FILE" help:"File with the key for the site in its first line. The key is sent only to the site's own origin, and not to documents that must be public. Without the flag, the key is read from MILLRACE_KEY."`
}

// Run checks a site. It fails if the site violates a MUST or lacks a requested protocol.
func (c *checkCommand) Run(ctx context.Context, p *process) error {
	ways, err := protocols(c.Protocol)
	if err != nil {
		return err
	}
	site, err := siteURL(c.URL)
	if err != nil {
		return err
	}
	if err := c.load(p, c.KeyFile, site); err != nil {
		return err
	}
	target, err := check.NewTarget(site, c.visitor(c.client(p, nil)), &check.TargetOptions{Decode: fetch.Decode, Keyed: c.key != ""})
	if err != nil {
		return usageError(err.Error())
	}
	suites := make([]check.Suite, len(ways))
	for i, proto := range ways {
		suites[i] = proto.Suite()
	}
	report, err := check.Run(ctx, target, suites, nil)
	if err != nil {
		return err
	}
	if err := p.report(report, func(w *bytes.Buffer) { _ = report.WriteText(w) }); err != nil {
		return err
	}
	if report.Failed() || c.Protocol != "" && !report.Protocols[c.Protocol].Found {
		return errReported
	}
	return nil
}
