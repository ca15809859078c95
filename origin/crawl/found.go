package crawl

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/millrace/millrace"
)

// found handles an address from a page or a list: it adds the address if it is new and not
// excluded.
func (r *run) found(t task) error {
	k := key(t.url)
	e, _ := r.table.get(k)
	if e.state == gone {
		r.relinked(k)
		return nil
	}
	if e.state != unknown {
		if t.hint > r.since.Newest && r.since.Newest > 0 && e.state == hasPage && e.flags&tried == 0 && len(r.hinted) < maxHinted {
			t.hinted = true
			r.hinted = append(r.hinted, t)
		}
		return nil
	}
	if r.known+len(r.flights) >= knownFactor*r.o.MaxPages {
		r.met.Pages = r.by.Pages
		return r.refuse(t, k, "", limitError{"max-pages", fmt.Sprintf("beyond --max-pages %d: the crawl has already found %d addresses", r.o.MaxPages, knownFactor*r.o.MaxPages)})
	}
	if !r.allowed(t.url) {
		r.met.Robots = r.by.Robots
		_, rule := r.robots.Rule(t.url[len(r.scope.origin):])
		return r.refuse(t, k, rule, millrace.Coded("robots-disallow", fmt.Errorf("%w: disallowed by the robots.txt rule %q", millrace.ErrForbidden, rule)))
	}
	if !t.listed {
		_, v := r.scope.clean(t.url)
		shape, any := r.traps.shapes(t.url)
		switch {
		case v == repetitive:
			return r.refuse(t, k, shape, errTangled)
		case t.depth > r.o.MaxDepth:
			r.met.Depth = r.by.Depth
			return r.refuse(t, k, shape, limitError{"max-depth", fmt.Sprintf("beyond --max-depth: more than %d links away", r.o.MaxDepth)})
		case wantsLogin(t.url):
			return r.refuse(t, k, shape, errLogin)
		}
		if !r.traps.admit(shape, any) {
			return r.refuse(t, k, shape, errNothingNew)
		}
	}
	if err := r.add(t, k, e); err != nil {
		return err
	}
	t.state = pending
	if err := r.queue.push(t); err != nil {
		return fatalError{err}
	}
	return nil
}

// Reasons why addresses are not fetched.
var (
	errHidden     = millrace.Coded("noindex", errors.New("noindex in a meta element or X-Robots-Tag excludes the page from public documents"))
	errTangled    = limitError{"url-repeats", "the address is too long or repeats itself"}
	errNothingNew = limitError{"no-new-content", "too many addresses of this form without new content"}
)

// withdraw excludes a queued address if the budget for its shape is exhausted.
func (r *run) withdraw(t task) (bool, error) {
	shape, any := r.traps.shapes(t.url)
	if t.listed || t.state != pending || r.traps.admit(shape, any) {
		return false, nil
	}
	k := key(t.url)
	e, _ := r.table.get(k)
	e.flags |= tried
	r.table.set(k, e)
	if err := r.refuse(t, k, shape, errNothingNew); err != nil {
		return true, err
	}
	return true, r.emit(millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: t.url}})
}

// add adds an address to the table. The sink stores the address as pending before it stores the
// page that links to it.
func (r *run) add(t task, k uint64, e entry) error {
	e.state = pending
	e.flags |= named
	r.table.set(k, e)
	r.known++
	v := version{kind: isPending, by: r.rules.by, depth: t.depth, listed: t.listed}
	return r.emit(millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: t.url, Version: v.String()}, Page: aliasVersion(t.url, &v)})
}

// refusal is a group of addresses that were excluded for the same reason.
type refusal struct {
	example task
	why     error
	count   int
}

// maxRefusals is the maximum number of groups that are counted separately.
const maxRefusals = 500

// maxRemembered is the maximum number of excluded addresses that the table stores.
const maxRemembered = 200_000

// refuse excludes an address. At the end, the run reports each kind of refusal once.
func (r *run) refuse(t task, k uint64, kind string, why error) error {
	if r.refusals++; r.refusals < maxRemembered {
		e, _ := r.table.get(k)
		e.state = refused
		r.table.set(k, e) // so that each address is counted once
	}
	r.lost(&t)
	r.countRefusal(t, why.Error(), kind, why)
	return nil
}

// countRefusal counts an excluded address. Each part of a kind is a separate group; once
// maxRefusals groups exist, all new parts of a kind share one group. At the end, the run reports
// each group once, with its first address.
func (r *run) countRefusal(t task, kind, part string, why error) {
	all := kind
	kind += "\x00" + part
	f := r.refused[kind]
	if f == nil && len(r.refused) >= maxRefusals {
		kind = all
		f = r.refused[kind]
	}
	if f == nil {
		f = &refusal{example: t, why: why}
		r.refused[kind] = f
	}
	f.count++
}

// hex formats a key for use in an address.
func hex(k uint64) string { return strconv.FormatUint(k, 16) }
