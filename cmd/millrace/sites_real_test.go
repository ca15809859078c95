//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/internal/fleetnet"
	"github.com/millrace/millrace/internal/outbox"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store/all"
)

// deliveryLease is the duration of the lease under which a worker delivers the changes of a site.
const deliveryLease = 10 * time.Second

// workers are several processes of `millrace watch --all` over one database.
type workers struct {
	*testing.T
	args    []string
	folder  string
	running []*exec.Cmd
}

// start starts worker i.
func (w *workers) start(i int) {
	w.Helper()
	c := asProcess(context.WithoutCancel(w.Context()), w.T, w.args...)
	log, err := os.OpenFile(filepath.Join(w.folder, fmt.Sprint("log", i)), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		w.Fatal(err)
	}
	defer log.Close()
	if c.Stderr = log; c.Start() != nil {
		w.Fatal("start failed")
	}
	w.running[i] = c
}

// end ends worker i by a signal.
func (w *workers) end(i int, s os.Signal) {
	_ = w.running[i].Process.Signal(s)
	_ = w.running[i].Wait()
}

// TestRealFleet kills and stops workers, and kills the database, at random, while the pages of
// many hosts change. The receiver must not miss a change, get one change twice, or get the changes
// of a site in another order. No host may get two requests at the same time, or a request before
// its delay has passed.
func TestRealFleet(t *testing.T) {
	db, dsn := startDatabase(t, "fleet")
	const hosts, delay = 24, 20 * time.Millisecond
	var listeners []net.Listener
	list := ""
	for i := range hosts {
		l, err := net.Listen("tcp", fmt.Sprintf("127.1.0.%d:0", i+1))
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
		list += "http://" + l.Addr().String() + "/\n"
	}
	n := fleetnet.New(hosts, 0, func(i int) string { return listeners[i].Addr().String() })
	t.Cleanup(n.Close)
	for _, l := range listeners {
		srv := &http.Server{Handler: n}
		t.Cleanup(func() { srv.Close() })
		go func() { _ = srv.Serve(l) }()
	}
	h := newHook(t)
	dir := t.TempDir()
	secret, file := filepath.Join(dir, "secret"), filepath.Join(dir, "sites.txt")
	write(t, secret, hookSecret+"\n")
	write(t, file, list)
	if code, _, out := command(t, nil, "sites", "add", file, "--store", dsn); code != 0 {
		t.Fatalf("%d: %s", code, out)
	}
	w := &workers{T: t, folder: dir, running: make([]*exec.Cmd, 3), args: []string{
		"watch", "--all", "--store", dsn, "--allow-private", "--delay", delay.String(), "--via", "tct-01", "--webhook", h.URL, "--webhook-secret-file", secret,
		"--min-interval", "1s", "--max-interval", "2s",
	}}
	for i := range w.running {
		w.start(i)
		defer func() { w.end(i, os.Kill) }()
	}
	eventually(t, "the receiver has all pages", func() bool { return len(received(t, h)) == hosts*fleetnet.Pages })

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var editing sync.WaitGroup
	edits := 0
	editing.Go(func() {
		for tick := time.NewTicker(100 * time.Millisecond); ctx.Err() == nil; edits++ {
			n.Edit(rand.IntN(hosts), rand.IntN(fleetnet.Pages))
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	kinds, longStops := make(map[string]int), 0
	cut := time.Now().Add(time.Duration(testkit.Size(0, 0, 10)) * time.Minute)
	if time.Now().Before(cut) { // one worker is stopped for ten minutes
		w.running = append(w.running, nil)
		w.start(3)
		defer func() { w.end(3, os.Kill) }()
		time.Sleep(10 * time.Second)
		_ = w.running[3].Process.Signal(syscall.SIGSTOP)
		longStops++
	}
	for kills := 0; kills < testkit.Size(2, 4, 200); {
		time.Sleep(rand.N(1500 * time.Millisecond))
		i := rand.IntN(3)
		kind := []string{"worker killed", "worker killed", "worker stopped", "database killed"}[rand.IntN(4)]
		if kinds[kind]++; kind != "worker stopped" {
			kills++
		}
		switch kind {
		case "worker killed":
			w.end(i, os.Kill)
			w.start(i)
		case "worker stopped":
			length := time.Duration(testkit.Size(1, 1, 1+rand.IntN(2)*rand.IntN(40))) * time.Second
			if length > deliveryLease-time.Second {
				longStops++
			}
			_ = w.running[i].Process.Signal(syscall.SIGSTOP)
			time.Sleep(length)
			_ = w.running[i].Process.Signal(syscall.SIGCONT)
		case "database killed":
			db.Kill()
			time.Sleep(rand.N(2 * time.Second))
			if err := db.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	time.Sleep(time.Until(cut))
	for i, c := range w.running {
		_ = c.Process.Signal(syscall.SIGCONT)
		if i < 3 { // a worker that started without a database has ended
			w.end(i, os.Kill)
			w.start(i)
		}
	}
	stop()
	editing.Wait()
	wanted := make(map[string]string)
	for i := range hosts {
		maps.Copy(wanted, n.Titles(i))
	}
	began := time.Now()
	eventually(t, "the receiver has all changes", func() bool { return maps.Equal(received(t, h), wanted) })
	took := time.Since(began)
	for i := range w.running {
		w.end(i, os.Interrupt)
	}
	sites := checkOrder(t, h, longStops)
	st, err := all.Open(t.Context(), dsn, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for i := range hosts {
		site, err := st.Site(t.Context(), n.URL(i), "")
		if err != nil {
			t.Fatal(err)
		}
		v, err := site.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]string)
		for p, err := range v.Scan(t.Context(), millrace.Scan{}) {
			if err != nil {
				t.Fatal(err)
			}
			got[p.URL] = p.Title
		}
		// No number is missing: the newest change of each page has come with its number in the log.
		for c, err := range v.Changes(t.Context(), v.Site().At(0)) {
			if err != nil {
				t.Fatal(err)
			}
			if c.Kind == millrace.KindCheckpoint {
				continue
			}
			if seq, err := v.SeqAt(t.Context(), c.Time); err != nil || sites[n.URL(i)].last[c.URL] != seq {
				t.Errorf("%s is change %d, %v; the last one that came is %d", c.URL, seq, err, sites[n.URL(i)].last[c.URL])
			}
		}
		if !maps.Equal(got, n.Titles(i)) {
			t.Errorf("%s: %v", n.URL(i), got)
		}
	}
	l := n.Log()
	if l.Most > 1 || l.Gap < delay {
		t.Errorf("%+v", l)
	}
	_, events := h.state()
	t.Logf("%v, %d edits, %d events, all changes %s after the last; %+v", kinds, edits, len(events), took.Round(time.Millisecond), l)
}

// received returns the last titles that a receiver got, by URL. It checks that no title was sent
// as two changes.
func received(t *testing.T, h *hook) map[string]string {
	t.Helper()
	_, events := h.state()
	titles, newest, seqs := make(map[string]string), make(map[string]uint64), make(map[string]uint64)
	for _, e := range events {
		key := e.URL + " " + e.Title
		if seq, ok := seqs[key]; ok && seq != e.Seq || e.Change != "added" && e.Change != "updated" {
			t.Errorf("%s %q as %d and %d", e.Change, key, seq, e.Seq)
		}
		if seqs[key] = e.Seq; e.Seq >= newest[e.URL] {
			titles[e.URL], newest[e.URL] = e.Title, e.Seq
		}
	}
	return titles
}

// delivery is what a receiver has received of a site.
type delivery struct {
	latest uint64          // highest number
	lines  map[string]bool // changes
	last   map[string]uint64
}

// checkOrder checks the order of the changes of each site. A change with a lower number than an
// earlier one must be a repetition of the same bytes, as after a kill between a delivery and its
// record in the store. A worker that was stopped until another one had its lease may also send one
// old message, so late such messages are accepted.
func checkOrder(t *testing.T, h *hook, late int) map[string]*delivery {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	sites, bodies := make(map[string]*delivery), make(map[string]string)
	for _, message := range h.posted {
		if body, again := bodies[message[0]]; again && body != message[1] {
			t.Errorf("two messages %s:\n%s\n%s", message[0], body, message[1])
		}
		bodies[message[0]] = message[1]
		var m agent.Message
		if err := json.Unmarshal([]byte(message[1]), &m); err != nil {
			t.Fatal(err)
		}
		d := sites[m.Data.Site]
		if d == nil {
			d = &delivery{lines: make(map[string]bool), last: make(map[string]uint64)}
			sites[m.Data.Site] = d
		}
		old, before := "", uint64(0)
		for _, line := range m.Data.Changes {
			var e outbox.Event
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatal(err)
			}
			if e.Seq < before {
				t.Errorf("%d after %d in one message: %s", e.Seq, before, message[1])
			}
			if before = e.Seq; e.Seq < d.latest && !d.lines[string(line)] {
				old = string(line)
			}
			d.lines[string(line)], d.last[e.URL] = true, max(d.last[e.URL], e.Seq)
		}
		if d.latest = max(d.latest, before); old == "" {
			continue
		}
		if late--; late < 0 {
			t.Errorf("after %d of %s: %s", d.latest, m.Data.Site, old)
		}
	}
	return sites
}
