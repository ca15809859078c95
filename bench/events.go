package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// events compares the rate of 304 responses to a bot with the rate of a server that neither records
// requests in the store nor counts them for Prometheus.
func (b *bench) events(ctx context.Context, n int) error {
	file, err := b.fill(ctx, n)
	if err != nil {
		return err
	}
	start := func(args ...string) (*server, error) {
		return b.startServer(ctx, file, append(args, "--exclude", "/drafts,/account")...)
	}
	none, err := start("--events", "0", "--metrics", "off")
	if err != nil {
		return err
	}
	defer none.stop()
	paths := murls(n)
	for _, side := range []struct {
		name  string
		reach float64
		args  []string
	}{
		{"events", 0.95, []string{"--metrics", "off"}},
		{"events and metrics", 0, nil},
	} {
		if err := b.recording(ctx, paths, none, side.name, side.reach, func() (*server, error) { return start(side.args...) }); err != nil {
			return err
		}
	}
	return nil
}

// recording compares a server that records requests with one that does not.
func (b *bench) recording(ctx context.Context, paths []string, none *server, name string, reach float64, start func() (*server, error)) error {
	s, err := start()
	if err != nil {
		return err
	}
	defer s.stop()
	bot := http.Header{"User-Agent": {"Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"}}
	theirs, _, err := b.warm(ctx, none, paths, bot, http.StatusNotModified)
	if err != nil {
		return err
	}
	ours, _, err := b.warm(ctx, s, paths, bot, http.StatusNotModified)
	if err != nil {
		return err
	}
	lost, err := metric(ctx, s.url, dropped)
	counted := err == nil
	found, err := duel(ctx, b.turns, theirs.of(none), ours.of(s))
	if err != nil {
		return err
	}
	b.add(found.row(fmt.Sprintf("M-URL 304 to a bot, warm, %d pages, with %s, wrk -t1 -c16", len(paths), name), "requests", "the same without", reach))
	if now, err := metric(ctx, s.url, dropped); err == nil && counted {
		b.add(row{what: "of these requests, dropped because the store was too slow", ours: fmt.Sprintf("%.0f", now-lost)})
	}
	return nil
}

// dropped counts the events that the server could not record.
const dropped = "millrace_events_dropped_total"

// metric returns one of a server's metrics.
func metric(ctx context.Context, base, name string) (float64, error) {
	_, body, err := fetch(ctx, base+"metrics")
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(strings.NewReader(string(body)))
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(rest, 64)
		}
	}
	return 0, fmt.Errorf("%s: no metric %s", base, name)
}
