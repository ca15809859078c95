package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fleetnet"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// fleetTest is a fleet of virtual hosts with workers that fail.
type fleetTest struct {
	*testing.T
	hosts    int
	interval time.Duration // maximum time between two pulls of a site
	net      *fleetnet.Network
	store    store.Store
	tasks    sync.WaitGroup

	mu     sync.Mutex
	events map[string]Change // events that receivers have received, by site, number and URL
	newest map[string]uint64 // number of the newest event, by site
}

func newFleetTest(t *testing.T, hosts, shared int, interval time.Duration, o *store.Options) *fleetTest {
	f := &fleetTest{
		T: t, hosts: hosts, interval: interval, net: fleetnet.New(hosts, shared, fleetnet.Name), store: memory.New(o),
		events: make(map[string]Change), newest: make(map[string]uint64),
	}
	var sites []store.FleetSite
	for i := range hosts {
		sites = append(sites, store.FleetSite{URL: f.net.URL(i)})
	}
	if _, _, err := f.store.Fleet().Put(t.Context(), withoutErrors(sites)); err != nil {
		t.Fatal(err)
	}
	return f
}

// start starts a worker. stop ends it cleanly.
func (f *fleetTest) start(w *worker) (stop func()) {
	ctx, stop := context.WithCancel(f.Context())
	resolve := f.net.Resolve
	if w.resolve != nil {
		resolve = w.resolve
	}
	a, err := New(faultyStore{f.store, w}, &Options{Dial: w.dial(f.net), Resolve: resolve, Via: cmp.Or(w.via, "tct-01"), Parallel: 10})
	var subscriber *Subscriber
	if err == nil && w.callback != "" {
		subscriber, err = a.NewSubscriber(w.callback)
	}
	if err != nil {
		f.Fatal(err)
	}
	f.tasks.Go(func() {
		o := &WatchOptions{MinInterval: time.Minute, MaxInterval: f.interval, RequestRate: w.requests, ByteRate: w.bytes, Retention: w.retention, Subscriber: subscriber}
		for e, err := range a.Watch(ctx, nil, o) {
			if err == nil {
				err = w.pass()
			}
			if err != nil {
				e.Refuse(err)
				continue
			}
			f.receive(w, e)
		}
	})
	return stop
}

// receive records an event.
func (f *fleetTest) receive(w *worker, e *Event) {
	changes, err := e.Changes()
	if err != nil {
		f.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range changes {
		key := fmt.Sprint(c.Site, c.Seq, c.URL)
		if _, again := f.events[key]; !again && c.Seq < f.newest[c.Site] && !w.failed {
			f.Errorf("event %d of %s follows event %d", c.Seq, c.Site, f.newest[c.Site])
		}
		f.events[key] = c
		f.newest[c.Site] = max(f.newest[c.Site], c.Seq)
	}
}

// check compares the mirrors and the events with the hosts.
func (f *fleetTest) check() {
	f.Helper()
	stats, err := f.store.Fleet().Stats(f.Context(), "")
	if err != nil || stats.New > 0 || stats.Failing > 0 || stats.Lag[3] > time.Minute {
		f.Errorf("%+v, %v", stats, err)
	}
	if l := f.net.Log(); l.Most > 1 || l.Gap < 250*time.Millisecond {
		f.Errorf("%+v", l)
	}
	for i := range f.hosts {
		f.checkSite(i)
	}
}

// checkSite compares the mirror and the events of a site with the host's pages.
func (f *fleetTest) checkSite(i int) {
	f.Helper()
	name := f.net.URL(i)
	var v millrace.View
	site, err := f.store.Site(f.Context(), name, "")
	if err == nil {
		v, err = site.Head(f.Context())
	}
	if err != nil {
		f.Error(err)
		return
	}
	got := make(map[string]string)
	for p, err := range v.Scan(f.Context(), millrace.Scan{}) {
		if err != nil {
			f.Fatal(err)
		}
		got[p.URL] = p.Title
	}
	if d := gocmp.Diff(f.net.Titles(i), got); d != "" {
		f.Errorf("%s:\n%s", name, d)
	}
	received := make(map[string]string) // newest titles
	times := make(map[string]int)       // how often the receiver received a title
	newest := make(map[string]uint64)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.events {
		if c.Site != name {
			continue
		}
		if c.Change != "added" && c.Change != "updated" {
			f.Errorf("%+v", c)
		}
		times[c.URL+c.Title]++
		if c.Seq >= newest[c.URL] {
			received[c.URL], newest[c.URL] = c.Title, c.Seq
		}
	}
	if d := gocmp.Diff(got, received); d != "" {
		f.Errorf("events of %s:\n%s", name, d)
	}
	for change, n := range times {
		if n > 1 {
			f.Errorf("%d changes to %q", n, change)
		}
	}
}

// All sites of a fleet are kept fresh. Each machine gets one request at a time, with at least the
// delay between them.
func TestFleetFresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetTest(t, 30, 5, 20*time.Minute, nil)
		defer f.net.Close()
		stops := []func(){f.start(&worker{}), f.start(&worker{})}
		for round := range 3 {
			time.Sleep(20 * time.Minute)
			for i := range f.hosts / 10 {
				f.net.Edit(i*10+round, round)
			}
		}
		time.Sleep(23 * time.Minute)
		for _, stop := range stops {
			stop()
		}
		f.tasks.Wait()
		f.check()
		if got := len(f.events); got != 30*fleetnet.Pages+9 {
			t.Errorf("%d events", got)
		}
	})
}

// A machine gets one request at a time, also if a host has several addresses, or if other hosts
// redirect to it.
func TestFleetOtherMachines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleetTest(t, 20, 0, 20*time.Minute, nil)
		defer f.net.Close()
		for i := range 10 {
			f.net.AddAddress(i, fleetnet.Address(19-i, 0))
			f.net.AddAddress(i, netip.AddrFrom4([4]byte{11, 1, 0, byte(i / 2)}))
		}
		var robots atomic.Int64
		f.net.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/robots.txt" {
				return false
			}
			if robots.Add(1); r.Host != fleetnet.Name(0) {
				http.Redirect(w, r, "http://"+fleetnet.Name(0)+r.URL.Path, http.StatusFound)
			}
			return true
		}
		r := rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		w := &worker{resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
			addrs, err := f.net.Resolve(ctx, host)
			mu.Lock()
			defer mu.Unlock()
			r.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
			return addrs, err
		}}
		stops := []func(){f.start(w), f.start(w)}
		for round := range 4 {
			time.Sleep(20 * time.Minute)
			f.net.Edit(round*4, round)
		}
		time.Sleep(30 * time.Minute)
		for _, stop := range stops {
			stop()
		}
		f.tasks.Wait()
		f.check()
		if n := robots.Load(); n < 39 {
			t.Errorf("%d requests for robots.txt", n)
		}
	})
}

// Workers are killed, stopped for ten minutes, or cut off from the store, in the middle of their
// work. No change is lost or delivered twice, and no machine gets two requests at the same time.
func TestFleetFaults(t *testing.T) {
	t.Parallel()
	for seed := range testkit.Size(5, 20, 100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleetTest(t, 10, 10, 3*time.Minute, nil)
				defer f.net.Close()
				faults := make(chan *worker)
				stops := make(map[*worker]func())
				begin := func(seed uint64) {
					w := &worker{rand: rand.New(rand.NewPCG(seed, 2)), faults: faults}
					stops[w] = f.start(w)
				}
				r := rand.New(rand.NewPCG(uint64(seed), 1))
				for range 3 {
					begin(r.Uint64())
				}
				edited := make(chan struct{})
				editor := rand.New(rand.NewPCG(uint64(seed), 3))
				f.tasks.Go(func() {
					for {
						select {
						case <-edited:
							return
						case <-time.After(15 * time.Second):
							f.net.Edit(editor.IntN(f.hosts), editor.IntN(fleetnet.Pages))
						}
					}
				})
				most := testkit.Size(8, 30, 60)
				for n := 0; n < most; n++ {
					w := <-faults
					if !w.is(running) { // it has just failed
						continue
					}
					switch r.IntN(3) {
					case 0:
						w.set(dead)
						stops[w]()
						delete(stops, w)
						begin(r.Uint64())
					case 1:
						w.set(stopped)
						time.AfterFunc(10*time.Minute, func() { w.set(running) })
					case 2:
						w.set(cut)
						time.AfterFunc(time.Duration(r.IntN(300))*time.Second, func() { w.set(running) })
					}
				}
				close(edited)
				for w := range stops {
					w.mu.Lock()
					w.faults = nil
					w.mu.Unlock()
				}
				end := time.After(30 * time.Minute)
				for done := false; !done; {
					select {
					case <-faults: // drop the fault of a worker that was about to fail
					case <-end:
						done = true
					}
				}
				for _, stop := range stops {
					stop()
				}
				f.tasks.Wait()
				f.check()
				t.Logf("%d faults, %d events, %+v", most, len(f.events), f.net.Log())
			})
		})
	}
}

// condition is the state of a worker.
type condition int

const (
	running condition = iota
	stopped           // the process is suspended, and continues later
	cut               // the store cannot be reached
	dead              // the process was killed
)

// worker is a program that may fail.
type worker struct {
	rand            *rand.Rand
	faults          chan *worker                                        // receives the worker when it is to fail; nil = it does not fail
	retention       map[string]time.Duration                            // see WatchOptions
	requests, bytes float64                                             // see WatchOptions
	resolve         func(context.Context, string) ([]netip.Addr, error) // nil = the network's
	via             string                                              // see Options; "" = tct-01
	callback        string                                              // for subscriptions to hubs; "" = none
	failed          bool                                                // it was stopped or cut off, so its events may be late

	mu     sync.Mutex
	state  condition
	resume chan struct{} // closed when the worker continues
}

func (w *worker) set(s condition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == stopped {
		close(w.resume)
	}
	if w.state, w.failed = s, true; s == stopped {
		w.resume = make(chan struct{})
	}
}

func (w *worker) is(s condition) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state == s
}

var errDead = errors.New("the process was killed")

var errCut = fmt.Errorf("%w: the store cannot be reached", millrace.ErrUnavailable)

// alive returns an error if the worker is dead.
func (w *worker) alive() error {
	if w.is(dead) {
		return errDead
	}
	return nil
}

// pass waits while the worker is stopped, and returns an error if it is dead.
func (w *worker) pass() error {
	for {
		w.mu.Lock()
		s, resume := w.state, w.resume
		w.mu.Unlock()
		switch s {
		case stopped:
			<-resume
			continue
		case dead:
			return errDead
		}
		return nil
	}
}

// work is call for an operation in a turn. The worker may fail before or after the operation. pass
// is w.pass, or w.alive for operations under a mutex: a goroutine that waits for a mutex would stop
// the clock of the test.
func (w *worker) work(pass func() error, f func() error) error {
	fail := func() {
		w.mu.Lock()
		faults := w.faults
		if w.state != running || faults == nil || w.rand.IntN(100) > 0 {
			faults = nil
		}
		w.mu.Unlock()
		if faults != nil {
			faults <- w
		}
	}
	fail()
	return w.call(pass, func() error {
		defer fail()
		return f()
	})
}

// call calls f, an operation of the store. If the store cannot be reached, f may or may not be
// called.
func (w *worker) call(pass func() error, f func() error) error {
	if err := pass(); err != nil {
		return err
	}
	w.mu.Lock()
	isCut := w.state == cut
	lost := isCut && w.rand.IntN(2) == 0
	w.mu.Unlock()
	if lost {
		return errCut
	}
	err := f()
	if p := pass(); p != nil {
		return p
	}
	if isCut {
		return errCut
	}
	return err
}

func called[T any](w *worker, f func() (T, error)) (v T, err error) {
	err = w.call(w.pass, func() error {
		v, err = f()
		return err
	})
	return v, err
}

func worked[T any](w *worker, f func() (T, error)) (v T, err error) {
	err = w.work(w.pass, func() error {
		v, err = f()
		return err
	})
	return v, err
}

func ranged[T any](w *worker, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := w.call(w.pass, func() error { return nil }); err != nil {
			yield(*new(T), err)
			return
		}
		seq(yield)
	}
}

// dial returns the Dial of a worker. A stopped worker neither sends nor receives.
func (w *worker) dial(n *fleetnet.Network) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := w.pass(); err != nil {
			return nil, err
		}
		c, err := n.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return faultyConn{c, w}, nil
	}
}

type faultyConn struct {
	net.Conn
	w *worker
}

func (c faultyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, errors.Join(c.w.pass(), err)
}

func (c faultyConn) Write(b []byte) (int, error) {
	if err := c.w.pass(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
