package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/sitelist"
	"github.com/millrace/millrace/store"
)

// sitesCommand contains the commands for the sites that watch --all pulls.
type sitesCommand struct {
	Add    sitesAddCommand    `cmd:"" help:"Add sites, or change their settings."`
	Remove sitesRemoveCommand `cmd:"" help:"Remove sites. Their pages remain in the store, unless you use --delete-pages."`
	List   sitesListCommand   `cmd:"" help:"List sites and their state, and how long due sites have waited."`
	Pause  sitesPauseCommand  `cmd:"" help:"Stop pulling sites until they are resumed."`
	Resume sitesResumeCommand `cmd:"" help:"Resume pulling paused sites, and pull the selected sites at once, paused or not."`
}

// siteLabel is a label of sites as users write it. An empty one is refused, because an empty shell
// variable must not select all sites.
type siteLabel string

// UnmarshalText sets the label.
func (l *siteLabel) UnmarshalText(text []byte) error {
	if *l = siteLabel(text); len(text) == 0 {
		return errors.New("the label is empty; name a label, or leave out the flag")
	}
	return nil
}

// siteLabels are labels of sites as users write them, separated by commas.
type siteLabels []string

// UnmarshalText adds labels.
func (l *siteLabels) UnmarshalText(text []byte) error {
	for name := range strings.SplitSeq(string(text), ",") {
		if name == "" {
			return errors.New("the label is empty; name a label, or leave out the flag")
		}
		*l = append(*l, name)
	}
	return nil
}

// sitesStore holds the flag that selects the store.
type sitesStore struct {
	commonFlags
	Store string `required:"" placeholder:"FILE|URL" help:"Store with the sites: a file, or postgres://USER@HOST/DATABASE for workers on several machines."`
}

// sitesChosen holds the arguments that select sites.
type sitesChosen struct {
	sitesStore
	fetchFlags
	Sites []string  `arg:"" optional:"" name:"source" help:"Sites, with the same syntax as for millrace sites add. If one of them is not in the list of sites, nothing changes."`
	Label siteLabel `placeholder:"LABEL" help:"Only sites with this label. Without SOURCE, all of them."`
}

type sitesAddCommand struct {
	sitesStore
	fetchFlags
	Sites       []string          `arg:"" name:"source" help:"URL of a site; or a list: a file, the URL of a file whose name ends with .txt, .opml, .xml or .gz, or - for standard input. A list is text with a URL in each line, OPML, a sitemap, or a sitemap index."`
	Label       siteLabels        `placeholder:"LABEL,..." help:"Labels to add. A label with a leading - is removed."`
	Priority    string            `enum:",low,normal,high" default:"" help:"Priority of the sites when more sites are due than the workers can pull: low, normal or high (default: normal)."`
	MinInterval sitelist.Interval `placeholder:"DURATION" help:"Minimum time between two pulls of each site (default: that of watch). To remove it, use --min-interval=-."`
	MaxInterval sitelist.Interval `placeholder:"DURATION" help:"Maximum time between two pulls of each site (default: that of watch). It also lowers a longer minimum of watch. To remove it, use --max-interval=-."`
	Webhook     string            `placeholder:"URL" help:"Post the changes of the sites to this URL instead of to the receiver of watch. watch signs them with the secret in --webhook-secret-file. To remove it, use --webhook=-."`
	SkipInvalid bool              `help:"Add the valid sites of a list even if other entries are invalid. Without the flag, nothing is added in that case."`
}

// Run adds all sites or none.
func (c *sitesAddCommand) Run(ctx context.Context, p *process) error {
	settings := store.FleetSite{
		Labels: c.Label, Priority: max(0, slices.Index([]string{"", "low", "normal", "high"}, c.Priority)), Min: time.Duration(c.MinInterval), Max: time.Duration(c.MaxInterval), Webhook: c.Webhook,
	}
	err := c.change(ctx, p, true, &c.fetchFlags, c.Sites, func(st store.Store, l *sitelist.List) (err error) {
		if l.Invalid == 0 || c.SkipInvalid {
			l.Added, l.Changed, err = st.Fleet().Put(ctx, l.With(settings))
		}
		return err
	})
	if c.SkipInvalid && errors.Is(err, errReported) {
		return nil
	}
	return err
}

// change opens the store, reads the lists of sites, calls f, and prints the report.
func (c *sitesStore) change(ctx context.Context, p *process, create bool, r *fetchFlags, sources []string, f func(st store.Store, l *sitelist.List) error) (err error) {
	open := p.openToRead
	if create {
		open = p.openStore
	}
	l, err := sitelist.Read(ctx, r.client(p, nil).HTTP(), p.stdin, sources)
	if err != nil {
		return err
	}
	defer l.Close()
	st, err := open(ctx, c.Store)
	if err != nil {
		return err
	}
	if err := errors.Join(f(st, l), st.Close()); err != nil {
		return err
	}
	if err := p.report(l.Report, func(w *bytes.Buffer) { l.WriteText(w) }); err != nil {
		return err
	}
	if l.Invalid > 0 {
		return errReported
	}
	return nil
}

// each calls f for the selected sites, in batches. pages also selects sites that only have pages in
// the store.
func (c *sitesChosen) each(ctx context.Context, p *process, pages bool, f func(f store.Fleet, ctx context.Context, q store.FleetQuery) (int, error)) error {
	if len(c.Sites) == 0 && c.Label == "" {
		return usageError("no site selected; name sites, or select them by --label")
	}
	return c.change(ctx, p, false, &c.fetchFlags, c.Sites, func(st store.Store, l *sitelist.List) error {
		choice := sitelist.Choice{Label: string(c.Label), Pages: pages}
		return l.Each(ctx, st, choice, func(q store.FleetQuery) (int, error) { return f(st.Fleet(), ctx, q) })
	})
}

type (
	sitesRemoveCommand struct {
		sitesChosen
		DeletePages bool `help:"Also delete the pages of the sites, and of sites that were removed before. Workers delete them soon; until then, sites list shows the sites as removing."`
	}
	sitesPauseCommand  struct{ sitesChosen }
	sitesResumeCommand struct{ sitesChosen }
)

// Run removes sites.
func (c *sitesRemoveCommand) Run(ctx context.Context, p *process) error {
	return c.each(ctx, p, c.DeletePages, func(f store.Fleet, ctx context.Context, q store.FleetQuery) (int, error) {
		return f.Remove(ctx, q, c.DeletePages)
	})
}

// Run pauses sites.
func (c *sitesPauseCommand) Run(ctx context.Context, p *process) error {
	return c.each(ctx, p, false, func(f store.Fleet, ctx context.Context, q store.FleetQuery) (int, error) {
		return f.Pause(ctx, q, true)
	})
}

// Run resumes sites.
func (c *sitesResumeCommand) Run(ctx context.Context, p *process) error {
	return c.each(ctx, p, false, func(f store.Fleet, ctx context.Context, q store.FleetQuery) (int, error) {
		return f.Pause(ctx, q, false)
	})
}

type sitesListCommand struct {
	sitesStore
	Label siteLabel `placeholder:"LABEL" help:"List only sites with this label."`
}

// Run lists the sites.
func (c *sitesListCommand) Run(ctx context.Context, p *process) error {
	st, err := p.openToRead(ctx, c.Store)
	if err != nil {
		return err
	}
	err = ingest.CheckLabel(ctx, st.Fleet(), string(c.Label))
	var stats store.FleetStats
	if err == nil {
		stats, err = st.Fleet().Stats(ctx, string(c.Label))
	}
	var now time.Time
	if err == nil {
		now, err = st.Now(ctx)
	}
	if err == nil {
		p.reported = true
		err = sitelist.Write(p.stdout, stats, st.Fleet().Sites(ctx, store.FleetQuery{Label: string(c.Label)}), now, c.JSON)
	}
	return errors.Join(err, st.Close())
}
