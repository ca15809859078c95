package export

import (
	"context"
	"io"
	"log/slog"

	"github.com/millrace/millrace/internal/replace"
	"github.com/millrace/millrace/store"
)

// Request describes the data that [Run] exports, and the target.
type Request struct {
	Sites  []string  // names of the exported sites
	All    []string  // names of all sites of the store
	Format string    // jsonl, csv, markdown, atom or parquet
	Out    string    // file or folder. If empty, Stdout, for jsonl and csv.
	Stdout io.Writer // see Out
	// Since exports only the changes since a time or cursor, as JSON Lines. If nil, all pages are
	// exported.
	Since *Since
	// Progress, if not nil, is called after each page with the number of finished pages and the
	// number of all pages.
	Progress func(done, total int)
	Logger   *slog.Logger // logs a warning for each partial mirror; must not be nil
}

// Run exports sites of a store.
func Run(ctx context.Context, st store.Store, q *Request) (*Report, error) {
	all := q.All
	if q.Format != "markdown" && q.Format != "atom" {
		all = q.Sites // the bases of other sites matter only for folder names
	}
	sites, bases, err := open(ctx, st, q.Sites, all)
	if err != nil {
		return nil, err
	}
	r := newReport(sites)
	r.Format, r.Out = q.Format, q.Out
	pages := 0
	for i := range sites {
		if pages += r.Sites[i].Pages; sites[i].Partial {
			q.Logger.Warn("mirror is partial; pull again", "site", sites[i].Name, "code", "partial-mirror")
		}
	}
	o := new(Options)
	if q.Progress != nil {
		o.Progress = func(done int) { q.Progress(done, max(done, pages)) }
	}
	write := func(w io.Writer) error { r.Counts, err = Lines(ctx, w, sites, o); return err }
	tree := Tree{Dir: q.Out, Folders: Folders(bases), Part: len(q.Sites) < len(q.All)}
	switch {
	case q.Format == "markdown":
		r.Counts, err = Markdown(ctx, tree, sites, o)
		return r, err
	case q.Format == "atom":
		r.Counts, err = Atom(ctx, tree, sites, o)
		return r, err
	case q.Format == "parquet":
		r.Counts, err = Parquet(ctx, q.Out, sites, o)
		return r, err
	case q.Format == "csv":
		write = func(w io.Writer) error { r.Counts, err = CSV(ctx, w, sites, o); return err }
	case q.Since != nil:
		write = func(w io.Writer) error { r.Counts, err = q.Since.changes(ctx, w, sites, o); return err }
	}
	if q.Out == "" {
		return r, write(q.Stdout)
	}
	return r, replace.File(q.Out, write)
}
