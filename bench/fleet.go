package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/internal/daemon"
	"github.com/millrace/millrace/internal/fleetnet"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/all"
)

// fleetShared is the number of hosts in each hundred that share an address.
const fleetShared = 5

// fleetTask is the task of the worker process, which gets it in MILLRACE_BENCH_FLEET.
type fleetTask struct {
	Socket   string // Unix socket of the virtual hosts
	Store    string
	Interval time.Duration
	Parallel int
}

// fleetWorkers runs in the worker process. It prints each change that Watch reports.
func fleetWorkers(text string) error {
	daemon.Memory{Env: os.LookupEnv}.Limit() // as `millrace watch` does
	var t fleetTask
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	st, err := all.Open(ctx, t.Store, nil)
	if err != nil {
		return err
	}
	a, err := agent.New(st, &agent.Options{
		Parallel: t.Parallel,
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", t.Socket)
		},
		Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
			var i int
			_, err := fmt.Sscanf(name, "h%d.example", &i)
			return []netip.Addr{fleetnet.Address(i, fleetShared)}, err
		},
	})
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // blocks until the parent closes the pipe
		stop()
	}()
	out := bufio.NewWriter(os.Stdout)
	for e, err := range a.Watch(ctx, nil, &agent.WatchOptions{MinInterval: t.Interval, MaxInterval: t.Interval, NoListen: true}) {
		if err != nil {
			return err
		}
		changes, err := e.Changes()
		if err != nil {
			return err
		}
		for _, c := range changes {
			fmt.Fprintln(out, c.URL, c.Title)
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return st.Close()
}

// fleetRun is a run of one worker process.
type fleetRun struct {
	hosts    int
	parallel int           // sites that are pulled at once
	interval time.Duration // maximum time between two pulls of a site
	length   time.Duration // duration after the first pull of all sites; 0 = only the first pulls
	net      *fleetnet.Network

	mu     sync.Mutex
	edited map[string]time.Time // time of each edit, by the line that the worker process prints
	newest map[string]string    // line of the last edit of each page, by URL
	seen   map[string]int       // how often each line was printed
	delays []time.Duration      // delays until an edit was printed
}

// fleet measures many sites that one process keeps fresh. The default has fewer sites and a shorter
// interval than a large run, with the same number of pulls per second.
func (b *bench) fleet(ctx context.Context, large, short bool) error {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64)) // the hosts are in this process
	if err := b.fresh(ctx, &fleetRun{hosts: 1000, parallel: 50, interval: time.Hour}); err != nil {
		return err
	}
	r := &fleetRun{hosts: 5000, parallel: 400, interval: 3 * time.Minute, length: 5 * time.Minute}
	switch {
	case short:
		r = &fleetRun{hosts: 1000, parallel: 400, interval: time.Minute, length: 2 * time.Minute}
	case large:
		r = &fleetRun{hosts: 100_000, parallel: 400, interval: time.Hour, length: time.Hour}
	}
	return b.fresh(ctx, r)
}

func (b *bench) fresh(ctx context.Context, r *fleetRun) error {
	r.net, r.edited, r.newest, r.seen = fleetnet.New(r.hosts, fleetShared, fleetnet.Name), make(map[string]time.Time), make(map[string]string), make(map[string]int)
	defer r.net.Close()
	socket := filepath.Join(b.dir, fmt.Sprint("hosts", r.parallel))
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: r.net, ReadHeaderTimeout: time.Minute}
	defer func() { _ = srv.Close() }()
	go func() { _ = srv.Serve(l) }()
	file := filepath.Join(b.dir, fmt.Sprintf("fleet%d.db", r.parallel))
	st, err := all.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }()
	began := time.Now()
	_, _, err = st.Fleet().Put(ctx, func(yield func(store.FleetSite, error) bool) {
		for i := range r.hosts {
			if !yield(store.FleetSite{URL: r.net.URL(i)}, nil) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	put := time.Since(began)
	c, err := child(ctx, "MILLRACE_BENCH_FLEET", fleetTask{socket, file, r.interval * 9 / 10, r.parallel}) // a tenth of the interval is added at random
	if err != nil {
		return err
	}
	defer c.end()
	got := make(chan error, 1)
	go func() { got <- r.receive(c.out) }()

	began = time.Now()
	for fresh := false; !fresh; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-got:
			return cmp.Or(err, errors.New("the workers have ended"))
		case <-time.After(2 * time.Second):
		}
		stats, err := st.Fleet().Stats(ctx, "")
		if err != nil {
			return err
		}
		fresh = stats.New == 0
	}
	first := time.Since(began)
	spent, err := processorOf(c.pid())
	if err != nil {
		return err
	}
	b.add(row{
		what: fmt.Sprintf("%d virtual hosts of %d pages: %.0f s to add them, then the first pull of all, %d at once", r.hosts, fleetnet.Pages, put.Seconds(), r.parallel),
		ours: fmt.Sprintf("%.0f s, %.0f sites a second; %.1f ms of processor time each", first.Seconds(), float64(r.hosts)/first.Seconds(), spent.Seconds()*1000/float64(r.hosts)),
	})
	if r.length > 0 {
		return b.steady(ctx, r, st, c, got)
	}
	peak, err := statusMB(c.pid(), "VmHWM:")
	if err != nil {
		return err
	}
	c.end()
	b.add(row{
		what:  fmt.Sprintf("%d sites at once: peak memory of the worker process, during the first pulls of %d virtual hosts", r.parallel, r.hosts),
		limit: "200 MB", ours: fmt.Sprintf("%.0f MB", peak), ratio: fmt.Sprintf("%.2f", peak/200), reach: "at most 1", good: peak <= 200,
	})
	return <-got
}

// steady measures the time after the first pulls. Pages change for the length of the run. Then the
// workers have one more interval, after which the receiver must have all edits.
func (b *bench) steady(ctx context.Context, r *fleetRun, st store.Store, c *childProcess, got <-chan error) error {
	// The sites that were pulled first may be due again before the last sites are pulled at all.
	var worst store.FleetStats
	begun, before := time.Now(), r.net.Log().Requests
	spent, err := processorOf(c.pid())
	if err != nil {
		return err
	}
	every := r.interval / time.Duration(r.hosts/10) // in each interval, one edit for every ten sites
	edits, stats := time.NewTicker(every), time.NewTicker(10*time.Second)
	defer edits.Stop()
	defer stats.Stop()
	var length, used time.Duration
	for end := time.After(r.length); end != nil; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-got:
			return cmp.Or(err, errors.New("the workers have ended"))
		case <-edits.C:
			r.edit()
		case <-stats.C:
			s, err := st.Fleet().Stats(ctx, "")
			if err != nil {
				return err
			}
			for i := range s.Lag {
				worst.Lag[i] = max(worst.Lag[i], s.Lag[i])
			}
			worst.Due = max(worst.Due, s.Due)
		case <-end:
			if end = nil; length > 0 {
				break
			}
			after, err := processorOf(c.pid())
			if err != nil {
				return err
			}
			length, used, end = time.Since(begun), after-spent, time.After(r.interval)
			edits.Stop()
		}
	}
	peak, err := statusMB(c.pid(), "VmHWM:")
	if err != nil {
		return err
	}
	l := r.net.Log()
	hosts, pulls := fmt.Sprintf("%d virtual hosts every %s", r.hosts, r.interval), float64(r.hosts)/r.interval.Seconds()
	c.end()
	if err := <-got; err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	lost, doubled := r.count()
	slices.Sort(r.delays)
	at := func(p int) float64 { return r.delays[(len(r.delays)-1)*p/100].Seconds() }
	lag := worst.Lag
	b.add(row{
		what:  fmt.Sprintf("%s, %.0f pulls a second, over %.0f min: how long sites have been due, maximum of all samples, at 50, 90, 99 and 100 %%", hosts, pulls, length.Minutes()),
		limit: "1 % of the interval", ours: fmt.Sprintf("%.1f s, %.1f s, %.1f s, %.1f s; %.2f cores", lag[0].Seconds(), lag[1].Seconds(), lag[2].Seconds(), lag[3].Seconds(), used.Seconds()/length.Seconds()),
		ratio: fmt.Sprintf("%.3f", lag[3].Seconds()/r.interval.Seconds()), reach: "at most 0.01", good: lag[3] <= r.interval/100,
	})
	b.add(row{
		what:  fmt.Sprintf("%s: time from an edit until the receiver has it, at 50, 90, 99 and 100 %% of %d edits; %d lost, %d received twice", hosts, len(r.delays), lost, doubled),
		limit: r.interval.String(), ours: fmt.Sprintf("%.0f s, %.0f s, %.0f s, %.0f s", at(50), at(90), at(99), at(100)),
		ratio: fmt.Sprintf("%.2f", at(100)/r.interval.Seconds()), reach: "at most 1", good: at(100) <= r.interval.Seconds() && lost+doubled == 0,
	})
	b.add(row{
		what:  fmt.Sprintf("%s: peak memory of the worker process, including the first pulls", hosts),
		limit: "300 MB", ours: fmt.Sprintf("%.0f MB", peak), ratio: fmt.Sprintf("%.2f", peak/300), reach: "at most 1", good: peak <= 300,
	})
	b.add(row{
		what:  fmt.Sprintf("%s: requests to one machine at the same time, and the shortest time between two, from the logs of the machines (%d requests, %d after the first pulls)", hosts, l.Requests, l.Requests-before),
		limit: "1, 250 ms", ours: fmt.Sprintf("%d, %.1f ms", l.Most, l.Gap.Seconds()*1000), ratio: "", reach: "at most 1, at least 250 ms", good: l.Most == 1 && l.Gap >= 250*time.Millisecond,
	})
	return nil
}

// edit changes a page of a random host.
func (r *fleetRun) edit() {
	i, page := rand.IntN(r.hosts), rand.IntN(fleetnet.Pages)
	r.mu.Lock()
	defer r.mu.Unlock()
	url, title := r.net.Edit(i, page)
	if before := r.newest[url]; r.seen[before] == 0 {
		delete(r.edited, before) // a newer edit replaces it before it is printed
	}
	r.newest[url] = url + " " + title
	r.edited[r.newest[url]] = time.Now()
}

// receive records the changes that the worker process prints.
func (r *fleetRun) receive(out io.Reader) error {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		r.mu.Lock()
		if at, ok := r.edited[lines.Text()]; ok && r.seen[lines.Text()] == 0 {
			r.delays = append(r.delays, time.Since(at))
		}
		r.seen[lines.Text()]++
		r.mu.Unlock()
	}
	return lines.Err()
}

// count returns the edits that the receiver lacks, and those that it got twice.
func (r *fleetRun) count() (lost, doubled int) {
	for line := range r.edited {
		if r.seen[line] == 0 {
			lost++
		}
	}
	for _, n := range r.seen {
		doubled += n - 1
	}
	return lost, doubled
}

// childProcess is a process that runs a task of this program.
type childProcess struct {
	cmd  *exec.Cmd
	in   io.Closer
	out  io.Reader
	once sync.Once
}

// child starts this program with a task in an environment variable.
func child(ctx context.Context, name string, task any) (*childProcess, error) {
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self)
	c.Env = append(os.Environ(), name+"="+string(text))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &childProcess{cmd: c, in: in, out: out}, c.Start()
}

func (c *childProcess) pid() int { return c.cmd.Process.Pid }

// end closes the input of the process. The process then completes its work and closes its output.
func (c *childProcess) end() { c.once.Do(func() { _ = c.in.Close() }) }
