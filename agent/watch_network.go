package agent

import (
	"context"
	"iter"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/internal/lease"
	"github.com/millrace/millrace/store"
)

// resolveTime limits the time to look up the addresses of a host.
const resolveTime = 10 * time.Second

// network is a network that many independent hosts share.
type network struct {
	name     string
	rate     float64 // maximum requests per second
	prefixes []netip.Prefix
}

// networks are large networks of content delivery and hosting, with the address ranges that they
// publish. Other networks are detected by the number of hosts on an address.
var networks = []network{
	{"cloudflare", 500, prefixes(`173.245.48.0/20 103.21.244.0/22 103.22.200.0/22 103.31.4.0/22 141.101.64.0/18 108.162.192.0/18 190.93.240.0/20
		188.114.96.0/20 197.234.240.0/22 198.41.128.0/17 162.158.0.0/15 104.16.0.0/13 104.24.0.0/14 172.64.0.0/13 131.0.72.0/22
		2400:cb00::/32 2606:4700::/32 2803:f800::/32 2405:b500::/32 2405:8100::/32 2a06:98c0::/29 2c0f:f248::/32`)},
	{"fastly", 300, prefixes(`23.235.32.0/20 43.249.72.0/22 103.244.50.0/24 103.245.222.0/23 103.245.224.0/24 104.156.80.0/20 140.248.64.0/18
		140.248.128.0/17 146.75.0.0/17 151.101.0.0/16 157.52.64.0/18 167.82.0.0/17 172.111.64.0/18 185.31.16.0/22 199.27.72.0/21 199.232.0.0/16
		2a04:4e40::/32 2a04:4e42::/32`)},
	{"github-pages", 50, prefixes("185.199.108.0/22 2606:50c0:8000::/46")},
	{"shopify", 100, prefixes("23.227.38.0/24")},
}

func prefixes(list string) (all []netip.Prefix) {
	for p := range strings.FieldsSeq(list) {
		all = append(all, netip.MustParsePrefix(p))
	}
	return all
}

// machine returns the name of the machine behind an address: the IPv4 address, or the /64 network of
// the IPv6 address, because providers assign at least that network to each customer.
func machine(a netip.Addr) string {
	if a = a.Unmap(); a.Is4() {
		return a.String()
	}
	return netip.PrefixFrom(a.WithZone(""), 64).Masked().String()
}

// groupName returns the name by which the fleet knows an address: that of its network or machine.
// rate is positive only for a network.
func groupName(a netip.Addr) (name string, rate float64) {
	for _, n := range networks {
		if slices.ContainsFunc(n.prefixes, func(p netip.Prefix) bool { return p.Contains(a) }) {
			return n.name, n.rate
		}
	}
	return machine(a), 0
}

// resolves reports whether turns resolve host names themselves, and connect to addresses.
func (w *watch) resolves() bool { return w.a.o.Dial == nil || w.a.o.Resolve != nil }

// setAddress looks up the addresses of the host of a turn. If none of them is in the group of the
// turn, setAddress moves the turn to the group of the first one.
func (w *watch) setAddress(ctx context.Context, t *turn) error {
	var err error
	t.addrs, err = w.resolve(ctx, t.Site.Host)
	if err != nil || len(t.addrs) == 0 || slices.ContainsFunc(t.addrs, t.isOwn) {
		return ctx.Err() // if resolve has failed, the pull reports the error
	}
	name, rate := groupName(t.addrs[0])
	moved, err := w.fleet.SetAddress(ctx, t.Turn, name, rate)
	if err == nil {
		t.Turn = moved
	}
	return err
}

// isOwn reports whether an address of the turn's host belongs to the turn's group.
func (t *turn) isOwn(a netip.Addr) bool {
	name, _ := groupName(a)
	return name == t.Address
}

// maxDials is the maximum number of addresses of a host to which a turn tries to connect.
const maxDials = 4

// addresses yields the addresses to which a turn may connect for a host. The turn holds the lease of
// the group of each yielded address. An address in the turn's own group comes first.
func (w *watch) addresses(ctx context.Context, t *turn, host string) iter.Seq2[netip.Addr, error] {
	return func(yield func(netip.Addr, error) bool) {
		host := hostName(host)
		addrs, err := t.addrs, error(nil)
		isOwn := t.isOwn
		if host != t.Site.Host || len(addrs) == 0 {
			addrs, err = w.resolve(ctx, host)
			isOwn = func(netip.Addr) bool { return false }
		}
		if err != nil {
			yield(netip.Addr{}, err)
			return
		}
		first := slices.IndexFunc(addrs, isOwn)
		if first > 0 {
			addrs = slices.Concat(addrs[first:], addrs[:first])
		}
		for _, a := range addrs[:min(maxDials, len(addrs))] {
			if !isOwn(a) {
				err = w.visit(ctx, t, host, a)
			}
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// visitWait is the maximum time for which a turn waits until it may visit another machine.
const visitWait = 20 * time.Second

// visit is a visit to the group of another machine, which serves host at addr. It ends when the turn
// sends a request to another host.
type visit struct {
	store.Visit
	host string
	addr netip.Addr
	left bool // the visit has ended
}

// visit begins a visit to the machine at an address of a host. While its group is busy, visit waits,
// at most visitWait.
func (w *watch) visit(ctx context.Context, t *turn, host string, a netip.Addr) error {
	address, rate := groupName(a)
	for end := w.now().Add(visitWait); ; {
		v, err := w.fleet.Visit(ctx, t.Lease, turnTime, host, address, rate)
		v.Requests = 1
		if err == nil && v.Lease != t.Lease && !t.visited(visit{v, host, a, false}) {
			w.leaveGroups(ctx, t, visit{Visit: v, host: host})
			return errLost
		}
		if millrace.ErrorCode(err) != "group-busy" || !w.now().Before(end) {
			return err
		}
		if err := fetch.Sleep(ctx, max(10*time.Millisecond, min(pollTime, w.until(ctx, v.Lease.Expires)))); err != nil {
			return err
		}
	}
}

// visited records a visit. It returns false if the turn has ended.
func (t *turn) visited(v visit) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.visits = append(slices.DeleteFunc(t.visits, func(old visit) bool { return old.host == v.host && old.addr == v.addr }), v)
	}
	return !t.ended
}

// gap returns the minimum time between two requests of a turn to a host: the longest delay of all
// hosts in the turn's group and in the groups that the turn visits for this host.
func (w *watch) gap(t *turn, host string) time.Duration {
	gap := max(0, t.Delay, w.a.o.Delay)
	if gap == 0 && w.a.o.Delay == 0 && !fetch.IsLoopback(t.Site.Host) {
		gap = fetch.PoliteDelay
	}
	host = hostName(host)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, v := range t.visits {
		if v.host == host {
			gap = max(gap, v.Delay)
		}
	}
	return gap
}

// admit is called before each request of a turn. Because a turn sends one request at a time, all
// earlier requests have ended, so admit ends the visits to other hosts: during requests to a slow
// site, other turns can use those machines. If a connection to the host may still be open from an
// earlier visit, admit visits that machine again. It returns an error if the turn's lease may have
// expired.
func (w *watch) admit(ctx context.Context, t *turn, host string) error {
	host = hostName(host)
	var again []visit
	left := t.leave(func(v visit) bool {
		if v.host == host && v.left {
			again = append(again, v)
		}
		return v.host != host
	})
	w.leaveGroups(ctx, t, left...)
	for _, v := range again {
		if err := w.visit(ctx, t, host, v.addr); err != nil {
			return err
		}
	}
	return t.check()
}

// lease sets client options so that a turn's leases and the rate budget limit the requests.
func (w *watch) lease(o *fetch.Options, t *turn) {
	sign := o.Sign
	o.Sign = func(req *http.Request) error {
		if err := w.admit(req.Context(), t, req.URL.Hostname()); err != nil || sign == nil {
			return err
		}
		return sign(req)
	}
	if w.resolves() {
		o.Resolve = func(ctx context.Context, host string) iter.Seq2[netip.Addr, error] { return w.addresses(ctx, t, host) }
	}
	if w.budget != nil {
		o.Start = w.budget.take
	}
}

// apart sets client options for requests outside of turns: each request leases the group of its
// host. The lease ends with the request, or when an event stream begins. The client must send one
// request at a time.
func (w *watch) apart(o *fetch.Options) *fetch.Options {
	t := &turn{Turn: store.Turn{Lease: store.Lease{Holder: w.worker, Name: lease.NewHolder()}}, until: time.Now().Add(apartTime)}
	w.lease(o, t)
	o.Timeout = turnTime // a request must not outlast the lease of its visit, which lasts turnTime
	o.Done = func() {
		w.leaveGroups(context.Background(), t, t.leave(func(visit) bool { return true })...)
	}
	return o
}

// apartTime is the maximum lifetime of a client outside of turns.
const apartTime = 100 * 365 * 24 * time.Hour

// end ends all visits of a turn.
func (w *watch) end(ctx context.Context, t *turn) {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	w.leaveGroups(ctx, t, t.leave(func(visit) bool { return true })...)
}

// leave marks the visits that match which as left, and returns them. It counts one more request for
// each other visit.
func (t *turn) leave(which func(v visit) bool) (left []visit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, v := range t.visits {
		if which(v) && !v.left {
			t.visits[i].left = true
			left = append(left, v)
		} else {
			t.visits[i].Requests++
		}
	}
	return left
}

// leaveGroups releases the leases of visits. The groups get no other turn until this turn
// could have sent them its next request.
func (w *watch) leaveGroups(ctx context.Context, t *turn, left ...visit) {
	if len(left) == 0 {
		return
	}
	var visits []store.Visit
	for _, v := range left {
		v.Delay = max(w.gap(t, v.host), w.a.shared.Wait(v.host))
		visits = append(visits, v.Visit)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*lastTry)
	defer cancel()
	if err := w.fleet.Leave(ctx, visits...); err != nil {
		w.a.o.Logger.Warn("could not release the leases of other machines; they expire", "err", err)
	}
}

// hostName returns a host name in the form of [store.FleetSite.Host].
func hostName(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// resolve returns the addresses of a host in a fixed order, IPv4 addresses first.
func (w *watch) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return []netip.Addr{a}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	lookup := w.a.o.Resolve
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	addrs, err := lookup(ctx, host)
	for i, a := range addrs {
		addrs[i] = a.Unmap()
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return addrs, err
}
