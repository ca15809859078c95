package main

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/check/profile"
	"github.com/millrace/millrace/internal/fetch"
)

type checkCommand struct {
	common
	remote
	keyed
	URL      string `arg:"" name:"url" help:"Site to check: its root or any of its pages."`
	Protocol string `placeholder:"NAME" help:"Check only this protocol."`
	Profile  string `enum:",agent-ready" default:"" placeholder:"NAME" help:"Check a profile in place of the protocols: agent-ready, which has a score."`
	SARIF    string `name:"sarif" placeholder:"FILE" help:"Also write the findings as SARIF 2.1.0 to this file."`
	KeyFile  string `placeholder:"FILE" help:"File with the key for the site in its first line. The key is sent only to the site's own origin, and not to documents that must be public. Without the flag, the key is read from MILLRACE_KEY."`
}

// Run checks a site. It fails if the site violates a MUST or lacks a requested protocol. The
// rules of a profile are all SHOULD.
func (c *checkCommand) Run(ctx context.Context, p *process) error {
	ways, err := protocols(c.Protocol)
	if err != nil {
		return err
	}
	if c.Protocol != "" && c.Profile != "" {
		return usageError("--protocol and --profile can't be used together")
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
	var suites []check.Suite
	switch {
	case c.Profile != "":
		suites = append(suites, profile.AgentReady())
	default:
		for _, proto := range ways {
			suites = append(suites, proto.Suite())
		}
		if c.Protocol == "" {
			suites = append(suites, profile.Proxy())
		}
	}
	report, err := check.Run(ctx, target, suites, nil)
	if err != nil {
		return err
	}
	if c.SARIF != "" {
		var b bytes.Buffer
		if err := report.WriteSARIF(&b, buildVersion()); err != nil {
			return err
		}
		if err := os.WriteFile(c.SARIF, b.Bytes(), 0o600); err != nil {
			return fmt.Errorf("--sarif: %w", err)
		}
	}
	if err := p.report(report, func(w *bytes.Buffer) { _ = report.WriteText(w) }); err != nil {
		return err
	}
	if report.Failed() || c.Protocol != "" && !report.Protocols[c.Protocol].Found {
		return errReported
	}
	return nil
}
