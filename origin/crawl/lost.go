package crawl

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// loss is an address without a page at its last fetch. The cursor stores the address, because
// requests for the pages that link to it result in a 304, which does not name the address again.
type loss struct {
	URL   string `json:"u"`           // the address, relative to the base
	When  int64  `json:"t"`           // time of the loss, in seconds since 1970
	Asked int64  `json:"a,omitempty"` // time of the last fetch after the loss, in seconds since 1970; 0 = the next run fetches the address
	Had   bool   `json:"p,omitempty"` // the address had a page; false = a broken link
	Depth int    `json:"d,omitempty"`
}

const (
	maxLosses    = 20_000
	maxLossBytes = 2 << 20 // maximum total length of the addresses in bytes
	lossAge      = 60 * 24 * time.Hour
	lossFresh    = 24 * time.Hour     // time after a loss in which every run fetches the lost page
	lossAgain    = 7 * 24 * time.Hour // interval for other addresses; up to a day is subtracted to spread the requests
)

// due reports whether to fetch a lost address again. The first run after the loss always fetches
// it, because the site may have been restored before the run read the pages that link to the
// address.
func (l *loss) due(now time.Time, k uint64) bool {
	if l.Asked == 0 || l.Had && now.Sub(time.Unix(l.When, 0)).Abs() < lossFresh {
		return true
	}
	last := time.Unix(max(l.When, l.Asked), 0)
	return now.Sub(last).Abs() >= lossAgain-time.Duration(k%24)*time.Hour
}

// lose records that an address has no page.
func (r *run) lose(t *task, k uint64) {
	u, ok := strings.CutPrefix(t.url, r.scope.base)
	if !ok || r.knownRefs == nil {
		return
	}
	if l, ok := r.losses[k]; ok && (l.Had || t.state != hasPage) {
		r.relinked(k)
		return
	}
	if len(r.losses) >= 2*maxLosses {
		r.lostMore = r.lostMore || t.state == hasPage
		return
	}
	r.losses[k] = loss{URL: u, When: r.now().Unix(), Had: t.state == hasPage, Depth: t.depth}
}

// relinked makes a lost address due in the next run, because this run has read a page or a list
// that names it.
func (r *run) relinked(k uint64) {
	if l, ok := r.losses[k]; ok {
		l.Asked = 0
		r.losses[k] = l
	}
}

// queueLost queues the lost addresses that are due, and all lost pages if all is set. The sink
// receives these addresses only if they have a page again.
func (r *run) queueLost(all bool) error {
	now := r.now()
	for _, k := range r.lostKeys() {
		l := r.losses[k]
		t := task{url: r.scope.base + l.URL, depth: l.Depth, state: gone}
		e, _ := r.table.get(k)
		if e.state != unknown || !(all && l.Had) && !l.due(now, k) {
			continue // found in another list or in the sink, or not due
		}
		if _, v := r.scope.clean(t.url); v != inside && v != repetitive {
			continue
		}
		e.state = gone
		r.table.set(k, e)
		if err := r.queue.push(t); err != nil {
			return fatalError{err}
		}
	}
	return nil
}

// lostKeys returns the keys of the lost addresses: lost pages before broken links, and later losses
// before earlier ones.
func (r *run) lostKeys() []uint64 {
	keys := make([]uint64, 0, len(r.losses))
	for k := range r.losses {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b uint64) int {
		x, y := r.losses[a], r.losses[b]
		if x.Had != y.Had {
			return int(flag(y.Had) - flag(x.Had))
		}
		return cmp.Or(cmp.Compare(y.When, x.When), cmp.Compare(x.URL, y.URL))
	})
	return keys
}

// keepLost handles a lost address that is still without a page.
func (r *run) keepLost(res *result) error {
	k := key(res.url)
	l := r.losses[k]
	if now := r.now().Unix(); res.outcome != failed && (l.Asked == 0 || now-l.When >= int64(lossFresh/time.Second)) {
		l.Asked = now
		r.losses[k] = l
	}
	if res.outcome != moved {
		return nil
	}
	to, v := r.scope.clean(res.to)
	if v != inside || key(to) == k || isLogin(to) {
		return nil
	}
	return r.found(task{url: to, from: res.url, depth: res.depth + 1})
}

// foundAgain records that a lost address has a page again. The first of these addresses queues all
// lost pages, because the site has probably recovered.
func (r *run) foundAgain(res *result) error {
	if res.state == hasPage || r.recovered || !r.losses[key(res.url)].Had {
		return nil
	}
	r.recovered = true
	return r.queueLost(true)
}

// stillMissing returns the losses for the next run.
func (r *run) stillMissing() (out []loss) {
	size, now := 0, r.now()
	for _, k := range r.lostKeys() {
		l := r.losses[k]
		if e, _ := r.table.get(k); e.state != unknown && e.state != gone && e.state != refused {
			continue // no longer lost
		}
		if now.Sub(time.Unix(l.When, 0)) > lossAge {
			continue
		}
		if size += len(l.URL); len(out) == maxLosses || size > maxLossBytes {
			r.lostMore = r.lostMore || l.Had
			return out
		}
		out = append(out, l)
	}
	return out
}
