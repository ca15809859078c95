//go:build unix

package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fleetnet"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store/all"
)

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
// many hosts change. The receiver must not miss a change, or get one change twice. No host may get
// two requests at the same time, or a request before its delay has passed.
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
	eventually(t, "the receiver has all pages", func() bool { return len(received(t, h, false)) == hosts*fleetnet.Pages })

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
	kinds := make(map[string]int)
	for range testkit.Size(3, 5, 200) {
		time.Sleep(rand.N(1500 * time.Millisecond))
		i := rand.IntN(len(w.running))
		kind := []string{"worker killed", "worker killed", "worker stopped", "database killed"}[rand.IntN(4)]
		kinds[kind]++
		switch kind {
		case "worker killed":
			w.end(i, os.Kill)
			w.start(i)
		case "worker stopped":
			_ = w.running[i].Process.Signal(syscall.SIGSTOP)
			time.Sleep(time.Duration(testkit.Size(1, 1, 1+rand.IntN(2)*rand.IntN(40))) * time.Second) // some lose their leases
			_ = w.running[i].Process.Signal(syscall.SIGCONT)
		case "database killed":
			db.Kill()
			time.Sleep(rand.N(2 * time.Second))
			if err := db.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop()
	editing.Wait()
	wanted := make(map[string]string)
	for i := range hosts {
		maps.Copy(wanted, n.Titles(i))
	}
	began := time.Now()
	eventually(t, "the receiver has all changes", func() bool { return maps.Equal(received(t, h, false), wanted) })
	took := time.Since(began)
	for i := range w.running {
		w.end(i, os.Interrupt)
	}
	received(t, h, kinds["worker stopped"] == 0)
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
// as two changes. If ordered is set, it also checks that the changes of each site first arrived in
// order.
func received(t *testing.T, h *hook, ordered bool) map[string]string {
	t.Helper()
	_, events := h.state()
	titles, newest, seqs := make(map[string]string), make(map[string]uint64), make(map[string][]uint64)
	latest := make(map[string]uint64) // by site
	for _, e := range events {
		key := e.URL + " " + e.Title
		again := slices.Contains(seqs[key], e.Seq)
		if !again {
			seqs[key] = append(seqs[key], e.Seq)
		}
		if e.Change != "added" && e.Change != "updated" || len(seqs[key]) > 1 {
			t.Errorf("%q was sent as %d %v", key, e.Seq, seqs[key])
		}
		if ordered && !again && e.Seq < latest[e.Site] {
			t.Errorf("%q was sent as %d after %d", key, e.Seq, latest[e.Site])
		}
		latest[e.Site] = max(latest[e.Site], e.Seq)
		if e.Seq >= newest[e.URL] {
			titles[e.URL], newest[e.URL] = e.Title, e.Seq
		}
	}
	return titles
}
