package crawl

import (
	"time"

	"github.com/millrace/millrace"
)

// naming is the outcome of determining a page's address.
type naming uint8

const (
	own       naming = iota // the page keeps its own address
	duplicate               // the page is a duplicate of another page of the site
	wait                    // the outcome depends on an address that is being fetched
	forNow                  // the page keeps its own address until the next run
)

// resolve determines whether a fetched page is a duplicate, and stores the result.
func (r *run) resolve(res *result) error {
	k := key(res.url)
	if res.url != r.scope.base {
		down, why := r.isUniform(res)
		switch {
		case why != nil:
			res.outcome, res.err = failed, why
			if err := r.takeFailed(res); err != nil {
				return err
			}
			return r.takeWaiting(k)
		case down, r.soft.Load().matches(res):
			if err := r.takeAbsent(res, errSoft); err != nil {
				return err
			}
			return r.takeWaiting(k)
		}
	}
	to, target, naming, err := r.addressOf(res, k)
	if err != nil {
		return err
	}
	switch naming {
	case wait:
		r.flights[k].on = target
		r.flights[target].waiters = append(r.flights[target].waiters, res)
		r.waiting++
		return nil
	case duplicate:
		err = r.same(res, to, target)
	case forNow:
		res.made.revision = "" // the next run fetches the page without conditions
		err = r.keep(res, k)
	case own:
		err = r.keep(res, k)
	}
	if err != nil {
		return err
	}
	return r.takeWaiting(k)
}

// same handles a duplicate. It also follows the links of the page.
func (r *run) same(res *result, to string, target uint64) error {
	leads, err := r.follow(res)
	if err != nil {
		return err
	}
	return r.takeAlias(res, to, target, leads)
}

// addressOf determines whether a page is a duplicate. If so, to is the address of the other page,
// and target is the key of that address. It accepts a canonical link if the linked page exists and
// about half of the text is equal. Therefore no page is lost if a template names the home page as
// canonical on every page. The default document of a directory is compared with the page of the
// directory, if the address of the directory is known.
func (r *run) addressOf(res *result, k uint64) (to string, target uint64, naming naming, err error) {
	if res.canonical != "" {
		if target, naming, err = r.compare(res, k, res.canonical); naming != own || err != nil {
			return res.canonical, target, naming, err
		}
	}
	if dir, ok := isDefault(res.url); ok {
		if e, _ := r.table.get(key(dir)); e.state != unknown {
			if target, naming, err = r.compare(res, k, dir); naming != own || err != nil {
				return dir, target, naming, err
			}
		}
	}
	for _, twin := range r.scope.variants(res.url) {
		tk := key(twin)
		if e, _ := r.table.get(tk); tk != k && e.state == hasPage && e.about != 0 && e.about == res.sketch {
			return twin, tk, duplicate, nil
		}
	}
	return "", k, own, nil
}

// compare reports whether a page is a duplicate of the page at another address. If that page is
// unknown, compare has it fetched.
func (r *run) compare(res *result, k uint64, to string) (target uint64, naming naming, err error) {
	target = key(to)
	e, _ := r.table.get(target)
	for hop := 0; e.state == aliased && e.about != target && hop < 5; hop++ {
		target = e.about
		e, _ = r.table.get(target)
	}
	if target == k {
		return target, own, nil // the other page names this page
	}
	if f := r.flights[target]; f != nil {
		for on, hop := target, 0; on != 0 && r.flights[on] != nil; hop++ {
			if on == k || hop > 8 {
				return target, own, nil // each page waits for the other one
			}
			on = r.flights[on].on
		}
		if target != key(to) {
			return target, forNow, nil // the address of the other page is unknown
		}
		return target, wait, nil
	}
	switch {
	case e.state == hasPage && e.about == 0 && e.flags&tried == 0:
		// The sketch of the page is unknown: fetch it.
	case e.state == hasPage:
		if len(res.page.Blocks) == 0 || similar(e.about, res.sketch) >= notWhollyOther {
			return target, duplicate, nil
		}
		r.wrongCanonical[target]++
		return target, own, nil
	case e.state == pending && e.flags&tried != 0:
		return target, forNow, nil // the other page was not fetched successfully
	case e.state == gone && e.flags&tried != 0, e.state == refused, e.state == aliased, r.wrongCanonical[target] >= 3, target != key(to), !r.allowed(to):
		return target, own, nil
	}
	if e.state == unknown || e.state == gone {
		if err := r.add(task{url: to, from: res.url, depth: res.depth}, target, e); err != nil {
			return target, own, err
		}
	}
	r.urgent = append(r.urgent, task{url: to, from: res.url, depth: res.depth, state: pending})
	r.flights[target] = &flight{}
	return target, wait, nil
}

// keep handles a page that is not a duplicate.
func (r *run) keep(res *result, k uint64) error {
	r.pages++
	if res.page.Access.NoIndex {
		r.countRefusal(res.task, "noindex", "", errHidden)
	}
	if err := r.foundAgain(res); err != nil {
		return err
	}
	leads, err := r.follow(res)
	if err != nil {
		return err
	}
	e, _ := r.table.get(k)
	if res.state != hasPage {
		res.made.nothingNew = !leads && (res.page.Kind == millrace.Archive || !r.traps.isNew(res.url, res.lines))
		r.traps.note(res.url, !res.made.nothingNew)
	}
	if res.foreignCanonical != "" {
		c := key(res.foreignCanonical)
		if by, ok := r.table.get(c); ok && by.state == claimed && by.about != k {
			// Another page already has that address. Keep the page's own address, so that this page
			// does not replace the other one.
			res.page.URL, res.made.claim = res.url, 0
			if res.made.revision != "" {
				res.made.revise(res)
			}
		} else {
			r.table.set(c, entry{state: claimed, about: k, flags: named})
		}
	}
	age := time.Duration(0)
	if !res.page.Modified.IsZero() {
		age = r.now().Sub(res.page.Modified)
	}
	r.countHint(&res.task, res.same)
	e.checked(r.now(), res.state == hasPage && !res.same, age)
	e.state, e.about = hasPage, res.sketch
	v := res.made.String()
	if res.state == hasPage && v == res.knownVersion && res.made.detailed() {
		r.done--
		r.pages--
		return r.keepState(res.task, k, e)
	}
	r.table.set(k, e)
	res.page.Version = v
	return r.emit(millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: res.url, Version: v}, Page: res.page})
}

// follow adds the links of a page. leads reports whether a link is new and has a shape that differs
// from that of the page's own address.
func (r *run) follow(res *result) (leads bool, err error) {
	if len(res.links) == 0 {
		return false, nil
	}
	mine, _ := r.traps.shapes(res.url)
	for _, u := range res.links {
		n := r.known
		if err := r.found(task{url: u, from: res.url, depth: res.depth + 1}); err != nil {
			return leads, err
		}
		if r.known > n && !leads {
			shape, _ := r.traps.shapes(u)
			leads = unrelated(mine, shape)
		}
	}
	res.links = nil
	return leads, nil
}
