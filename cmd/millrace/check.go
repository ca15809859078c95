package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/profile"
	"github.com/millrace/millrace/internal/static"
)

type checkCommand struct {
	commonFlags
	fetchFlags
	siteKey
	Site     string `arg:"" name:"site" help:"Site to check: the URL of its root or of any of its pages, or a folder that build has written."`
	Protocol string `placeholder:"NAME" help:"Check only this protocol."`
	Profile  string `enum:",agent-ready" default:"" placeholder:"NAME" help:"Check a profile instead of the protocols: agent-ready, which has a score."`
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
		return usageError("--protocol and --profile cannot be combined")
	}
	site, client, file, err := c.open(p)
	if err != nil {
		return err
	}
	target, err := check.NewTarget(site, client, &check.TargetOptions{Decode: fetch.Decode, Keyed: c.key != ""})
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
	for i := range report.Findings {
		if f := &report.Findings[i]; file != nil && f.URL != "" {
			f.URL = file(f.URL)
		}
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
	switch {
	case report.Failed():
		return errReported
	case report.Inconclusive != "":
		return errInconclusive
	case c.Protocol != "" && !report.Protocols[c.Protocol].Found:
		return errReported
	}
	return nil
}

// open returns the URL of the site and a client for it. For a folder, file returns the path of
// the file for a URL. The process ends before the folder must be closed.
func (c *checkCommand) open(p *process) (site string, client *http.Client, file func(url string) string, err error) {
	if info, err := os.Stat(c.Site); err == nil && info.IsDir() {
		host, err := static.OpenHost(c.Site)
		if err != nil {
			return "", nil, nil, err
		}
		return host.Base(), &http.Client{Transport: host}, func(url string) string { return filepath.ToSlash(host.File(url)) }, nil
	}
	if site, err = siteURL(c.Site); err != nil {
		return "", nil, nil, orFolder(c.Site, err)
	}
	if err := c.load(p, c.KeyFile, site); err != nil {
		return "", nil, nil, err
	}
	return site, c.checkClient(c.client(p, nil)), nil, nil
}
