package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/report"
	stores "github.com/millrace/millrace/store/all"
)

type reportCommand struct {
	commonFlags
	savingsFlags
	fetchFlags
	botFlags
	Source string    `arg:"" optional:"" help:"Access log of a web server, plain or gzip, or - for standard input; or SOURCE of serve."`
	Logs   []string  `arg:"" optional:"" name:"log" help:"More access logs."`
	Site   string    `placeholder:"URL" help:"With access logs: count only requests for this site, and fetch some of its pages to compare their sizes with those of their documents."`
	Unit   string    `enum:",s,ms,us" default:"" placeholder:"UNIT" help:"Unit of the number at the end of each line of an access log: s, ms or us, such as us for Apache's %D (default: the number is ignored)." hidden:""`
	As     string    `enum:",${origins},mirror" default:"" placeholder:"KIND" help:"Value of --as for serve, if any."`
	Store  string    `placeholder:"FILE|URL" help:"Value of --store for serve, if any, or a mirror that pull has written."`
	Label  siteLabel `placeholder:"LABEL" help:"Only the mirrored sites with this label (see millrace sites add)."`
	Since  string    `placeholder:"DATE" help:"First day of the report, such as 2026-11-01 (default: 30 days ago for a published site, the first day of access logs). Pulls are always reported in total."`
	CSV    bool      `name:"csv" help:"Print CSV for spreadsheets, with a line for each day, bot and protocol."`
}

// Run prints the machine traffic in access logs, the savings of the pulls into a mirror, or the
// machine traffic of a site that is served from a store.
func (c *reportCommand) Run(ctx context.Context, p *process) error {
	if err := errors.Join(c.savingsFlags.validate(), c.fetchFlags.validate()); err != nil {
		return err
	}
	if c.CSV && c.JSON {
		return usageError("--csv and --json cannot be combined")
	}
	since, err := c.since(time.Now())
	if err != nil {
		return err
	}
	if c.readsLogs() {
		if c.Label != "" {
			return usageError("--label: only valid with --store")
		}
		return c.logs(ctx, p, since)
	}
	if c.Site != "" || c.Unit != "" {
		return usageError("--site and --unit are only valid with access logs; name one")
	}
	if c.Source == "" && c.Store == "" {
		return usageError("nothing selected; name access logs, the SOURCE that is served, or a mirror with --store FILE")
	}
	if c.Store, err = (&keyStore{Source: c.Source, As: c.As, Store: c.Store}).file(p); err != nil {
		return err
	}
	if err := p.exists(ctx, c.Store); errors.Is(err, millrace.ErrNotFound) && c.Source != "" {
		return fmt.Errorf("%w; run millrace serve %s first", err, stores.Name(c.Source))
	}
	st, err := p.openToRead(ctx, c.Store)
	if err != nil {
		return err
	}
	r, err := report.Of(ctx, st, &report.Options{Store: stores.Name(c.Store), Label: string(c.Label), Since: since, Coefficients: c.values(), Logger: p.log})
	if err = errors.Join(err, st.Close()); err != nil {
		return err
	}
	return c.print(p, r)
}

func (c *reportCommand) print(p *process, r *report.Report) error {
	if c.CSV {
		return r.CSV(p.stdout)
	}
	return p.report(r, r.Text)
}

// reportDays is the default number of days.
const reportDays = 30

// since returns the first day of the report.
func (c *reportCommand) since(now time.Time) (time.Time, error) {
	if c.Since == "" {
		return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-reportDays), nil
	}
	t, err := time.Parse(time.DateOnly, c.Since)
	if err != nil {
		return t, usageError(fmt.Sprintf("--since %s: must be a date, such as 2026-11-01", c.Since))
	}
	return t, nil
}
