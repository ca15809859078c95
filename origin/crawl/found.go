package crawl

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/millrace/millrace"
)

// found takes in an address that a page or a list names.
func (r *run) found(t task) error {
	k := key(t.url)
	e, _ := r.table.get(k)
	if e.state == gone {
		r.relinked(k)
		return nil
	}
	if e.state != unknown {
		if t.hint > r.since.Newest && r.since.Newest > 0 && e.state == had && e.flags&tried == 0 && len(r.hinted) < maxHinted {
			t.hinted = true
			r.hinted = append(r.hinted, t)
		}
		return nil
	}
	if r.known+len(r.flights) >= knownFactor*r.o.MaxPages {
		r.met.Pages = r.by.Pages
		return r.refuse(t, k, "", limitError{"max-pages", fmt.Sprintf("beyond --max-pages %d: one of more than %d addresses", r.o.MaxPages, knownFactor*r.o.MaxPages)})
	}
	if !r.allowed(t.url) {
		r.met.Robots = r.by.Robots
		_, rule := r.robots.Rule(t.url[len(r.scope.origin):])
		return r.refuse(t, k, rule, millrace.Coded("robots-disallow", fmt.Errorf("%w: robots.txt says %q", millrace.ErrForbidden, rule)))
	}
	if !t.listed {
		_, v := r.scope.clean(t.url)
		shape, any := r.traps.shapes(t.url)
		switch {
		case v == tangled:
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

// Why addresses are not asked for.
var (
	errHidden     = millrace.Coded("noindex", errors.New("it asks not to be indexed (noindex in a meta element or an X-Robots-Tag): it is in no public document"))
	errTangled    = limitError{"trap", "the address is too long, or the same names come again and again in it"}
	errNothingNew = limitError{"nothing-new", "the pages of this shape bring nothing new"}
)

// withdraw leaves out an address that has waited while the budget of its shape
// ran out.
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

// add makes an address known: the sink holds it as pending before it holds the
// page that has led to it.
func (r *run) add(t task, k uint64, e entry) error {
	e.state = pending
	e.flags |= named
	r.table.set(k, e)
	r.known++
	v := version{kind: isPending, by: r.rules.by, depth: t.depth, listed: t.listed}
	return r.emit(millrace.Change{Kind: millrace.Put, Ref: millrace.Ref{URL: t.url, Version: v.String()}, Page: mute(t.url, &v)})
}

// refusal is a kind of addresses that were not asked for.
type refusal struct {
	example task
	why     error
	count   int
}

// maxRefusals is how many kinds are counted separately.
const maxRefusals = 500

// maxRemembered is how many addresses that were left out are known again when
// they are met again.
const maxRemembered = 200_000

// refuse leaves an address out. Each kind is reported once, at the end.
func (r *run) refuse(t task, k uint64, kind string, why error) error {
	if r.refusals++; r.refusals < maxRemembered {
		e, _ := r.table.get(k)
		e.state = refused
		r.table.set(k, e) // so that each is counted once
	}
	r.lost(&t)
	r.remark(t, why.Error(), kind, why)
	return nil
}

// remark counts an address of a kind, and of a part of that kind while there
// are not too many. Each is reported once, at the end, with its first address.
func (r *run) remark(t task, kind, part string, why error) {
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

// hex writes a key as part of an address.
func hex(k uint64) string { return strconv.FormatUint(k, 16) }
