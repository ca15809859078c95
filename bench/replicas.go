package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/pgcluster"
	stores "github.com/millrace/millrace/store/all"
)

// replicas measures several processes over one store in PostgreSQL and one folder of artifacts:
// the delay after which followers serve a new edition, and the memory of a follower of n pages.
func (b *bench) replicas(ctx context.Context, n int) (err error) {
	if err := os.Chmod(b.dir, 0o711); err != nil { //nolint:gosec // the server runs as another user
		return err
	}
	c, err := pgcluster.New(ctx, b.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for _, part := range []struct {
		pages int
		run   func(context.Context, *replicaSet) error
	}{{10_000, b.followers}, {n, b.replicaMemory}} {
		r, err := b.startReplicas(ctx, c, part.pages)
		if err != nil {
			return err
		}
		err = part.run(ctx, r)
		r.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// replicaSet is a site that the bench edits. Its server is the builder.
type replicaSet struct {
	editing
	bench *bench
	name  string // name of the database, and prefix of folder names
}

// startReplicas fills a database with n pages and starts the builder.
func (b *bench) startReplicas(ctx context.Context, c *pgcluster.Cluster, n int) (r *replicaSet, err error) {
	r = &replicaSet{bench: b, name: fmt.Sprint("replicas", n)}
	r.pages = n
	if r.file, err = c.Create(ctx, r.name); err != nil {
		return nil, err
	}
	if err = fillStore(ctx, r.file, n); err != nil {
		return nil, err
	}
	if r.server, err = r.start(ctx, "builder"); err != nil {
		return nil, err
	}
	if r.db, err = stores.Open(ctx, r.file, nil); err == nil {
		r.site, err = r.db.Site(ctx, benchSite, benchSite)
	}
	if err != nil {
		r.close()
	}
	return r, err
}

// start starts a replica with its own state folder. The first replica that starts is the builder.
func (r *replicaSet) start(ctx context.Context, name string) (*server, error) {
	own := *r.bench
	own.dir = filepath.Join(own.dir, r.name+"-"+name)
	if err := os.Mkdir(own.dir, 0o700); err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	_ = l.Close()
	s, err := own.startServer(ctx, r.file, "--artifacts", filepath.Join(r.bench.dir, r.name+"-artifacts"), "--base-url", "http://replicas.example/", "--rehost", "--listen", address)
	if err == nil {
		s.url = "http://" + address + "/"
	}
	return s, err
}

// The duration of the followers measurement, and the interval between its edits.
const (
	followingTime = 2 * time.Minute
	betweenEdits  = 300 * time.Millisecond
)

// followers measures the delay after which two followers serve a new edition.
func (b *bench) followers(ctx context.Context, r *replicaSet) error {
	servers := []*server{r.server}
	for _, name := range []string{"first", "second"} {
		s, err := r.start(ctx, name)
		if err != nil {
			return err
		}
		defer s.stop()
		servers = append(servers, s)
	}
	for _, s := range servers {
		if _, err := quiet(ctx, s.pid); err != nil {
			return err
		}
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var watchers, edits sync.WaitGroup
	editions := make([]map[uint64]time.Time, len(servers)) // when each server first served each sequence number
	var failed [3]error
	for i, s := range servers {
		editions[i] = make(map[uint64]time.Time)
		watchers.Go(func() { failed[i] = watchEditions(watching, s.url, editions[i]) })
	}
	var mu sync.Mutex
	var afterCommit []time.Duration
	var errs []error
	tick := time.NewTicker(betweenEdits)
	defer tick.Stop()
	for range followingTime / betweenEdits {
		<-tick.C
		page, edited, text := r.next()
		if err := r.commit(ctx, edited); err != nil {
			return err
		}
		committed := time.Now()
		edits.Go(func() {
			err := visible(ctx, fmt.Sprintf("%sp/%d/llm.json", servers[1].url, page), text, 100*time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			errs, afterCommit = append(errs, err), append(afterCommit, time.Since(committed))
		})
	}
	edits.Wait()
	rest(ctx, 3*time.Second) // give the second follower time to load the last edition
	stop()
	watchers.Wait()
	if err := errors.Join(append(errs, failed[:]...)...); err != nil {
		return err
	}
	var afterBuilder []time.Duration
	for _, follower := range editions[1:] {
		for seq, built := range editions[0] {
			if at := firstSince(follower, seq); !at.IsZero() {
				afterBuilder = append(afterBuilder, max(0, at.Sub(built)))
			}
		}
	}
	slices.Sort(afterBuilder)
	slices.Sort(afterCommit)
	const limit = 2 * time.Second
	late := p99(afterBuilder)
	b.add(row{
		what: fmt.Sprintf("delay of a follower behind the builder, p99; two followers over PostgreSQL, %d pages, %d edits (one every %v), %d editions", r.pages, followingTime/betweenEdits, betweenEdits, len(editions[0])), limit: limit.String(),
		ours:  fmt.Sprintf("%s (p50 %s); after the commit, %s (p50 %s)", short(late), short(p50(afterBuilder)), short(p99(afterCommit)), short(p50(afterCommit))),
		ratio: fmt.Sprintf("%.2f", late.Seconds()/limit.Seconds()), reach: "below 1", good: late < limit,
	})
	return nil
}

var editionSequence = regexp.MustCompile(`(?m)^millrace_edition_sequence (\d+)$`)

// watchEditions records when a server first serves each sequence number after the current one,
// until the context ends.
func watchEditions(ctx context.Context, url string, seen map[uint64]time.Time) error {
	for last := uint64(0); ctx.Err() == nil; rest(ctx, 20*time.Millisecond) {
		_, body, err := fetch(ctx, url+"metrics")
		if err != nil && ctx.Err() == nil {
			return err
		}
		m := editionSequence.FindSubmatch(body)
		if m == nil {
			continue
		}
		seq, err := strconv.ParseUint(string(m[1]), 10, 64)
		if err != nil {
			return err
		}
		if last != 0 && seq != last {
			seen[seq] = time.Now()
		}
		last = seq
	}
	return nil
}

// firstSince returns when a sequence number or a later one was first seen, or the zero time if none
// was.
func firstSince(seen map[uint64]time.Time, seq uint64) (first time.Time) {
	for n, at := range seen {
		if n >= seq && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// replicaMemory measures the memory of a follower: while it serves documents of each kind, while it
// follows ten editions, and while it serves documents with its search index built.
func (b *bench) replicaMemory(ctx context.Context, r *replicaSet) error {
	s, err := r.start(ctx, "follower")
	if err != nil {
		return err
	}
	defer s.stop()
	b.add(row{
		what: fmt.Sprintf("a follower of %d pages over PostgreSQL is ready", r.pages),
		ours: fmt.Sprintf("after %s, %s of processor time (the builder without documents: %s, %s)", short(s.ready), short(s.spent), short(r.ready), short(r.spent)),
	})
	const requests = 40_000
	for _, part := range []struct {
		what string
		run  func() error
	}{
		{fmt.Sprintf("from its start, with %d requests for documents of every kind and all lists, while the search index is built", requests), func() error {
			return askEverything(ctx, s.url, r.pages, requests)
		}},
		{"while it follows ten editions", func() error {
			for range 10 {
				page, edited, text := r.next()
				if err := r.commit(ctx, edited); err != nil {
					return err
				}
				if err := visible(ctx, fmt.Sprintf("%sp/%d/llm.json", s.url, page), text, 50*time.Millisecond); err != nil {
					return err
				}
			}
			return nil
		}},
		{fmt.Sprintf("with the search index built, with %d requests for documents of every kind and all lists", requests), func() error {
			if err := searchable(ctx, s.url); err != nil {
				return err
			}
			if err := rested(ctx, s.pid); err != nil {
				return err
			}
			if err := resetPeak(s.pid); err != nil {
				return err
			}
			return askEverything(ctx, s.url, r.pages, requests)
		}},
	} {
		if err := part.run(); err != nil {
			return err
		}
		peak, err := statusMB(s.pid, "VmHWM:")
		if err != nil {
			return err
		}
		rss, err := residentMB(s.pid)
		if err != nil {
			return err
		}
		const limit = 200
		b.add(row{
			what: fmt.Sprintf("peak memory of a follower of %d pages over PostgreSQL, %s", r.pages, part.what), limit: fmt.Sprintf("%d MB", limit),
			ours: fmt.Sprintf("%.0f MB (%.0f MB afterwards)", peak, rss), ratio: fmt.Sprintf("%.2f", peak/limit), reach: "at most 1", good: peak <= limit,
		})
		if err := resetPeak(s.pid); err != nil {
			return err
		}
	}
	return nil
}

// resetPeak resets the peak memory of a process to its current memory.
func resetPeak(pid int) error {
	return os.WriteFile("/proc/"+strconv.Itoa(pid)+"/clear_refs", []byte("5"), 0)
}

// searchable waits until a server's search index is built.
func searchable(ctx context.Context, url string) error {
	for {
		_, body, err := fetch(ctx, url+"readyz")
		if err != nil || !strings.Contains(string(body), "index") {
			return err
		}
		rest(ctx, time.Second)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// askEverything requests every list, and random documents of pages in several protocols. It requests
// each of them twice, the second time with its ETag.
func askEverything(ctx context.Context, url string, pages, requests int) error {
	const workers = 16
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: workers, DisableCompression: true}}
	defer client.CloseIdleConnections()
	lists, err := listPaths(ctx, url)
	if err != nil {
		return err
	}
	header, _, err := fetch(ctx, url)
	if err != nil {
		return err
	}
	for _, m := range shardLink.FindAllStringSubmatch(strings.Join(header.Values("Link"), ", "), -1) {
		lists = append(lists, strings.TrimPrefix(m[1], "/"))
	}
	lists = append(lists, "llms.txt", "sitemap.xml", "feed.atom", "feed.json")
	asked := make(chan error)
	for w := range workers {
		go func() {
			rng := rand.New(rand.NewPCG(42, uint64(w)))
			var err error
			for i := 0; err == nil && i < requests/workers/2; i++ {
				page, coding := rng.IntN(pages), http.Header{"Accept-Encoding": {[]string{"identity", "gzip", "br", "zstd"}[rng.IntN(4)]}}
				paths := []string{"p/%d/llm.json", "p/%d/llm.json", "p/%d/llm/", "p/%d/index.md", "openfeeder?url=%%2Fp%%2F%d%%2F", "openfeeder?page=%d"}
				path := paths[rng.IntN(len(paths))]
				if strings.HasSuffix(path, "page=%d") {
					page = page%1000 + 1 // the first request for a later page reads all pages before it
				}
				err = askTwice(ctx, client, url+fmt.Sprintf(path, page), coding)
			}
			for i := w; err == nil && i < len(lists); i += workers {
				err = askTwice(ctx, client, url+lists[i], http.Header{"Accept-Encoding": {"gzip"}})
			}
			asked <- err
		}()
	}
	var errs []error
	for range workers {
		errs = append(errs, <-asked)
	}
	return errors.Join(errs...)
}

// askTwice requests a document, and then again with its ETag.
func askTwice(ctx context.Context, client *http.Client, url string, header http.Header) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header = header
	for _, want := range []int{http.StatusOK, http.StatusNotModified} {
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		if _, err := drain(resp); err != nil {
			return err
		}
		if resp.StatusCode != want {
			return fmt.Errorf("%s: %s, not %d", url, resp.Status, want)
		}
		header.Set("If-None-Match", resp.Header.Get("Etag"))
	}
	return nil
}
