package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	neturl "net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// lists measures serving the lists of a site of n pages: the server's peak memory above
// its idle memory, and the time to the first byte of a body.
func (b *bench) lists(ctx context.Context, n int) error {
	file, err := b.fill(ctx, n)
	if err != nil {
		return err
	}
	// Both servers use the same address, because lists contain it.
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := l.Addr().String()
	_ = l.Close()
	s, err := b.startServer(ctx, file, "--listen", address)
	if err != nil {
		return err
	}
	s.stop() // the next start excludes the memory of publishing
	if s, err = b.startServer(ctx, file, "--listen", address); err != nil {
		return err
	}
	defer s.stop()
	paths, err := listPaths(ctx, s.url)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if err := b.list(ctx, s, n, p); err != nil {
			return err
		}
	}
	return nil
}

var (
	indexLink  = regexp.MustCompile(`<([^>]+)>; rel="index"`)
	collection = regexp.MustCompile(`/scp/[^"<\s]+\.zst`)
)

// listPaths finds one list of each protocol, or the first part of a list in parts.
func listPaths(ctx context.Context, url string) ([]string, error) {
	header, _, err := fetch(ctx, url)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, l := range header.Values("Link") {
		if m := indexLink.FindStringSubmatch(l); m != nil {
			u, err := neturl.Parse(m[1])
			if err != nil {
				return nil, err
			}
			paths = append(paths, strings.TrimPrefix(u.Path, "/"))
			break
		}
	}
	for _, p := range []string{"llm-sitemap.json", "arc-sitemap.json", "arc-sitemap.yaml"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, url+p, nil)
		if err != nil {
			return nil, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			paths = append(paths, p)
		}
	}
	if _, body, err := fetch(ctx, url+"sitemap.xml"); err == nil {
		if p := collection.Find(body); p != nil {
			paths = append(paths, strings.TrimPrefix(string(p), "/"))
		}
	}
	return paths, nil
}

// list measures a server while several clients at once fetch one list, in each coding.
func (b *bench) list(ctx context.Context, s *server, n int, path string) error {
	if err := resetPeak(s.pid); err != nil {
		return err
	}
	idle, err := residentMB(s.pid)
	if err != nil {
		return err
	}
	const clients = 4
	var (
		mu    sync.Mutex
		first []time.Duration
		size  int64
		errs  []error
		wg    sync.WaitGroup
	)
	lone := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, coding := range []string{"identity", "gzip", "br", "zstd"} {
		for range clients {
			wg.Go(func() {
				took, n, err := firstByte(ctx, lone, s.url+path, coding)
				mu.Lock()
				defer mu.Unlock()
				if first = append(first, took); coding == "identity" {
					size = n
				}
				if err != nil {
					errs = append(errs, err)
				}
			})
		}
		wg.Wait()
	}
	if len(errs) > 0 {
		return errs[0]
	}
	peak, err := statusMB(s.pid, "VmHWM:")
	if err != nil {
		return err
	}
	over := peak - idle
	what := fmt.Sprintf("%s of %d pages (%.0f MB), %d clients at once, in each coding", path, n, float64(size)/1e6, clients)
	b.add(row{
		what: what + ": peak memory above that of the idle server (" + fmt.Sprintf("%.0f MB)", idle), limit: "64 MB",
		ours: fmt.Sprintf("%.0f MB", over), ratio: fmt.Sprintf("%.2f", over/64), reach: "at most 1", good: over <= 64,
	})
	slices.Sort(first)
	worst := first[len(first)-1]
	b.add(row{
		what: what + ": time until the first byte of a body, maximum", limit: "50 ms",
		ours:  fmt.Sprintf("%.1f ms (the median %.1f)", worst.Seconds()*1e3, first[len(first)/2].Seconds()*1e3),
		ratio: fmt.Sprintf("%.2f", worst.Seconds()/0.05), reach: "below 1", good: worst < 50*time.Millisecond,
	})
	return nil
}

// firstByte returns the time until the first byte of a body, and the size of the body.
func firstByte(ctx context.Context, client *http.Client, url, coding string) (time.Duration, int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Accept-Encoding", coding)
	start := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return 0, 0, fmt.Errorf("%s: %s", url, resp.Status)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		return 0, 0, err
	}
	took := time.Since(start)
	n, err := io.Copy(io.Discard, resp.Body)
	return took, n + 1, err
}
