package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"time"

	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/internal/sites"
	"github.com/millrace/millrace/mirror"
)

type serveCommand struct {
	commonFlags      `group:"General"`
	fetchFlags       `group:"Reading the source"`
	crawlFlags       `group:"Reading the source"`
	extractFlags     `group:"Reading the source"`
	publishFlags     `group:"Published content"`
	embedFlags       `group:"Search"`
	accessFlags      `group:"Access"`
	mcpFlags         `group:"Search"`
	tlsFlags         `group:"Server"`
	pushFlags        `group:"Notifications"`
	frontFlags       `group:"Server"`
	signatureFlags   `group:"Access"`
	eventFlags       `group:"Analytics and dashboard"`
	eventExportFlags `group:"Analytics and dashboard"`
	metricsFlags     `group:"Analytics and dashboard"`
	dashboardFlags   `group:"Analytics and dashboard"`
	Source           string                          `arg:"" optional:"" help:"Source: the URL of a live site, a folder of HTML or Markdown, or a mirror FILE (default: the key source of millrace.yaml)."`
	Listen           string                          `default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"Address to listen on (default: ${default})." group:"Server"`
	BaseURL          string                          `name:"base-url" placeholder:"URL" help:"Base URL of the machine documents, and of the pages of a folder (default: the listen address, or SOURCE with --origin)." group:"Server"`
	As               string                          `enum:",${origins},mirror" default:"" placeholder:"KIND" help:"How to read the source, if detection fails: ${origins} or mirror." group:"Reading the source"`
	Store            string                          `placeholder:"FILE|URL" help:"Store of the source: a file, or postgres://USER@HOST/DATABASE (default: a file in the user's state folder, named after the source)." group:"Reading the source"`
	Artifacts        string                          `placeholder:"DIR|URL" help:"Store of the published documents: a folder, or s3://BUCKET/PREFIX?endpoint=URL (default: a folder next to the store)." group:"Server"`
	Site             string                          `placeholder:"URL" help:"Site to publish, if the mirror has several." group:"Reading the source"`
	RequestLog       string                          `placeholder:"FILE" help:"File to log requests to, one per line; - is standard error." group:"Server"`
	onReady          func(endpointBase string) error // replaces the report. If nil, print the report.
}

// serveReport is the report of `millrace serve --json` when the server is ready.
type serveReport struct {
	Site     string        `json:"site"`
	URL      string        `json:"url"`          // base URL of the machine documents
	As       string        `json:"as,omitempty"` // kind of the source, such as folder; absent if an earlier edition is published
	Pages    int           `json:"pages"`        // number of published pages
	Listed   int           `json:"listed"`       // pages that protocols list
	Archives int           `json:"archives"`     // published pages that protocols do not list, such as lists of the pages with a tag
	Hidden   int           `json:"hidden"`       // pages of the source that are not published, because of noindex or a rule
	Skipped  []mirror.Skip `json:"skipped"`      // pages of the source that were skipped
	Seconds  float64       `json:"seconds"`      // time until the first edition was published
}

// Run serves until its context ends.
func (c *serveCommand) Run(ctx context.Context, p *process) (err error) {
	start := time.Now()
	p.memory().Limit()
	p.reloads = make(chan chan<- error)
	asked, stop := p.hangupSignals()
	defer stop()
	plan, err := c.plan(p)
	if err != nil {
		return err
	}
	ln, err := listen(ctx, "--listen", c.Listen)
	if err != nil {
		return err
	}
	defer ln.Close()
	p.log.Info("listening", "address", ln.Addr())
	certs, err := c.certificates(p)
	if err != nil {
		return err
	}
	s, err := plan.prepare(ctx, ln.Addr(), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.source.Store.Close()) }()
	run := &running{now: s, at: ln.Addr(), certs: certs, ready: func(s *service) error { return c.ready(ctx, s, ln.Addr(), start) }}
	if c.onReady != nil {
		run.ready = func(s *service) error { return c.onReady(s.endpointBase) }
	}
	return run.until(ctx, ln, asked)
}

// ready prints the report when the first edition is published.
func (c *serveCommand) ready(ctx context.Context, s *service, addr net.Addr, start time.Time) error {
	fmt.Fprintf(s.p.stderr, "ready %s\n", s.endpointBase)
	if c.Dashboard != "" {
		at := s.endpointBase
		if c.place() == sites.Alongside { // print the address of this server, because the web server may not be configured yet
			at = c.own(addr.String())
		}
		fmt.Fprintf(s.p.stderr, "dashboard %s\n", c.dashboardAt(at))
	}
	now := s.Server.Current().View.Site()
	counts, err := edition.CountPages(ctx, s.site, now)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // a canceled context is not a failure
	}
	if err != nil {
		return err
	}
	r := serveReport{
		Site: now.Base, URL: s.endpointBase, Pages: now.Pages, Listed: counts.Listed, Archives: counts.Archives, Hidden: counts.Hidden,
		Skipped: []mirror.Skip{}, Seconds: time.Since(start).Seconds(),
	}
	if l := s.source.Last(); l != nil {
		r.As = l.Kind
	}
	skips, skipped, err := s.source.Skipped(ctx)
	if err != nil && ctx.Err() == nil {
		return err
	}
	r.Skipped = append(r.Skipped, skips...)
	if counts.Archives+counts.Hidden+skipped > 0 {
		s.p.log.Info("some pages are not listed", "listed", counts.Listed, "archives", counts.Archives, "hidden", counts.Hidden, "skipped", skipped)
	}
	if !c.JSON {
		return nil
	}
	return s.p.report(r, nil)
}

// validate rejects invalid values.
func (c *serveCommand) validate() error {
	if c.Listen == "" {
		return usageError("--listen: name an address, such as 127.0.0.1:8080; :8080 means every address of this machine")
	}
	if u, err := url.Parse(c.behind()); err == nil && u.Host == c.Listen {
		return usageError(fmt.Sprintf("--origin %s: this is the address of this server; name the server behind it", c.Origin))
	}
	if c.AccessLog != "" && c.Origin != "" {
		return usageError("--access-log and --origin cannot be combined; in front of a site, millrace records all requests itself")
	}
	if _, err := sites.PlaceOf(c.Place, c.Source, c.Origin); err != nil {
		return usageError("--" + err.Error())
	}
	_, err := c.rules()
	return errors.Join(c.crawlFlags.validate(), c.publishFlags.validate(), c.accessFlags.validate(), c.tlsFlags.validate(), c.frontFlags.validate(), c.signatureFlags.validate(), c.eventFlags.validate(), c.eventExportFlags.validate(c.Events > 0), c.metricsFlags.validate(), c.dashboardFlags.validate(), err)
}

// requestLog opens the request log. If the log is off, the writer is nil. If the log need not be
// closed, the function is nil.
func (c *serveCommand) requestLog(p *process) (io.Writer, func() error, error) {
	switch c.RequestLog {
	case "":
		return nil, nil, nil
	case "-":
		return p.stderr, nil, nil
	}
	f, err := os.OpenFile(c.RequestLog, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("request log: %w", err)
	}
	return f, f.Close, nil
}
