package crawl

import (
	"context"
	"fmt"

	"github.com/millrace/millrace"
)

// outages detects that a site returns the same page with status 200 for every address. The page may
// be an error page, a maintenance notice, or the challenge page of a firewall. Without this check,
// that page would replace all pages.
type outages struct {
	ask    func(t task) *result // fetches an address without recording the result; the goroutine of the run calls it
	asked  int                  // number of nonexistent addresses that were fetched
	answer *soft                // response for the last nonexistent address, or nil
	other  *soft                // last accepted page that differs completely from the stored one
}

// maxProbes is the maximum number of nonexistent addresses that one run fetches because pages
// differ completely from the stored ones.
const maxProbes = 20

// softOf returns the features of a page by which a soft 404 is recognized.
func softOf(res *result) *soft {
	return &soft{Found: true, Title: cutTitle(res.page.Title), Sketch: res.sketch}
}

// nonexistent returns an address that neither exists nor is in a cache.
func (r *run) nonexistent(n int) string {
	return r.scope.base + "no-such-page-" + hex(key(fmt.Sprint(r.scope.base, " ", r.started.Unix(), " ", n)))
}

// isUniform reports whether a page is the site's current response for every address. It fetches a
// nonexistent address if a page differs completely from the stored one, and again if two of these
// pages are similar. It returns an error if this fetch fails.
func (r *run) isUniform(res *result) (bool, error) {
	o := &r.outages
	if res.state == hasPage && !res.version.stale && similar(res.version.sketch, res.sketch) < notWhollyOther &&
		!o.answer.matches(res) && (o.answer == nil || o.other.matches(res)) && o.asked < maxProbes {
		o.asked++
		u := r.nonexistent(o.asked)
		if !r.allowed(u) {
			return false, nil
		}
		switch got := o.ask(task{url: u}); got.outcome {
		case page:
			o.answer = softOf(got)
		case failed:
			return false, fmt.Errorf("the page differs completely from the stored one; cannot check whether all pages do: %w", got.err)
		default:
			o.answer = &soft{}
		}
		o.other = softOf(res)
	}
	return o.answer.matches(res), nil
}

// checkRoot ends the run if the root resembles the response for every address but did not do so
// before. Some sites respond to nonexistent addresses with their home page. Therefore checkRoot
// also compares other stored pages.
func (r *run) checkRoot(ctx context.Context, res *result) error {
	if res.outcome != page {
		return nil
	}
	if r.o.RejectUniform && res.state != hasPage {
		u := r.nonexistent(0)
		if !r.allowed(u) {
			return nil
		}
		if got := r.outages.ask(task{url: u}); got.outcome == page && softOf(got).matches(res) {
			return r.sameEverywhere(res)
		}
		return nil
	}
	down, err := r.isUniform(res)
	if err != nil {
		return fmt.Errorf("root: %w", err)
	}
	if !down {
		return nil
	}
	tries := 0
	for ref, err := range r.knownRefs(ctx) {
		if err != nil {
			return fmt.Errorf("read stored refs: %w", err)
		}
		t := r.taskOf(ref)
		if _, v := r.scope.clean(t.url); t.state != hasPage || t.url == res.url || v == outside || !r.allowed(t.url) {
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

// maxOthers is the maximum number of other stored pages that checkRoot fetches.
const maxOthers = 3

func (r *run) sameEverywhere(res *result) error {
	return millrace.Coded("same-page", fmt.Errorf("%w: the site returns the same page for every address, %q; nothing was changed; try again later",
		millrace.ErrUnavailable, cutTitle(res.page.Title)))
}
