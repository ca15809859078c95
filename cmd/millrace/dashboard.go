package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/dashboard"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/gateway"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/savings"
	"github.com/millrace/millrace/internal/serving"
	"github.com/millrace/millrace/internal/sitelist"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/store"
)

// dashboardFlags holds the flags of the dashboard.
type dashboardFlags struct {
	Dashboard         string `placeholder:"PATH" help:"Path of the owner's dashboard, such as /dashboard. It needs a login (default: no dashboard)."`
	DashboardPassword string `placeholder:"KEY" help:"Hash of the dashboard's password, from millrace keys password. Set it in the configuration file or in the environment."`
}

// validate rejects invalid values.
func (c *dashboardFlags) validate() error {
	if c.Dashboard != "" && (!strings.HasPrefix(c.Dashboard, "/") || strings.Trim(c.Dashboard, "/") == "") {
		return usageError(fmt.Sprintf("--dashboard %q: name a path, such as /dashboard", c.Dashboard))
	}
	switch {
	case c.DashboardPassword != "":
		if err := dashboard.CheckHash(c.DashboardPassword); err != nil {
			return usageError("--dashboard-password: " + err.Error())
		}
	case c.Dashboard != "":
		return usageError("--dashboard: no password is set; run millrace keys password to create one")
	}
	return nil
}

// dashboardAt returns the URL of the dashboard on the origin of the URL at.
func (c *dashboardFlags) dashboardAt(at string) string {
	return canon.Origin(at) + "/" + strings.Trim(c.Dashboard, "/") + "/"
}

// board creates the dashboard of a service. The gateway that contains it is created later.
func (s *service) board(ctx context.Context, so *serving.Options, o *gateway.Options) error {
	c, p, from := s.c, s.p, s.source
	if c.Dashboard == "" {
		return nil
	}
	site := &dashboard.SiteOptions{
		Name: from.Name, Base: from.Base, EndpointBase: s.endpointBase, ExternalPages: o.Origin == nil && from.Files == nil && !from.IsTextOnly(), Pages: s.site, Server: s.Server,
		LastScan: from.lastScan, Replicas: s.Replicas.List, Save: s.save(), Policy: so.Publisher.Policy, Keys: from.Store.Keys(), Coefficients: savings.Default(),
		Access: &dashboard.AccessSettings{
			RequireKey: c.RequireKey, PublicProtocols: c.PublicProtocols, Rate: c.Rate, FilesRate: o.Access.FilesRate, FilesRateTotal: o.Access.FilesRateTotal, Bots: o.Access.Bots,
		},
	}
	fleet := from.Store.Fleet()
	for one, err := range fleet.Sites(ctx, store.FleetQuery{}) {
		if err != nil {
			return err
		}
		if one.Unlisted {
			continue
		}
		site.Fleet = func(ctx context.Context) (*sitelist.Summary, error) {
			stats := s.Fleet()
			if stats == nil {
				return nil, fmt.Errorf("%w: the mirrored sites are being counted; try again later", millrace.ErrUnavailable)
			}
			return sitelist.SummaryOf(ctx, fleet, "", stats)
		}
		break
	}
	inside := sync.OnceValues(func() (http.Handler, string) { return s.Gateway.OwnHandler() })
	site.Gateway = func() http.Handler { h, _ := inside(); return h }
	site.Key = func() string { _, key := inside(); return key }
	site.Public = &fetch.Options{AllowPrivate: true, UserAgent: c.UserAgent, Contact: c.Contact, IgnoreRobots: true, Delay: -1, Dial: p.dial}
	site.OwnRequests = func() (func(http.Header), func()) { return s.Gateway.OwnRequests() }
	if s.Recorder != nil {
		site.Usage, site.Dropped = s.Usage, s.Recorder.Dropped
	}
	if len(so.Exporters) > 0 {
		site.Lags = s.Lags
	}
	for _, rule := range c.Bot {
		name, gets, _ := strings.Cut(rule, "=")
		site.Access.BotRules = append(site.Access.BotRules, dashboard.BotRule{Name: strings.TrimSpace(name), Action: strings.TrimSpace(gets)})
	}
	protocols := all.Protocols()
	for _, proto := range s.Protocols {
		if i := slices.IndexFunc(protocols, func(r protocol.Protocol) bool { return r.Name == proto.Name }); i >= 0 {
			site.Protocols = append(site.Protocols, protocols[i])
		}
	}
	for _, proto := range protocols {
		if proto.Public && c.needsKey(proto.Name) {
			site.Off = append(site.Off, dashboard.Off{Protocol: proto, Why: "Content needs a key (require-key), but this protocol does not support keys: its files are public by design. To publish it anyway, add it to public-protocols."})
		}
	}
	if _, ok := from.Source.(ingest.Originals); ok {
		site.Original = from.original
		site.Rules = &extract.RulesOptions{Keep: c.Keep, Drop: c.Drop, Comments: c.Comments}
	}
	if s.sessions == nil {
		s.sessions = dashboard.NewSessions(from.Store.State(), s.endpointBase)
	}
	board, err := dashboard.New(site, &dashboard.Options{Path: c.Dashboard, Password: c.DashboardPassword, Sessions: s.sessions, CheckResults: s.checks, Logger: p.log, Now: s.Replicas.Now})
	if err != nil {
		return err
	}
	o.Dashboard, o.DashboardPath = board, c.Dashboard
	s.Task(board.Run)
	return nil
}

// warnIfHidden logs a warning if the path of the dashboard hides a page of the site.
func (s *service) warnIfHidden(ctx context.Context) {
	path, err := s.Gateway.HiddenPath(ctx)
	switch {
	case err != nil:
		s.p.log.Warn("could not check whether the dashboard path hides a page", "err", err)
	case path != "":
		s.p.log.Warn("dashboard path hides a page of the site", "dashboard", s.c.Dashboard, "path", path)
	}
}

// original returns the HTML from which a page was extracted. If the source no longer has the
// HTML, it returns ErrNotFound.
func (o *source) original(ctx context.Context, ref millrace.Ref) ([]byte, *extract.Options, error) {
	if o.Files != nil { // Files is never replaced, so this does not need the lock, which a long scan may hold
		return o.Files.Original(ctx, ref)
	}
	return o.Origin.Original(ctx, ref)
}

// lastScan returns the last scan of the source, and the error of a later scan that failed. Before the
// first scan, it returns only the pages that an earlier process skipped, or nil if there are none.
func (o *source) lastScan(ctx context.Context) (*dashboard.SourceScan, error) {
	last, failure := o.Last(), o.Failure()
	l := &dashboard.SourceScan{As: o.Kind}
	var err error
	if l.Skipped, l.SkippedN, err = o.Skipped(ctx); err != nil || last == nil && failure == nil && l.SkippedN == 0 {
		return nil, err
	}
	if last != nil {
		l.Time, l.As, l.Counts, l.Requested = last.Time, last.Kind, last.Report.Counts, last.Report.Requested
	}
	if failure != nil {
		l.Time, l.Err = failure.Time, failure.Err
	}
	return l, nil
}

// keysPasswordCommand creates a password for the dashboard.
type keysPasswordCommand struct {
	commonFlags
}

// passwordReport is the report of `millrace keys password --json`.
type passwordReport struct {
	Password string `json:"password"` // the password, shown only once
	Hash     string `json:"hash"`     // value for the key dashboard-password
}

// newPassword returns a random password and its hash.
func newPassword() (*passwordReport, error) {
	r := &passwordReport{Password: dashboard.NewPassword()}
	var err error
	r.Hash, err = dashboard.HashPassword(r.Password)
	return r, err
}

// Run prints a new password with its hash.
func (c *keysPasswordCommand) Run(p *process) error {
	r, err := newPassword()
	if err != nil {
		return err
	}
	return p.report(r, func(w *bytes.Buffer) {
		if !c.Quiet {
			fmt.Fprintln(p.stderr, "The password is shown only once. Put the line below it into millrace.yaml. A running server loads it on SIGHUP, and ends all dashboard sessions.")
		}
		fmt.Fprintf(w, "%s\ndashboard-password: '%s'\n", r.Password, r.Hash)
	})
}
