package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/s3server"
)

// bucketTraffic counts the requests to a bucket and the bytes of their bodies.
type bucketTraffic struct {
	mu             sync.Mutex
	reads, writes  int   // GET requests for existing objects; requests with other methods
	looks          int   // GET requests for absent objects, mostly the log's next object
	received, sent int64 // bytes of request bodies; bytes of response bodies
}

// snapshot returns reads, writes, looks, received and sent.
func (c *bucketTraffic) snapshot() [5]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return [5]int64{int64(c.reads), int64(c.writes), int64(c.looks), c.received, c.sent}
}

// counting returns a proxy for the S3 server at endpoint that counts requests and bytes in c.
func (c *bucketTraffic) counting(endpoint string) (*httptest.Server, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = u.Scheme, u.Host
			r.Out.Host = r.In.Host
		},
		ModifyResponse: func(resp *http.Response) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			switch {
			case resp.Request.Method != http.MethodGet:
				c.writes++
				c.received += max(resp.Request.ContentLength, 0)
			case resp.StatusCode == http.StatusNotFound:
				c.looks++
			default:
				c.reads++
				c.sent += max(resp.ContentLength, 0)
			}
			return nil
		},
	}
	return httptest.NewServer(proxy), nil
}

// s3 compares artifacts in a bucket with artifacts in a folder. The S3 server runs on this machine.
// Each edit changes one page.
func (b *bench) s3(ctx context.Context) (err error) {
	server, err := s3server.New(ctx, b.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if _, err := server.Create(ctx, "bench", ""); err != nil {
		return err
	}
	count := new(bucketTraffic)
	proxy, err := count.counting(server.Endpoint())
	if err != nil {
		return err
	}
	defer proxy.Close()
	b.env = append(b.env, "AWS_ACCESS_KEY_ID="+s3server.Key, "AWS_SECRET_ACCESS_KEY="+s3server.Secret)
	defer func() { b.env = b.env[:len(b.env)-2] }()

	const pages = 10_000
	var sides [2]*editing
	for i, artifacts := range []string{filepath.Join(b.dir, "documents"), "s3://bench/site?endpoint=" + url.QueryEscape(proxy.URL)} {
		own := *b
		own.dir = filepath.Join(b.dir, fmt.Sprint("side-", i))
		if err := os.Mkdir(own.dir, 0o700); err != nil {
			return err
		}
		if sides[i], err = own.startEditing(ctx, pages, "--artifacts", artifacts); err != nil {
			return err
		}
		defer sides[i].close()
		if _, err := quiet(ctx, sides[i].pid); err != nil {
			return err
		}
	}
	first := count.snapshot()
	b.add(row{
		what: fmt.Sprintf("first edition of %d pages into a bucket", pages), limit: fmt.Sprintf("ready after %s (folder)", short(sides[0].ready)),
		ours:  fmt.Sprintf("ready after %s: %d writes of %s, %d reads, %d checks for changes", short(sides[1].ready), first[1], megabytes(first[3]), first[0], first[2]),
		ratio: fmt.Sprintf("%.2f", sides[0].ready.Seconds()/sides[1].ready.Seconds()),
	})
	var delays [2][]float64
	var spent [2][]float64
	var requests [5][]float64
	for round := range b.turns + 1 { // the first edit is not counted
		for i, e := range sides {
			before := count.snapshot()
			delay, cost, err := e.once(ctx)
			if err != nil {
				return err
			}
			if _, err := quiet(ctx, e.pid); err != nil {
				return err
			}
			if round == 0 {
				continue
			}
			delays[i], spent[i] = append(delays[i], delay.Seconds()), append(spent[i], cost.Seconds())
			if i == 1 {
				for k, n := range count.snapshot() {
					requests[k] = append(requests[k], float64(n-before[k]))
				}
			}
		}
	}
	m := func(k int) int64 { return int64(median(requests[k])) }
	b.add(row{
		what: fmt.Sprintf("one edit of %d pages, artifacts in a bucket: commit to visible, median", pages), limit: fmt.Sprintf("%.3g s, %.3g s of processor time (folder)", median(delays[0]), median(spent[0])), ours: fmt.Sprintf("%.3g s, %.3g s", median(delays[1]), median(spent[1])),
		ratio: fmt.Sprintf("%.2f (processor time %.2f)", median(delays[0])/median(delays[1]), median(spent[0])/median(spent[1])),
	})
	b.add(row{
		what: "the same: requests until it is idle, with deferred work", limit: "10 writes",
		ours:  fmt.Sprintf("%d writes of %s (at most %.0f), %d reads, %d checks for changes", m(1), megabytes(m(3)), slices.Max(requests[1]), m(0), m(2)),
		ratio: fmt.Sprintf("%.2f", float64(m(1))/10), reach: "at most 1", good: m(1) <= 10,
	})
	for _, what := range []struct {
		name  string
		paths []string
		reach float64
	}{{"M-URL", murls(pages), 0.95}, {"list of TCT", []string{"llm-pages.json"}, 0.9}} {
		for _, status := range []int{http.StatusOK, http.StatusNotModified} {
			var turns [2]side
			for i, e := range sides {
				q, _, err := b.warm(ctx, e.server, what.paths, http.Header{"Accept-Encoding": {"gzip"}}, status)
				if err != nil {
					return err
				}
				turns[i] = q.of(e.server)
			}
			found, err := duel(ctx, b.turns, turns[0], turns[1])
			if err != nil {
				return err
			}
			b.add(found.row(fmt.Sprintf("%s %d, warm, gzip, %d pages, artifacts in a bucket", what.name, status, pages), "requests", "folder", what.reach))
		}
	}
	return nil
}

// once commits an edit. It returns the time until the edit is visible, and the processor time
// used.
func (e *editing) once(ctx context.Context) (delay, spent time.Duration, err error) {
	page, edited, text := e.next()
	before, err := processorOf(e.pid)
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := e.commit(ctx, edited); err != nil {
		return 0, 0, err
	}
	if err := visible(ctx, fmt.Sprintf("%sp/%d/llm.json", e.url, page), text, 10*time.Millisecond); err != nil {
		return 0, 0, err
	}
	delay = time.Since(start)
	after, err := processorOf(e.pid)
	return delay, after - before, err
}
