package crawl

import (
	"context"
	"fmt"

	"github.com/millrace/millrace"
)

// outages finds out when a site has begun to answer with the same page
// wherever one asks, with status 200: an error, a notice of maintenance, the
// form of a firewall. It would take the place of all pages.
type outages struct {
	ask    func(t task) *result // by the goroutine that owns the run: nothing is settled meanwhile
	asked  int                  // addresses that cannot exist
	answer *soft                // to the last of them; nil = none yet
	other  *soft                // the last page that is wholly other than before, and was believed
}

// maxProbes is how often one run asks for an address that cannot exist because
// a page is wholly other than before.
const maxProbes = 20

// softOf keeps how a page looks.
func softOf(res *result) *soft {
	return &soft{Found: true, Title: cutTitle(res.page.Title), Sketch: res.sketch}
}

// impossible returns an address that cannot exist. No cache knows it.
func (r *run) impossible(n int) string {
	return r.scope.base + "no-such-page-" + hex(key(fmt.Sprint(r.scope.base, " ", r.started.Unix(), " ", n)))
}

// replaced reports whether a page is what the site answers to everything now.
// It is asked what that is when a page says something wholly other than what
// is held of it, and when two such pages look alike. An error: it is not to be
// found out.
func (r *run) replaced(res *result) (bool, error) {
	o := &r.outages
	if res.state == had && !res.version.stale && similar(res.version.sketch, res.sketch) < notWhollyOther &&
		!o.answer.matches(res) && (o.answer == nil || o.other.matches(res)) && o.asked < maxProbes {
		o.asked++
		u := r.impossible(o.asked)
		if !r.allowed(u) {
			return false, nil
		}
		switch got := o.ask(task{url: u}); got.outcome {
		case page:
			o.answer = softOf(got)
		case failed:
			return false, fmt.Errorf("it says something wholly other than before, and it is not to be found out whether all pages do: %w", got.err)
		default:
			o.answer = &soft{}
		}
		o.other = softOf(res)
	}
	return o.answer.matches(res), nil
}

// sane ends the run when the root looks like all other addresses, and did not
// before. There are sites that always answer what cannot exist with their home
// page: another page that is held tells.
func (r *run) sane(ctx context.Context, res *result) error {
	if res.outcome != page {
		return nil
	}
	if r.o.Wary && res.state != had {
		u := r.impossible(0)
		if !r.allowed(u) {
			return nil
		}
		if got := r.outages.ask(task{url: u}); got.outcome == page && softOf(got).matches(res) {
			return r.sameEverywhere(res)
		}
		return nil
	}
	down, err := r.replaced(res)
	if err != nil {
		return fmt.Errorf("the root: %w", err)
	}
	if !down {
		return nil
	}
	tries := 0
	for ref, err := range r.knownRefs(ctx) {
		if err != nil {
			return fmt.Errorf("what the sink holds: %w", err)
		}
		t := r.taskOf(ref)
		if _, v := r.scope.clean(t.url); t.state != had || t.url == res.url || v == outside || !r.allowed(t.url) {
			continue
		}
		switch got := r.outages.ask(t); {
		case got.outcome == unchanged, got.outcome == page && !r.outages.answer.matches(got):
			return nil
		case got.outcome == page:
			return r.sameEverywhere(res)
		}
		if tries++; tries == maxOthers {
			break
		}
	}
	if s := r.since.Soft; s != nil && s.Found {
		return nil
	}
	return r.sameEverywhere(res)
}

// maxOthers is how many held pages are asked for until one tells.
const maxOthers = 3

func (r *run) sameEverywhere(res *result) error {
	return millrace.Coded("same-page", fmt.Errorf("%w: the site answers every address with the same page, %q: it may be out of order; nothing was changed, run it again later",
		millrace.ErrUnavailable, cutTitle(res.page.Title)))
}
