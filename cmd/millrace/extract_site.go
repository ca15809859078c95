package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
)

// siteReport is what `millrace extract --site SOURCE --json` prints.
type siteReport struct {
	Site     string            `json:"site"`
	Used     bool              `json:"used"` // it changes pages
	Template *extract.Template `json:"template"`
}

// learned gives what was learned of the site that --site names: by the last
// serve or pull of it, or for a folder also now.
func (c *extractCommand) learned(ctx context.Context, p *process) (*siteReport, error) {
	like := &serveCommand{Source: c.Site, Store: c.Store}
	kind, err := like.kind()
	if err != nil {
		return nil, err
	}
	if kind == "markdown" {
		return nil, usageError(fmt.Sprintf("--site %s: Markdown has no template, so nothing is learned of it", c.Site))
	}
	o := origin{kind: kind}
	if err := o.open(ctx, like, p); err != nil {
		return nil, err
	}
	if o.close != nil {
		defer func() { _ = o.close() }()
	}
	r := &siteReport{Site: o.title}
	l, err := o.lesson(ctx, p)
	if err != nil {
		return nil, err
	}
	switch {
	case l != nil:
		r.Template = l.Template
	case o.folder != nil:
		fixed, err := c.rules(nil)
		if err != nil {
			return nil, err
		}
		s := &school{log: p.log, pupil: o.folder, fixed: fixed}
		refs, err := o.folder.Sample(ctx, maxSample)
		if err == nil {
			r.Template, err = s.study(ctx, refs)
		}
		if err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("--site %s: %w: nothing was learned of it yet; serve or pull it first", c.Site, millrace.ErrNotFound)
	}
	rules, err := extract.NewRules(&extract.RulesOptions{Template: r.Template})
	if err != nil {
		return nil, err
	}
	r.Used = rules.Fingerprint() != ""
	return r, nil
}

// lesson gives what the store of an origin remembers; nil = nothing.
func (o *origin) lesson(ctx context.Context, p *process) (l *lesson, err error) {
	if o.store == nil {
		if _, err := os.Stat(o.path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil //nolint:nilnil // no store, no lesson
		}
		if o.store, err = p.openStore(ctx, o.path); err != nil {
			return nil, err
		}
	}
	defer func() { err = errors.Join(err, o.store.Close()) }()
	from := o.from
	if from == "" {
		from = o.name + " " + webCrawl
	}
	return lessonOf(o.store.State(), o.name, from).Load(ctx)
}

// text prints for a person what was learned.
func (r *siteReport) text(w io.Writer) error {
	t := r.Template
	b := fmt.Appendf(nil, "%-9s %s\n", "site", r.Site)
	if t == nil {
		b = fmt.Appendf(b, "%-9s nothing: a template shows on 10 different pages or more\n", "learned")
		_, err := w.Write(b)
		return err
	}
	b = fmt.Appendf(b, "%-9s from %d pages\n", "learned", t.Pages)
	switch {
	case t.Root == "":
		b = fmt.Appendf(b, "%-9s none in common\n", "root")
	case t.Differs == 0:
		b = fmt.Appendf(b, "%-9s %s on %d pages, which each page alone leads to as well\n", "root", t.Root, t.RootPages)
	default:
		b = fmt.Appendf(b, "%-9s %s on %d pages; %d of them alone lead elsewhere\n", "root", t.Root, t.RootPages, t.Differs)
	}
	for _, part := range t.Repeated {
		b = fmt.Appendf(b, "%-9s %s: on %d pages, %d words: %s\n", "left out", part.Selector, part.Pages, part.Words, part.Text)
	}
	if r.Used {
		b = append(b, "\nWhat is content after all comes back with --keep SELECTOR; --no-learn uses nothing of this.\n"...)
	} else {
		b = append(b, "\nEach page alone tells as much: nothing of this changes a page.\n"...)
	}
	_, err := w.Write(b)
	return err
}
