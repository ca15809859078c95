package simulation

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

const (
	host     = "site.example"
	base     = "http://" + host + "/"
	siteName = "site"
)

// world is the state of one run.
type world struct {
	seed      uint64
	dir       string
	broken    broken
	protocols []protocol.Protocol
	items     int // maximum entries of a list before it is split
	replicas  int
	server    store.Store // nil = the store is a file
	steady    bool        // there are no faults except time
	skews     []*skew     // of the clocks of the replicas and of the store
	saves     saves
	ready     atomic.Pointer[time.Time] // time since which every replica has had an edition
	clockSet  atomic.Pointer[time.Time] // when a clock was set

	ctx      context.Context
	stop     context.CancelFunc
	start    time.Time
	settling atomic.Bool    // no more faults and changes
	actors   sync.WaitGroup // clients and faults
	procs    sync.WaitGroup // processes

	origin  *origin
	api     *api
	net     *network
	clients []*client
	oracle  oracle

	logMu      sync.Mutex // guards events and violations
	events     []string
	violations []string
	lags       map[string]time.Duration // the longest time from a save to its visibility

	outageMu sync.Mutex // guards outages
	outages  []outage   // of the server

	mu       sync.Mutex // guards the rest; held while an edition is published
	path     string     // of the store's file
	crashes  int        // number of power failures of the machine so far
	power    context.Context
	off      context.CancelFunc
	conf     int // generation of the configuration
	lives    map[string]*process
	leftOpen []io.Closer // files that killed processes have left open

	countdown atomic.Int64 // tag writes until the power fails; negative = never
}

func newWorld(ctx context.Context, dir string, seed uint64, b broken) *world {
	w := &world{
		seed: seed, dir: dir, broken: b, replicas: 2, protocols: all.Protocols(), start: time.Now(),
		path: filepath.Join(dir, "store-0.db"), lives: make(map[string]*process), lags: make(map[string]time.Duration),
	}
	w.countdown.Store(-1)
	w.steady = seed%5 == 2
	if seed%3 == 0 {
		w.replicas = 3
	}
	w.initSkew()
	if seed%3 == 0 {
		w.server = w.newServer()
	}
	if seed%4 == 3 {
		w.items = 12 // several lists
	}
	w.ctx, w.stop = context.WithCancel(ctx)
	w.power, w.off = context.WithCancel(w.ctx)
	w.origin = newOrigin(w.rand("origin"))
	w.api = newAPI(w.rand("api"))
	w.net = newNetwork(w)
	w.oracle.init(w)
	for _, p := range w.protocols {
		w.clients = append(w.clients, newClient(w, p, &memorySink{}), newClient(w, p, &fileSink{w: w, proto: p.Name}))
	}
	return w
}

// end stops everything, so that no goroutine remains.
func (w *world) end() {
	w.stop()
	w.actors.Wait()
	w.procs.Wait()
	w.net.close()
	for _, c := range w.clients {
		c.close()
	}
	for _, c := range w.leftOpen {
		_ = c.Close()
	}
	time.Sleep(time.Minute) // so that the servers drop closed connections
}

// rand returns a random source that depends only on the seed and a name.
func (w *world) rand(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name)
	return rand.New(&locked{src: rand.NewPCG(w.seed, h.Sum64())})
}

// locked is a random source for concurrent use.
type locked struct {
	mu  sync.Mutex
	src *rand.PCG
}

// Uint64 returns the next number.
func (l *locked) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.src.Uint64()
}

// chance returns true with probability p. It always returns false after faults and changes have
// ended, and in runs without faults except time.
func (w *world) chance(rng *rand.Rand, p float64) bool {
	return rng.Float64() < p && !w.settling.Load() && !w.steady
}

func between(rng *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(rng.Int64N(int64(to-from)))
}

const maxEvents = 100

func (w *world) logf(format string, args ...any) {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	if len(w.events) == 4*maxEvents {
		w.events = append(w.events[:0], w.events[3*maxEvents:]...)
	}
	w.events = append(w.events, fmt.Sprintf("%10.3f %s", time.Since(w.start).Seconds(), fmt.Sprintf(format, args...)))
}

// fail reports a violated invariant and ends the run.
func (w *world) fail(format string, args ...any) {
	w.logf("VIOLATION "+format, args...)
	w.logMu.Lock()
	defer w.logMu.Unlock()
	w.violations = append(w.violations, fmt.Sprintf("after %s: ", time.Since(w.start).Round(time.Millisecond))+fmt.Sprintf(format, args...))
	w.stop()
}

func (w *world) lastEvents() string {
	return strings.Join(w.events[max(0, len(w.events)-maxEvents):], "\n")
}

// Write adds the log lines of the packages to the events.
func (w *world) Write(b []byte) (int, error) {
	w.logf("  %s", strings.TrimSpace(string(b)))
	return len(b), nil
}

func (w *world) logger(who string) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{
		Level: slog.LevelInfo,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		},
	})).With("by", who)
}

// process is one run of a process, until it ends or is killed.
type process struct {
	name    string
	ctx     context.Context
	kill    context.CancelFunc
	conf    int
	crashes int
	path    string
	rng     *rand.Rand
	slow    int // see slowness
	*gate       // nil unless the process serves
}

// spawn keeps a process running: it restarts the process after each end, until run
// returns errDone.
func (w *world) spawn(name string, run func(l *process) error) {
	rng := w.rand(name)
	w.procs.Go(func() {
		for w.ctx.Err() == nil {
			w.mu.Lock()
			l := &process{name: name, conf: w.conf, crashes: w.crashes, path: w.path, rng: rng, slow: slowness[rng.IntN(len(slowness))]}
			l.ctx, l.kill = context.WithCancel(w.power)
			w.lives[name] = l
			w.mu.Unlock()
			w.logf("%s starts with configuration %d, %d times slower than usual", name, l.conf, l.slow)
			err := run(l)
			l.kill()
			w.logf("%s has ended: %v", name, err)
			if errors.Is(err, errDone) {
				return
			}
			w.sleep(between(rng, time.Second, 3*time.Second))
		}
	})
}

var errDone = errors.New("done")

// killOne ends a process like kill -9, as far as a test can.
func (w *world) killOne(name string) {
	w.mu.Lock()
	l := w.lives[name]
	w.mu.Unlock()
	if l != nil {
		w.logf("%s is killed", name)
		l.kill()
	}
}

// open opens the store for a process. It stays open until the run ends, because a
// killed process does not close it either.
func (w *world) open(l *process) (store.Store, store.Site, error) {
	if w.server != nil {
		db := remote{w.server, w, l}
		site, err := db.Site(l.ctx, siteName, base)
		return db, site, err
	}
	db, err := stores.Open(l.ctx, l.path, &store.Options{Now: w.clock().now, Logger: w.logger(l.name)})
	if err != nil {
		return nil, nil, err
	}
	w.mu.Lock()
	w.leftOpen = append(w.leftOpen, db)
	w.mu.Unlock()
	site, err := db.Site(l.ctx, siteName, base)
	return processStore{db, l}, site, err
}

// processStore is the store of a process. After the process was killed, it releases no lease.
type processStore struct {
	store.Store
	l *process
}

func (m processStore) Leases() store.Leases { return processLeases{m.Store.Leases(), m.l} }

type processLeases struct {
	store.Leases
	l *process
}

// Release releases a lease.
func (m processLeases) Release(ctx context.Context, l store.Lease) error {
	if m.l.ctx.Err() != nil {
		return m.l.ctx.Err()
	}
	return m.Leases.Release(ctx, l)
}

// hidden returns the paths that a generation of the configuration hides.
func hidden(conf int) []string {
	return [][]string{{}, {"/h1"}, {"/h2"}, {"/h1", "/h2"}}[conf%4]
}

func (w *world) config(l *process) store.Config {
	c := store.Config{Base: base, Visibility: millrace.Visibility{Exclude: hidden(l.conf)}}
	if w.broken.exposed && l.name == replicaName(1) {
		c.Visibility.Exclude = []string{}
	}
	for _, p := range w.protocols {
		t := p.Tagger
		if inner := t.Conflicts; inner != nil {
			t.Conflicts = func(pagePath string) (before, after []string) {
				w.cutPower(l)
				return inner(pagePath)
			}
		}
		c.Taggers = append(c.Taggers, t)
	}
	return c
}

// cutPower runs in the middle of a transaction, and cuts the power when the countdown reaches
// zero. The files are copied to another machine in their current state, and all processes are
// killed.
func (w *world) cutPower(l *process) {
	if w.countdown.Add(-1) != 0 || w.settling.Load() || !w.mu.TryLock() {
		return
	}
	defer w.mu.Unlock()
	if l.crashes != w.crashes || w.ctx.Err() != nil {
		return
	}
	next := filepath.Join(w.dir, fmt.Sprintf("store-%d.db", w.crashes+1))
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(w.path + suffix)
		if err == nil {
			err = os.WriteFile(next+suffix, b, 0o600)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			w.fail("copying the store: %v", err)
		}
	}
	w.logf("the power fails while %s writes", l.name)
	w.off()
	w.path, w.crashes = next, w.crashes+1
	w.power, w.off = context.WithCancel(w.ctx)
}

// faults kills processes, cuts the power and changes the configuration.
func (w *world) faults() {
	rng := w.rand("chaos")
	for {
		w.sleep(between(rng, 2*time.Second, 12*time.Second))
		if w.settling.Load() || w.ctx.Err() != nil {
			return
		}
		switch p := rng.IntN(10); {
		case p < 3:
			w.killOne(replicaName(rng.IntN(w.replicas)))
		case p < 5:
			w.killOne([]string{"folder writer", "api writer"}[rng.IntN(2)])
		case p < 7 && w.server != nil:
			w.breakOff(rng)
		case p < 7:
			w.countdown.Store(1 + rng.Int64N(20))
		default:
			w.changeConfig(rng)
		}
	}
}

// changeConfig changes the configuration: it restarts the processes one after the other with the
// new one.
func (w *world) changeConfig(rng *rand.Rand) {
	w.mu.Lock()
	w.conf++
	w.logf("configuration %d hides %v", w.conf, hidden(w.conf))
	var names []string
	for name := range w.lives {
		names = append(names, name)
	}
	w.mu.Unlock()
	sortAndShuffle(rng, names)
	for _, name := range names {
		w.sleep(between(rng, 0, 2*time.Second))
		w.killOne(name)
	}
	w.sleep(5 * time.Second) // until all processes have restarted
}
