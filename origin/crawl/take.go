package crawl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// take handles the result of a visit.
func (r *run) take(res *result) error {
	if r.postponed(res) {
		return nil
	}
	r.done++
	r.progress()
	r.count(res)
	var err error
	if res.state == gone && res.outcome != page {
		if err := r.keepLost(res); err != nil {
			return err
		}
		return r.takeWaiting(key(res.url))
	}
	switch res.outcome {
	case unchanged:
		err = r.takeUnchanged(res)
	case page:
		if res.err != nil {
			r.countRefusal(res.task, "scripts", "", res.err)
		}
		return r.resolve(res)
	case moved:
		err = r.takeRedirect(res)
	case notPage, empty:
		err = r.takeNotPage(res)
	case absent:
		err = r.takeAbsent(res, res.err)
	case failed:
		err = r.takeFailed(res)
	}
	if err != nil {
		return err
	}
	return r.takeWaiting(key(res.url))
}

// count detects that the site has stopped responding. In this case, the run ends when no fetch is
// in progress, unless one of the remaining fetches succeeds.
func (r *run) count(res *result) {
	_, refused := errors.AsType[*fetch.AddressError](res.err)
	if res.outcome != failed || !refused && !errors.Is(res.err, millrace.ErrUnavailable) {
		r.consecutive, r.giveUp = 0, nil
		return
	}
	if r.consecutive++; r.consecutive == maxFailures {
		r.giveUp = millrace.Coded("too-many-failures", fmt.Errorf("gave up after %d unavailable pages in a row; last error: %w; run the crawl again to continue", r.consecutive, res.err))
	}
}

// takeWaiting handles the results that wait for an address.
func (r *run) takeWaiting(k uint64) error {
	f := r.flights[k]
	if f == nil {
		return nil
	}
	delete(r.flights, k)
	for _, w := range f.waiters {
		r.waiting--
		r.flights[key(w.url)].on = 0
		if err := r.resolve(w); err != nil {
			return err
		}
	}
	return nil
}

// takeUnchanged handles an unchanged page.
func (r *run) takeUnchanged(res *result) error {
	k := key(res.url)
	e, _ := r.table.get(k)
	r.countHint(&res.task, true)
	age := time.Duration(0)
	if m := res.version.modified; m > 0 {
		age = r.now().Sub(time.Unix(m, 0))
	}
	e.checked(r.now(), false, age)
	r.done-- // keepState counts the address
	return r.keepState(res.task, k, e)
}

// takeRedirect handles a redirect.
func (r *run) takeRedirect(res *result) error {
	to, v := r.scope.clean(res.to)
	k := key(res.url)
	switch {
	case v == inside && key(to) == k:
		return r.takeAbsent(res, fmt.Errorf("%w: %w", millrace.ErrNotFound, errLoop))
	case v == inside && isLogin(to) && !isLogin(res.url):
		to, _, _ = strings.Cut(to, "?") // the query contains the page to return to
		if err := r.found(task{url: to, from: res.url, depth: res.depth + 1}); err != nil {
			return err
		}
		return r.takeAbsent(res, errLogin)
	case v != inside:
		if res.state == hasPage {
			return r.takeAbsent(res, millrace.Coded("redirect-outside", fmt.Errorf("%w: now redirects to %s, which is not a page of this site", millrace.ErrNotFound, res.to)))
		}
		if v == outside {
			r.countRefusal(res.task, "away", "", millrace.Coded("redirect-outside", fmt.Errorf("redirects to %s, which is not a page of this site", res.to)))
		}
		return r.takeAlias(res, res.url, k, false)
	}
	known := r.known
	if err := r.found(task{url: to, from: res.url, depth: res.depth + 1, listed: res.listed}); err != nil {
		return err
	}
	if res.state == hasPage {
		// Treat the page as absent, not as an alias. If all pages of a site suddenly redirect to
		// the same page, package mirror must confirm the loss first.
		return r.takeAbsent(res, millrace.Coded("moved", fmt.Errorf("%w: now redirects to %s", millrace.ErrNotFound, to)))
	}
	leads := false
	if r.known > known {
		mine, _ := r.traps.shapes(res.url)
		other, _ := r.traps.shapes(to)
		leads = unrelated(mine, other)
	}
	return r.takeAlias(res, to, key(to), leads)
}

// takeAlias handles an alias of the address to. leads reports whether the page had new links.
func (r *run) takeAlias(res *result, to string, target uint64, leads bool) error {
	k := key(res.url)
	e, _ := r.table.get(k)
	nothingNew := !leads
	if res.state == aliased && !res.version.stale {
		nothingNew = res.version.nothingNew
	} else {
		r.traps.note(res.url, leads)
	}
	e.state, e.about = aliased, target
	e.checked(r.now(), false, 0)
	r.table.set(k, e)
	v := version{kind: isAlias, by: r.rules.by, day: today(r.now()), target: target, nothingNew: nothingNew}
	return r.emit(millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: res.url, Version: v.String()}, Page: aliasVersion(to, &v)})
}

// takeNotPage handles an address that is neither a page nor a redirect.
func (r *run) takeNotPage(res *result) error {
	why := res.err
	if res.outcome == notPage {
		if why == nil {
			why = fmt.Errorf("%w: not HTML", millrace.Coded("no-html", millrace.ErrInvalid))
		} else {
			r.countRefusal(res.task, "document", millrace.ErrorCode(why), why)
		}
		r.last = fmt.Errorf("%s: %w", res.url, why)
	}
	switch {
	case res.state == hasPage && errors.Is(why, millrace.ErrTooLarge):
		return r.takeFailed(res)
	case res.state == hasPage:
		return r.takeAbsent(res, why)
	case res.outcome == empty:
		if err := r.skip(res.url, false, why); err != nil {
			return err
		}
	}
	return r.takeAlias(res, res.url, key(res.url), false)
}

// takeAbsent handles an address whose page is missing or not allowed.
func (r *run) takeAbsent(res *result, why error) error {
	k := key(res.url)
	e, _ := r.table.get(k)
	e.state = gone
	r.table.set(k, e)
	r.lost(&res.task)
	if res.state == gone {
		return r.keepLost(&result{task: res.task, outcome: absent})
	}
	if res.state == hasPage || !errors.Is(why, errLogin) {
		r.lose(&res.task, k)
	}
	if res.state == pending && errors.Is(why, errLogin) {
		// There may be thousands of login forms, so they are reported as one group.
		shape, _ := r.traps.shapes(res.url)
		if err := r.refuse(res.task, k, shape, errLogin); err != nil {
			return err
		}
		return r.emit(millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: res.url}})
	}
	switch res.state {
	case hasPage:
		r.gone++
	case aliased:
		// The address was only an alias.
		return r.emit(millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: res.url}})
	default:
		if err := r.emit(millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: res.url}}); err != nil {
			return err
		}
	}
	return r.skip(res.url, true, withLinker(why, res.from))
}

// takeFailed handles an address that is unavailable. The stored state of the address does not
// change.
func (r *run) takeFailed(res *result) error {
	k := key(res.url)
	e, _ := r.table.get(k)
	if res.state == hasPage {
		r.pages++
	}
	e.checked(r.now(), res.state == hasPage, 0)
	r.table.set(k, e)
	r.lost(&res.task)
	r.missed = true
	return r.skip(res.url, false, withLinker(res.err, res.from))
}

// withLinker adds the page that links to an address to an error. It removes the address from the
// text, because the address precedes the error.
func withLinker(why error, from string) error {
	if status, ok := errors.AsType[*fetch.StatusError](why); ok {
		why = shortStatus{status}
	}
	if from == "" {
		return why
	}
	return fmt.Errorf("%w, linked from %s", why, from)
}

// shortStatus is a status error without its URL.
type shortStatus struct{ *fetch.StatusError }

func (e shortStatus) Error() string {
	short := *e.StatusError
	short.URL = ""
	return short.Error()[len(": "):]
}

func (e shortStatus) Unwrap() error { return e.StatusError }

// probe fetches a nonexistent address, to detect a site that responds to such an address with
// status 200. It uses the result in the cursor if that is less than a week old and from the same
// rules.
func (r *run) probe(ctx context.Context) error {
	const again = 7 * 24 * time.Hour
	s := r.since.Soft
	if s != nil && s.Rules == r.rules.by && r.now().Sub(time.Unix(s.Time, 0)).Abs() < again {
		r.soft.Store(s)
		return nil
	}
	s = &soft{Time: r.now().Unix(), Rules: r.rules.by}
	u := r.scope.base + "no-such-page-" + hex(key(r.scope.base+" soft"))
	if r.allowed(u) {
		if err := r.start(task{url: u}); err != nil {
			return err
		}
		var res *result
		select {
		case res = <-r.results:
			r.inFlight--
		case <-ctx.Done():
			return ctx.Err()
		}
		k := key(u)
		delete(r.flights, k)
		r.table.drop(k)
		for r.shouldRetry(ctx, res.err) {
			res = r.outages.ask(res.task)
		}
		if res.outcome == failed {
			r.soft.Store(r.since.Soft) // the next run will fetch a nonexistent address again
			return nil
		}
		if res.outcome == page {
			s.Found, s.Title, s.Sketch = true, cutTitle(res.page.Title), res.sketch
		}
	}
	r.since.Soft = s
	r.soft.Store(s)
	return nil
}

// matches reports whether a page resembles the response for nonexistent addresses.
func (s *soft) matches(res *result) bool {
	return s != nil && s.Found && s.Title == cutTitle(res.page.Title) && similar(s.Sketch, res.sketch) >= nearlySame
}

func cutTitle(s string) string { return s[:min(len(s), 200)] }
