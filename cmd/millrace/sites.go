package main

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/sitelist"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

// sitesCommand contains the commands for the sites that watch --all pulls.
type sitesCommand struct {
	Add    sitesAddCommand    `cmd:"" help:"Add sites, or change their settings."`
	Remove sitesRemoveCommand `cmd:"" help:"Remove sites. Their pages remain in the store, unless you use --delete-pages."`
	List   sitesListCommand   `cmd:"" help:"List sites and their state, and how long due sites have waited."`
	Pause  sitesPauseCommand  `cmd:"" help:"Stop pulling sites until they are resumed."`
	Resume sitesResumeCommand `cmd:"" help:"Resume pulling paused sites, and pull the selected sites at once, paused or not."`
}

// siteLabel is a label of sites as users write it. An empty label is rejected, because an empty
// shell variable must not select all sites.
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
	return change(ctx, p, "added", c.SkipInvalid, &c.fetchFlags, c.Sites, func(l *sitelist.List) error {
		if l.Sites == 0 || l.Invalid > 0 && !c.SkipInvalid {
			return nil
		}
		put := func(dsn string, sites iter.Seq2[store.FleetSite, error]) error {
			st, err := p.openStore(ctx, dsn)
			if err != nil {
				return err
			}
			l.Added, l.Changed, err = st.Fleet().Put(ctx, sites)
			return errors.Join(err, st.Close())
		}
		// Check the settings first, with one site, because invalid settings must not create the store.
		err := put(stores.Memory, func(yield func(store.FleetSite, error) bool) {
			l.With(settings)(func(s store.FleetSite, err error) bool { return yield(s, err) && false })
		})
		if err == nil {
			err = put(c.Store, l.With(settings))
		}
		return err
	})
}

// change reads the lists of sites, calls f, and prints the report. did says what f does. Invalid
// entries are an error, unless they are skipped.
func change(ctx context.Context, p *process, did string, skip bool, r *fetchFlags, sources []string, f func(l *sitelist.List) error) error {
	l, err := sitelist.Read(ctx, r.client(p, nil).HTTP(), p.stdin, sources)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := f(l); err != nil {
		return err
	}
	refused := l.Invalid > 0 && !skip
	if err := p.report(l.Report, func(w *bytes.Buffer) { l.WriteText(w, did, refused) }); err != nil {
		return err
	}
	if refused {
		return errReported
	}
	return nil
}

// each calls f for the selected sites, in batches. did says what f does. pages also selects sites
// that only have pages in the store.
func (c *sitesChosen) each(ctx context.Context, p *process, did string, pages bool, f func(f store.Fleet, ctx context.Context, q store.FleetQuery) (int, error)) error {
	if len(c.Sites) == 0 && c.Label == "" {
		return usageError("no site selected; name sites, or select them by --label")
	}
	return change(ctx, p, did, false, &c.fetchFlags, c.Sites, func(l *sitelist.List) error {
		st, err := p.openToRead(ctx, c.Store)
		if err != nil {
			return err
		}
		choice := sitelist.Choice{Label: string(c.Label), Pages: pages}
		err = l.Each(ctx, st, choice, func(q store.FleetQuery) (int, error) { return f(st.Fleet(), ctx, q) })
		return errors.Join(err, st.Close())
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
	return c.each(ctx, p, "removed", c.DeletePages, func(f store.Fleet, ctx context.Context, q store.FleetQuery) (int, error) {
		return f.Remove(ctx, q, c.DeletePages)
	})
}

// Run pauses sites.
func (c *sitesPauseCommand) Run(ctx context.Context, p *process) error {
	return c.each(ctx, p, "paused", false, func(f store.Fleet, ctx context.Context, q store.FleetQuery) (int, error) {
		return f.Pause(ctx, q, true)
	})
}

// Run resumes sites.
func (c *sitesResumeCommand) Run(ctx context.Context, p *process) error {
	return c.each(ctx, p, "resumed", false, func(f store.Fleet, ctx context.Context, q store.FleetQuery) (int, error) {
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
