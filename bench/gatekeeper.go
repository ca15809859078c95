package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// limits measures the memory that rate limits use for client networks: the limit of each client
// and that of bots, each also for the surrounding network.
func (b *bench) limits(ctx context.Context, networks int) error {
	file, err := b.fill(ctx, 1000)
	if err != nil {
		return err
	}
	// A client may send one request in a hundred seconds, longer than this takes, so
	// that no entry expires.
	s, err := b.startServer(ctx, file, "--proxies", "127.0.0.1", "--rate", "0.01", "--bot", "bots=2/s")
	if err != nil {
		return err
	}
	defer s.stop()
	if err := ask(ctx, s.url, 1000, 0); err != nil {
		return err
	}
	before, err := residentMB(s.pid)
	if err != nil {
		return err
	}
	refused, err := visit(ctx, s.url, networks, 0, 1)
	if err != nil {
		return err
	}
	most, err := statusMB(s.pid, "VmHWM:")
	if err != nil {
		return err
	}
	const sample = 1000
	step := networks / sample
	again, err := visit(ctx, s.url, networks, rand.IntN(step), step)
	if err != nil {
		return err
	}
	grown := most - before
	b.add(row{
		what:  fmt.Sprintf("peak memory above that of the idle server (%.0f MB) with a request from each of %d networks, limits of clients and of bots", before, networks),
		limit: "100 MB", ours: fmt.Sprintf("%.0f MB", grown), ratio: fmt.Sprintf("%.2f", grown/100), reach: "at most 1",
		good: grown <= 100 && refused == 0,
	})
	b.add(row{
		what:  fmt.Sprintf("of %d of these networks that send another request, refused with 429", sample),
		limit: fmt.Sprint(sample), ours: fmt.Sprint(again), ratio: fmt.Sprintf("%.3f", float64(again)/sample), reach: "at least 0.99",
		good: float64(again) >= 0.99*sample,
	})
	return nil
}

// visit sends one request from every step-th network, in the form in which a proxy reports it.
// Half of the networks are IPv4 /24, and half IPv6 /48. It returns the number of 429 responses.
func visit(ctx context.Context, base string, networks, from, step int) (refused int64, err error) {
	const workers, batch = 4, 100
	host := strings.TrimSuffix(strings.TrimPrefix(base, "http://"), "/")
	var wg sync.WaitGroup
	var count atomic.Int64
	errs := make([]error, workers)
	for w := range workers {
		wg.Go(func() {
			errs[w] = func() error {
				conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
				if err != nil {
					return err
				}
				defer func() { _ = conn.Close() }() // all responses were read
				in := bufio.NewReader(conn)
				var out bytes.Buffer
				waiting := 0
				for i := from + w*step; ; i += workers * step {
					if i < networks {
						a := fmt.Sprintf("%d.%d.%d.7", 20+i>>17, i>>9&255, i>>1&255)
						if i%2 == 1 {
							a = fmt.Sprintf("2001:%x:%x::7", i>>16, i&0xffff)
						}
						fmt.Fprintf(&out, "HEAD /p/%d/llm.json HTTP/1.1\r\nHost: %s\r\nUser-Agent: SomeBot/1.0\r\nX-Forwarded-For: %s\r\n\r\n", i%1000, host, a)
						waiting++
					}
					if waiting == batch || i >= networks {
						if _, err := conn.Write(out.Bytes()); err != nil {
							return err
						}
						out.Reset()
						for ; waiting > 0; waiting-- {
							status, err := answered(in)
							switch {
							case err != nil:
								return err
							case status == http.StatusTooManyRequests:
								count.Add(1)
							case status != http.StatusOK:
								return fmt.Errorf("status %d", status)
							}
						}
					}
					if i >= networks {
						return nil
					}
				}
			}()
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, fmt.Errorf("networks: %w", err)
		}
	}
	return count.Load(), nil
}

// answered reads the header of a response without a body.
func answered(in *bufio.Reader) (status int, err error) {
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if first {
			if _, err := fmt.Sscanf(string(line), "HTTP/1.1 %d", &status); err != nil {
				return 0, fmt.Errorf("%q: %w", line, err)
			}
		}
		if len(bytes.TrimSpace(line)) == 0 {
			return status, nil
		}
	}
}

// middleware compares the 304 responses of a server that identifies and counts clients with those
// of the same server without these checks, and with those of a handler that only writes.
func (b *bench) middleware(ctx context.Context, n int) error {
	file, err := b.fill(ctx, n)
	if err != nil {
		return err
	}
	ranges := filepath.Join(b.dir, "ranges.json")
	if err := os.WriteFile(ranges, []byte(`{"prefixes":[{"ipv4Prefix":"203.0.113.0/24"},{"ipv4Prefix":"198.51.100.0/24"},{"ipv6Prefix":"2001:db8::/32"}]}`), 0o600); err != nil {
		return err
	}
	all, err := b.startServer(ctx, file, "--proxies", "127.0.0.1", "--rate", "1000000", "--files-rate", "1G",
		"--bot", "training=1000000/s,search=allow,unverified=403,ChatGPT-User=500000/s", "--bot-ranges", "GPTBot="+ranges, "--exclude", "/drafts,/account")
	if err != nil {
		return err
	}
	defer all.stop()
	none, err := b.startServer(ctx, file, "--exclude", "/drafts,/account")
	if err != nil {
		return err
	}
	defer none.stop()
	paths := murls(n)
	for _, who := range []struct{ name, agent string }{
		{"a bot with a limit, verified by its address", "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)"},
		{"a browser", "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36"},
	} {
		header := http.Header{"User-Agent": {who.agent}, "X-Forwarded-For": {"203.0.113.9"}}
		theirs, _, err := b.warm(ctx, none, paths, header, http.StatusNotModified)
		if err != nil {
			return err
		}
		ours, _, err := b.warm(ctx, all, paths, header, http.StatusNotModified)
		if err != nil {
			return err
		}
		found, err := duel(ctx, b.turns, theirs.of(none), ours.of(all))
		if err != nil {
			return err
		}
		what := fmt.Sprintf("M-URL 304, warm, %d pages, with limits, bots, proxies and visibility, to %s", n, who.name)
		b.add(found.row(what+", wrk -t1 -c16", "requests", "the same without", 0.8))
		if err := b.against(ctx, all, what, paths, header, http.StatusNotModified, 0); err != nil {
			return err
		}
	}
	return nil
}
