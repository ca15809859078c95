package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// memory measures the server's resident memory after 50,000 random requests, first while the
// search index is being built, and again when it is complete.
func (b *bench) memory(ctx context.Context, sizes []int) error {
	first := map[string]float64{}
	for _, n := range sizes {
		file, err := b.fill(ctx, n)
		if err != nil {
			return err
		}
		s, err := b.startServer(ctx, file)
		if err != nil {
			return err
		}
		for _, when := range []string{"while the search index is built", "with the index built"} {
			if err = ask(ctx, s.url, n, 50_000); err != nil {
				break
			}
			var rss float64
			if rss, err = residentMB(s.pid); err != nil {
				break
			}
			r := row{what: fmt.Sprintf("VmRSS after 50,000 random requests, %d pages of 4 kB, %s", n, when), ours: fmt.Sprintf("%.0f MB", rss)}
			if was := first[when]; was == 0 {
				first[when] = rss
				r.limit, r.ratio, r.reach, r.good = "150 MB", fmt.Sprintf("%.2f", rss/150), "at most 1", rss <= 150
			} else {
				r.limit, r.ratio, r.reach, r.good = fmt.Sprintf("%.0f MB (%d pages)", was, sizes[0]), fmt.Sprintf("%.2f", rss/was), "at most 1.2", rss <= was*1.2
			}
			b.add(r)
			if err = rested(ctx, s.pid); err != nil {
				break
			}
		}
		s.stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// rested waits until a process uses almost no processor time, but at most an hour.
func rested(ctx context.Context, pid int) error {
	for end := time.Now().Add(time.Hour); time.Now().Before(end); {
		before, err := quiet(ctx, pid)
		if err != nil {
			return err
		}
		if after, err := quiet(ctx, pid); err != nil || after-before <= 250*time.Millisecond {
			return err
		}
	}
	return ctx.Err()
}

// ask sends random requests for M-URLs in four codings.
func ask(ctx context.Context, base string, pages, requests int) error {
	const workers = 16
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: workers, DisableCompression: true}}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	errs := make(chan error, workers)
	for w := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(42, uint64(w)))
			for range requests / workers {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%sp/%d/llm.json", base, rng.IntN(pages)), nil)
				if err != nil {
					errs <- err
					return
				}
				req.Header.Set("Accept-Encoding", []string{"identity", "gzip", "br", "zstd"}[rng.IntN(4)])
				resp, err := client.Do(req)
				if err != nil {
					errs <- err
					return
				}
				n, err := drain(resp)
				if err != nil || resp.StatusCode != http.StatusOK || n == 0 {
					errs <- fmt.Errorf("%s: %s, %d bytes: %w", req.URL, resp.Status, n, err)
					return
				}
			}
			errs <- nil
		})
	}
	wg.Wait()
	for range workers {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

func drain(resp *http.Response) (int, error) {
	defer resp.Body.Close()
	buf, n := make([]byte, 32<<10), 0
	for {
		m, err := resp.Body.Read(buf)
		n += m
		if err != nil {
			if err.Error() == "EOF" {
				err = nil
			}
			return n, err
		}
	}
}

// residentMB returns a process's VmRSS in MB.
func residentMB(pid int) (float64, error) { return statusMB(pid, "VmRSS:") }

// statusMB returns the size in MB that a process's /proc status lists under name, such as "VmRSS:".
func statusMB(pid int, name string) (float64, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			return float64(kb) / 1024, err
		}
	}
	return 0, fmt.Errorf("process %d has no %s", pid, name)
}

// start measures the time and the processor time from a restart until the published edition is
// ready to be served.
func (b *bench) start(ctx context.Context, n int) error {
	file, err := b.fill(ctx, n)
	if err != nil {
		return err
	}
	args := []string{"--base-url", "http://127.0.0.1:8080/"}
	s, err := b.startServer(ctx, file, args...) // the first start publishes
	if err != nil {
		return err
	}
	_, err = quiet(ctx, s.pid)
	s.stop()
	if err != nil {
		return err
	}
	var took, spent []float64
	for range 5 {
		s, err := b.startServer(ctx, file, args...)
		if err != nil {
			return err
		}
		took, spent = append(took, s.ready.Seconds()), append(spent, s.spent.Seconds())
		s.stop()
	}
	m := median(spent)
	b.add(row{
		what: fmt.Sprintf("restart with a store of %d pages, until the published edition is ready", n), limit: "0.5 s of processor time",
		ours: fmt.Sprintf("%.2f s, %.2f s by the clock", m, median(took)), ratio: fmt.Sprintf("%.2f", m/0.5), reach: "at most 1", good: m < 0.5,
	})
	return nil
}
