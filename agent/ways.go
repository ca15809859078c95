package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/discover"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/state"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/store"
)

// The ways of a site are cached for waysAge, or for laterAge if one of them was unavailable. After
// that, if no way has failed, a pull only checks that the ways still exist. The figures of the ways
// expire after figuresAge.
const (
	waysAge    = 7 * 24 * time.Hour
	laterAge   = time.Hour
	figuresAge = 60 * 24 * time.Hour
)

// waysRecord is the stored state of the ways into a site.
type waysRecord struct {
	Site *discover.SiteReport `json:"site"` // nil = nothing is stored
	// Purpose and IgnorePolicy are the options of the pull that found the ways. A pull with
	// other options probes again.
	Purpose      millrace.Purpose `json:"purpose"`
	IgnorePolicy bool             `json:"ignore_policy,omitempty"`
	// Failed are the ways that have failed. A pull probes again unless all of them are postponed.
	Failed map[string]wayFailure `json:"failed,omitempty"`
}

// wayFailure is the failure of a way.
type wayFailure struct {
	Why   string    `json:"why"`
	Time  time.Time `json:"time"`
	Times int       `json:"times"` // failures in a row
}

// postponed reports whether a failed way is not tried for now. After two failures in a row, it is tried
// again after an hour. This time doubles with each further failure, to at most a day.
func (f wayFailure) postponed(now time.Time) bool {
	if f.Times < 2 || now.Before(f.Time) {
		return false
	}
	return now.Sub(f.Time) < min(time.Hour<<min(f.Times-2, 8), 24*time.Hour)
}

// waysOf returns the stored record of the ways into a site.
func waysOf(st store.State, root string) state.JSON[waysRecord] {
	return state.JSON[waysRecord]{State: st, Namespace: root, Key: "ways"}
}

// ways are the ways into the site of one pull.
type ways struct {
	*sitePull
	found  waysRecord
	fresh  bool                  // whether the ways were found in this pull
	was    *discover.SiteReport  // expired ways without a failure, which must be checked, or nil
	before map[string]wayFailure // failures before the pull began
}

// recall loads the stored ways, if they are still valid.
func (w *ways) recall(ctx context.Context) error {
	r, err := waysOf(w.store.State(), w.root).Load(ctx)
	if err != nil || r.Site == nil || r.Site.URL == "" {
		return err
	}
	now := w.policy.now()
	w.before = r.Failed
	age, most := now.Sub(r.Site.Time), waysAge
	if slices.ContainsFunc(r.Site.Ways, func(w discover.Way) bool { return w.Unavailable }) {
		most = laterAge
	}
	if age < 0 || r.Purpose != w.r.Purpose || r.IgnorePolicy != w.o.IgnorePolicy {
		return nil
	}
	for _, f := range r.Failed {
		if !f.postponed(now) {
			return nil
		}
	}
	if age >= most {
		if old := now.Sub(r.Site.Measured); len(r.Failed) == 0 && old >= 0 && old < figuresAge {
			w.was = r.Site
		}
		return nil
	}
	w.found = r
	return nil
}

// probe finds the ways of the site. If quick, it stops when the best way is certain.
func (w *ways) probe(ctx context.Context, quick bool) error {
	options := w.policy.options
	site, err := discover.Probe(ctx, w.withKeys(w.client), w.root, &discover.Options{
		Previous: w.was, Protocols: all.Protocols(), Reader: &options, Purpose: w.r.Purpose, IgnorePolicy: w.o.IgnorePolicy, Logger: w.o.Logger,
		MaxBytes: w.o.MaxBytes / 4, // leave most of the quota for the pages
		Quick:    quick, PolicyKnown: true,
	})
	if err = cmp.Or(w.policy.ended(), err); err != nil {
		return err
	}
	w.o.Logger.Debug("probed the site", "site", w.root, "requests", site.Spent.Requests, "bytes", site.Spent.Bytes, "quick", site.Quick)
	w.found, w.fresh = waysRecord{Site: site, Purpose: w.r.Purpose, IgnorePolicy: w.o.IgnorePolicy, Failed: map[string]wayFailure{}}, true
	for name, f := range w.before {
		if f.postponed(w.policy.now()) {
			w.found.Failed[name] = f
		}
	}
	return w.save(ctx)
}

// find finds the ways of the site. It probes quickly if nothing has failed before, and probes
// again if a way of an earlier pull was not found.
func (w *ways) find(ctx context.Context, previous []string) error {
	if err := w.probe(ctx, len(w.before) == 0); err != nil || !w.found.Site.Quick {
		return err
	}
	for _, name := range previous {
		if w.found.Site.Way(name) == nil {
			return w.probe(ctx, false)
		}
	}
	return nil
}

// save stores the ways and their failures.
func (w *ways) save(ctx context.Context) error {
	return waysOf(w.store.State(), w.root).Save(ctx, w.found)
}

// fail records that a way has failed.
func (w *ways) fail(name string, err error) {
	if w.found.Failed == nil {
		w.found.Failed = map[string]wayFailure{}
	}
	w.found.Failed[name] = wayFailure{err.Error(), w.policy.now().UTC(), w.before[name].Times + 1}
}

// plan chooses among the ways that have not failed.
func (w *ways) plan(ctx context.Context, previous []string) *discover.Plan {
	site := *w.found.Site
	site.Ways = slices.Clone(site.Ways)
	for i := range site.Ways {
		if f, failed := w.found.Failed[site.Ways[i].Protocol]; failed {
			site.Ways[i].Allowed, site.Ways[i].Reason = false, f.Why
		}
	}
	hasDictionary := func(url string) bool { return fetch.HasDictionary(ctx, w.withKeys(w.client), url) }
	return site.Plan(&discover.Model{Previous: previous, HasDictionary: hasDictionary})
}

// deciding returns the ways that are the primary sources of the site.
func (s *sitePull) deciding(ctx context.Context) (names []string, err error) {
	every := all.Protocols()
	for _, proto := range append(every[:len(every):len(every)], protocol.Protocol{Name: Crawl}) {
		is, err := ingest.IsPrimary(ctx, s.site, s.root+" "+proto.Name)
		if err != nil {
			return nil, err
		}
		if is {
			names = append(names, proto.Name)
		}
	}
	return names, nil
}

// awaited returns an error if a way of the previous pull is temporarily unavailable. The next pull
// then tries it again, because another way must read the whole site. After two such pulls, awaited
// returns nil, and another way may be used.
func (w *ways) awaited(previous []string) error {
	for _, name := range previous {
		way := w.found.Site.Way(name)
		if proto, _ := named(name); way == nil || !way.Unavailable || proto.Fallback {
			continue
		}
		if _, failed := w.found.Failed[name]; failed {
			continue
		}
		err := fmt.Errorf("%w: %s, the previous protocol of the site, is unavailable: %s; pull again", millrace.ErrUnavailable, name, way.Reason)
		w.fail(name, err)
		if w.before[name].Times < 2 {
			w.r.Ways = append(w.r.Ways, failedWay(name, "all", err))
			return err
		}
	}
	return nil
}

// reportBroken reports the ways that the site offers but that cannot be read.
func (w *ways) reportBroken() {
	for _, is := range w.found.Site.Ways {
		if is.Offer == nil && is.Allowed && !is.Unavailable && is.Reason != "" {
			w.r.Ways = append(w.r.Ways, Way{Protocol: is.Protocol, Part: "all", Error: is.Reason})
		}
	}
}

func failedWay(name, part string, err error) Way {
	return Way{Protocol: name, Part: part, Error: err.Error(), Code: millrace.ErrorCode(err)}
}

// choose mirrors a site by the cheapest way that does not fail.
func (s *sitePull) choose(ctx context.Context) error {
	w := &ways{sitePull: s}
	if err := w.recall(ctx); err != nil {
		return err
	}
	var first error // error of the best way
	for {
		previous, err := s.deciding(ctx)
		if err != nil {
			return err
		}
		if w.found.Site == nil {
			if err := w.find(ctx, previous); err != nil {
				return s.crawlUnprobed(ctx, cmp.Or(first, err))
			}
			w.reportBroken()
		}
		if err := w.awaited(previous); err != nil {
			return errors.Join(err, w.save(ctx))
		}
		plan := w.plan(ctx, previous)
		route, refresh := plan.First, false
		if len(previous) > 0 {
			route, refresh = plan.Refresh, slices.Contains(previous, plan.Refresh.Primary)
		}
		if route.Primary == "" && first != nil {
			return first
		}
		err = s.take(ctx, w, &route, refresh)
		if no := s.policy.ended(); no != nil || err == nil || ctx.Err() != nil {
			return cmp.Or(no, err)
		}
		if route.Primary == Crawl || route.Primary == "" {
			return err
		}
		if !errors.Is(err, millrace.ErrNotFound) && !refused(err) && !s.fallsBack(route.Primary, err) {
			// The error may be temporary, so no other way is tried in this pull. The site responds,
			// so the failure is recorded: the next pull probes again, and the one after it may use
			// another way.
			if _, answers := errors.AsType[*fetch.StatusError](err); answers && s.budget.ended(err) == nil {
				w.fail(route.Primary, err)
				err = errors.Join(err, w.save(ctx))
			}
			return err
		}
		first = cmp.Or(first, err)
		w.o.Logger.Warn("could not read site; trying the next protocol", "site", s.root, "protocol", route.Primary, "err", errorText(err, s.root, route.Primary))
		if !w.fresh || w.was != nil || w.found.Site.Quick { // the result may be outdated or incomplete
			w.was = nil
			if err := w.probe(ctx, false); err != nil {
				return s.crawlUnprobed(ctx, cmp.Or(first, err))
			}
		}
		w.fail(route.Primary, err)
		if err := w.save(ctx); err != nil {
			return err
		}
	}
}

// crawlUnprobed crawls the folder of the URL if the site could not be probed: a folder may be
// readable even if the root is not.
func (s *sitePull) crawlUnprobed(ctx context.Context, err error) error {
	if no := s.policy.ended(); no != nil || ctx.Err() != nil || s.folder == s.root {
		return cmp.Or(no, err)
	}
	return s.crawl(ctx, 0)
}

// fallsBack reports whether another way must be tried after an error of a protocol, because its
// Fallback is set. Reaching a limit of the options does not count as an error.
func (s *sitePull) fallsBack(name string, err error) bool {
	_, over := errors.AsType[*overBudgetError](err)
	proto, _ := named(name)
	return proto.Fallback && !over && s.budget.ended(err) == nil
}

// refused reports whether err means that the content of a protocol is invalid or too large. Then
// another way may succeed.
func refused(err error) bool {
	return errors.Is(err, millrace.ErrInvalid) || errors.Is(err, millrace.ErrTooLarge)
}

// take mirrors a site by one route. refresh reports whether the primary source of the route was
// read before.
func (s *sitePull) take(ctx context.Context, w *ways, route *discover.Route, refresh bool) error {
	var offer *protocol.Offer
	if way := w.found.Site.Way(route.Primary); way != nil {
		offer = way.Offer
	}
	s.r.Why = route.Why
	expected := 0
	if offer != nil && !refresh {
		expected = max(0, offer.Pages)
	}
	if route.Primary == Crawl || route.Primary == "" {
		return s.crawl(ctx, expected)
	}
	if !refresh {
		if err := s.budget.refuse(route.Primary, offer); err != nil {
			s.r.Ways = append(s.r.Ways, failedWay(route.Primary, "all", err))
			return &overBudgetError{err}
		}
	}
	proto, ok := named(route.Primary)
	if !ok {
		return fmt.Errorf("%w: unknown protocol %q", millrace.ErrInvalid, route.Primary)
	}
	return s.by(ctx, w, proto, route, expected)
}

// overBudgetError reports a way that exceeds the limits of the user. No other way is tried after
// it, because another way may cost more.
type overBudgetError struct{ err error }

// Error returns the text of the wrapped error.
func (e *overBudgetError) Error() string { return e.err.Error() }

// ErrorCode returns the code of the wrapped error.
func (e *overBudgetError) ErrorCode() string { return millrace.ErrorCode(e.err) }
