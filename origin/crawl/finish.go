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

// visitRoot fetches the root first, because a site without a root cannot be crawled.
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
		return fmt.Errorf("%w; crawl a folder of the site that robots.txt allows", r.disallowed(root))
	}
	if err := r.start(t); err != nil {
		return err
	}
	var res *result
	select {
	case res = <-r.results:
		r.inFlight--
	case <-ctx.Done():
		return ctx.Err()
	}
	for r.shouldRetry(ctx, res.err) {
		res = r.outages.ask(t)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.rootError(res); err != nil {
		return err
	}
	if err := r.checkRoot(ctx, res); err != nil {
		return err
	}
	r.feeds = res.feeds
	return r.take(res)
}

// rootError returns the reason why the crawl cannot start at the root, with advice.
func (r *run) rootError(res *result) error {
	switch res.outcome {
	case unchanged, page:
		return nil
	case moved:
		to, v := r.scope.clean(res.to)
		switch {
		case v == outside || canon.Origin(res.to) != r.scope.origin:
			return millrace.Coded("site-moved", fmt.Errorf("%w: the site has moved to %s; crawl that URL instead", millrace.ErrInvalid, res.to))
		case v == inside && key(to) == key(res.url):
			return millrace.Coded("redirect-loop", fmt.Errorf("%w: %w; the site may require cookies, which a crawl does not store", millrace.ErrInvalid, errLoop))
		case v == inside && isLogin(to):
			return millrace.Coded("login", fmt.Errorf("%w: the home page requires a login at %s", millrace.ErrForbidden, to))
		}
		return nil
	case notPage:
		return fmt.Errorf("%w: the root is not an HTML page", millrace.Coded("no-html", millrace.ErrInvalid))
	case empty:
		return fmt.Errorf("read root: %w", res.err)
	}
	switch status, _ := errors.AsType[*fetch.StatusError](res.err); {
	case errors.Is(res.err, errLogin):
		return millrace.Coded("login", fmt.Errorf("login required: %w", res.err))
	case status == nil:
		return fmt.Errorf("fetch root: %w", res.err)
	case errors.Is(res.err, millrace.ErrNotFound):
		return millrace.Coded("no-root", fmt.Errorf("no page at the root: %w; name the folder of the site", res.err))
	case errors.Is(res.err, millrace.ErrForbidden):
		return fmt.Errorf("access denied: %w; ask the owner of the site", res.err)
	}
	return fmt.Errorf("fetch root: %w", res.err)
}

// finish reports the excluded addresses and yields the complete checkpoint. When it is called, the
// run has named all stored addresses that still exist.
func (r *run) finish() error {
	for _, kind := range slices.Sorted(maps.Keys(r.refused)) {
		f := r.refused[kind]
		why := f.why
		if f.count > 1 {
			why = fmt.Errorf("%w, and %d similar addresses", why, f.count-1)
		}
		if err := r.report(f.example.url, withLinker(why, f.example.from)); err != nil {
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
		err := fmt.Errorf("%w: no page found", millrace.Coded("no-page", millrace.ErrInvalid))
		if r.last != nil {
			err = millrace.Coded("no-page", fmt.Errorf("no page found; last error: %w", r.last))
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
		if l.dirty || r.cut { // some addresses in the list were not fetched
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

// report yields a SkipError, but does not record it as the last error of the run.
func (r *run) report(u string, why error) error {
	return r.give(millrace.Change{}, &millrace.SkipError{URL: u, Err: why})
}
