package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/fetch"
)

// visitRoot asks for the root before all else: without it there is no site.
func (r *run) visitRoot(ctx context.Context) error {
	root := r.scope.base
	k := key(root)
	e, _ := r.table.get(k)
	t, err := r.recallOne(ctx, task{url: root, state: e.state})
	if err != nil {
		return err
	}
	t.depth = 0
	if e.state == unknown {
		if err := r.add(t, k, e); err != nil {
			return err
		}
		t.state = pending
	}
	if !r.allowed(root) {
		return fmt.Errorf("%w; crawl a folder of the site that it allows", r.disallowed(root))
	}
	if err := r.start(t); err != nil {
		return err
	}
	var res *result
	select {
	case res = <-r.results:
		r.flying--
	case <-ctx.Done():
		return ctx.Err()
	}
	for r.rested(ctx, res.err) {
		res = r.outages.ask(t)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.rootError(res); err != nil {
		return err
	}
	if err := r.sane(ctx, res); err != nil {
		return err
	}
	r.feeds = res.feeds
	return r.take(res)
}

// rootError says why the root is no start of a crawl, and what to do.
func (r *run) rootError(res *result) error {
	switch res.outcome {
	case unchanged, page:
		return nil
	case moved:
		to, v := r.scope.clean(res.to)
		switch {
		case v == outside || canon.Origin(res.to) != r.scope.origin:
			return millrace.Coded("site-moved", fmt.Errorf("%w: the site is at %s: crawl that", millrace.ErrInvalid, res.to))
		case v == inside && key(to) == key(res.url):
			return millrace.Coded("redirect-loop", fmt.Errorf("%w: %w; it may want cookies, which a crawl does not keep", millrace.ErrInvalid, errLoop))
		case v == inside && isLogin(to):
			return millrace.Coded("login", fmt.Errorf("%w: the site wants a login for its home page, at %s", millrace.ErrForbidden, to))
		}
		return nil
	case nothing:
		return fmt.Errorf("%w: the root is no HTML page", millrace.Coded("no-html", millrace.ErrInvalid))
	case empty:
		return fmt.Errorf("the root cannot be read: %w", res.err)
	}
	switch status, _ := errors.AsType[*fetch.StatusError](res.err); {
	case errors.Is(res.err, errLogin):
		return millrace.Coded("login", fmt.Errorf("the site wants a login: %w", res.err))
	case status == nil:
		return fmt.Errorf("the site cannot be had: %w", res.err)
	case errors.Is(res.err, millrace.ErrNotFound):
		return millrace.Coded("no-root", fmt.Errorf("there is no page at the root, name the folder that the site lives in: %w", res.err))
	case errors.Is(res.err, millrace.ErrForbidden):
		return fmt.Errorf("the site does not let this program in, ask its owner: %w", res.err)
	}
	return fmt.Errorf("the root cannot be had: %w", res.err)
}

// finish reports what was left out, and ends the run: everything that the sink
// holds was named, if it is there.
func (r *run) finish() error {
	for _, kind := range slices.Sorted(maps.Keys(r.refused)) {
		f := r.refused[kind]
		why := f.why
		if f.count > 1 {
			why = fmt.Errorf("%w, as %d more like it", why, f.count-1)
		}
		if err := r.report(f.example.url, linked(why, f.example.from)); err != nil {
			return err
		}
	}
	switch {
	case r.met.Pages > 0:
		r.log.Warn("site has more URLs than --max-pages; raise it to find the others", "site", r.scope.base, "pages", r.known, "requests", r.asked)
	case r.cut:
		r.log.Info("crawl stopped at a limit; the next run continues", "site", r.scope.base, "requests", r.asked)
	}
	if r.pages == 0 {
		err := fmt.Errorf("%w: no page was found", millrace.Coded("no-page", millrace.ErrInvalid))
		if r.last != nil {
			err = millrace.Coded("no-page", fmt.Errorf("no page was found, the last problem: %w", r.last))
		}
		return err
	}
	next := cursor{Format: format, Newest: r.newest, Soft: r.since.Soft}
	if home := r.Crawl.home.Load(); home != nil {
		next.Home = *home
	}
	next.Gone = r.stillMissing()
	if r.cut {
		next.At = cmp.Or(r.rest.at, r.since.At)
	}
	r.limits(&next)
	for _, l := range r.lists {
		if l.dirty {
			l.Validators = fetch.Validators{}
		}
		next.Lists = append(next.Lists, l)
	}
	if r.o.Progress != nil {
		r.o.Progress(r.done, max(r.done, r.known))
	}
	r.complete.Store(!r.cut && !r.missed && next.Limits.Pages == 0 && next.Limits.Depth == 0)
	return r.emit(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: next.encode(), Complete: true}})
}

// report is a skip that is no problem of a page.
func (r *run) report(u string, why error) error {
	return r.give(millrace.Change{}, &millrace.SkipError{URL: u, Err: why})
}
