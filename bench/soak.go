package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
)

// soaking contains the settings of a soak test.
type soaking struct {
	duration time.Duration
	load     int // number of busy processes that compete with the server
}

const (
	soakPages   = 5_000
	soakClients = 50
	soakPause   = time.Minute // average pause of a client between two pulls
)

// soak edits a page a second while clients keep mirrors and other processes are busy. It measures
// the delay of each edit in every protocol, and whether memory and files still grow in the second
// half. The server and the busy processes compete for the processors at the same niceness. The
// clients and the measurement have a higher priority, because in reality they run on other machines.
func (b *bench) soak(ctx context.Context, o soaking) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64)) // the clients are in this process
	b.nice = "10"
	defer func() { b.nice = "0" }()
	e, err := b.startEditing(ctx, soakPages)
	if err != nil {
		return err
	}
	defer e.close()
	if err := rested(ctx, e.pid); err != nil { // wait until the first snapshots exist
		return err
	}
	clients, err := soakMirrors(ctx, e.url)
	if err != nil {
		return err
	}
	for range o.load {
		c := exec.CommandContext(ctx, "nice", "-n", b.nice, "sh", "-c", "while :; do :; done")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			return err
		}
		defer func() { cancel(); _ = c.Wait() }()
	}
	var others sync.WaitGroup
	for i, c := range clients {
		others.Go(func() { c.run(ctx, rand.New(rand.NewPCG(11, uint64(i)))) })
	}
	var sizes []soakSizes
	others.Go(func() {
		for every := max(o.duration/120, time.Second); ; rest(ctx, every) {
			s, err := e.sizes()
			if err != nil || ctx.Err() != nil {
				return // the server has exited
			}
			sizes = append(sizes, s)
		}
	})
	lags, err := e.everySecond(ctx, int(o.duration/time.Second), time.Second/2)
	cancel()
	others.Wait()
	if err != nil {
		return err
	}
	what := fmt.Sprintf("soak of %s, %d pages, an edit a second, %d clients, %d busy processes", o.duration, soakPages, soakClients, o.load)
	const limit = 10 * time.Second
	b.add(row{
		what: what + ": save to visible in every protocol, p99", limit: limit.String(),
		ours:  fmt.Sprintf("%s (p50 %s, the longest %s; most often the last: %s)", short(lags.at(0.99)), short(lags.at(0.5)), short(lags.at(1)), lags.last()),
		ratio: fmt.Sprintf("%.2f", lags.at(0.99).Seconds()/limit.Seconds()), reach: "at most 1", good: lags.at(0.99) <= limit,
	})
	for _, kind := range slices.Sorted(maps.Keys(lags.kinds)) {
		l := lags.kinds[kind]
		b.add(row{what: what + ": save to visible in " + kind, ours: fmt.Sprintf("p50 %s, p99 %s", short(l.at(0.5)), short(l.at(0.99)))})
	}
	for i, name := range []string{"resident memory in MB", "open files", "files of editions", "MB of editions", "MB of the store"} {
		var first, second float64
		for j, s := range sizes {
			if j < len(sizes)/2 {
				first = max(first, s[i])
			} else {
				second = max(second, s[i])
			}
		}
		b.add(row{
			what: what + ": maximum of " + name + " in the second half", limit: fmt.Sprintf("%.4g (first half)", first),
			ours: fmt.Sprintf("%.4g", second), ratio: fmt.Sprintf("%.2f", second/first), reach: "at most 1.1", good: second <= 1.1*first,
		})
	}
	pulls, failed := 0, 0
	for _, c := range clients {
		pulls, failed = pulls+c.pulls, failed+c.failed
	}
	b.add(row{what: what + ": pulls of the clients", limit: "0 failed", ours: fmt.Sprintf("%d, %d failed", pulls, failed), ratio: fmt.Sprint(failed), reach: "0", good: failed == 0})
	return nil
}

// soakSizes contains the resident memory in MB, the numbers of open files and of artifacts, and
// the sizes of the artifacts and of the store in MB.
type soakSizes [5]float64

func (e *editing) sizes() (s soakSizes, err error) {
	if s[0], err = residentMB(e.pid); err != nil {
		return s, err
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", e.pid))
	if err != nil {
		return s, err
	}
	s[1] = float64(len(open))
	err = filepath.WalkDir(e.file+"-files", func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the file was deleted in the meantime
		}
		if err == nil && !d.IsDir() {
			s[2]++
		}
		return err
	})
	if err != nil {
		return s, err
	}
	n, err := folderSize(e.file + "-files")
	s[3] = float64(n) / (1 << 20)
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(e.file + suffix); err == nil {
			s[4] += float64(info.Size()) / (1 << 20)
		}
	}
	return s, err
}

// soakClient is the sink of a mirror. It stores no content.
type soakClient struct {
	p             protocol.Protocol
	source        millrace.Source
	pulls, failed int

	mu     sync.Mutex
	cursor millrace.Cursor
	refs   map[string]millrace.Ref
}

// soakMirrors returns soakClients complete mirrors, in turn for each protocol that the site publishes.
func soakMirrors(ctx context.Context, url string) (out []*soakClient, _ error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: soakClients}}
	for _, p := range all.Protocols() {
		c := &soakClient{p: p, source: p.NewReader(client, url, nil), refs: make(map[string]millrace.Ref)}
		switch err := c.pull(ctx); {
		case err == nil:
			out = append(out, c)
		case !errors.Is(err, millrace.ErrNotFound): // not all protocols are published by default
			return nil, fmt.Errorf("first pull in %s: %w", p.Name, err)
		}
	}
	for i := 0; len(out) < soakClients; i++ {
		first := out[i]
		out = append(out, &soakClient{p: first.p, source: first.p.NewReader(client, url, nil), cursor: first.cursor, refs: maps.Clone(first.refs)})
	}
	return out, nil
}

func (c *soakClient) pull(ctx context.Context) error {
	_, err := mirror.Sync(ctx, c.p.Name, c.source, c, nil)
	return err
}

// run pulls until the context ends.
func (c *soakClient) run(ctx context.Context, rng *rand.Rand) {
	for rest(ctx, time.Duration(rng.Int64N(2*int64(soakPause)))); ctx.Err() == nil; rest(ctx, soakPause/2+time.Duration(rng.Int64N(int64(soakPause)))) {
		switch err := c.pull(ctx); {
		case ctx.Err() != nil:
		case err != nil:
			fmt.Fprintln(os.Stderr, "soak: pull in", c.p.Name, "failed:", err)
			c.failed++
			fallthrough
		default:
			c.pulls++
		}
	}
}

// Apply implements [millrace.Sink].
func (c *soakClient) Apply(_ context.Context, _ string, batch []millrace.Change) (counts millrace.Counts, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range batch {
		switch x.Kind {
		case millrace.Put:
			if x.Page != nil && x.Page.Version != "" {
				x.Version = x.Page.Version
			}
			c.refs[x.URL] = x.Ref
			counts.Updated++
		case millrace.Delete:
			delete(c.refs, x.URL)
			counts.Deleted++
		case millrace.KindCheckpoint:
			c.cursor = x.Checkpoint.Cursor
		}
	}
	return counts, nil
}

// Cursor implements [millrace.SyncState].
func (c *soakClient) Cursor(ctx context.Context, _ string) (millrace.Cursor, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cursor, ctx.Err()
}

// KnownRefs implements [millrace.SyncState].
func (c *soakClient) KnownRefs(_ context.Context, _ string, urls ...string) iter.Seq2[millrace.Ref, error] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(urls) == 0 {
		urls = slices.Sorted(maps.Keys(c.refs))
	}
	var known []millrace.Ref
	for _, u := range urls {
		if ref, ok := c.refs[u]; ok {
			known = append(known, ref)
		}
	}
	return func(yield func(millrace.Ref, error) bool) {
		for _, ref := range known {
			if !yield(ref, nil) {
				return
			}
		}
	}
}
