package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// events compares a 304 to a bot of a server that records what machines ask for,
// in the store too, and counts it for Prometheus, with the same server that does
// neither.
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
	script, err := b.script(ctx, none.url)
	if err != nil {
		return err
	}
	for _, side := range []struct {
		name, reach string
		args        []string
	}{
		{"events", "0.95", []string{"--metrics", "off"}},
		{"events and metrics", "", nil},
	} {
		if err := b.recording(ctx, n, script, none, side.name, side.reach, func() (*server, error) { return start(side.args...) }); err != nil {
			return err
		}
	}
	return nil
}

// recording measures one server beside none: requests a second, and what the
// process takes of the processors for a request, which says more where others use
// them too.
func (b *bench) recording(ctx context.Context, n int, script string, none *server, name, reach string, start func() (*server, error)) error {
	s, err := start()
	if err != nil {
		return err
	}
	defer s.stop()
	spent := map[*server][2]float64{} // seconds of the processors, and requests
	rate := func(of *server) func() (float64, error) {
		return func() (float64, error) {
			before, err := processorSeconds(of.pid)
			if err != nil {
				return 0, err
			}
			perSecond, err := b.load(ctx, of.url, script, http.StatusNotModified, "AGENT=Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)")
			if err != nil {
				return 0, err
			}
			after, err := processorSeconds(of.pid)
			at := spent[of]
			spent[of] = [2]float64{at[0] + after - before, at[1] + perSecond*b.wrk.Seconds()}
			return perSecond, err
		}
	}
	for _, of := range []*server{none, s} { // every page once, so that all are in the cache
		if _, err := rate(of)(); err != nil {
			return err
		}
	}
	clear(spent)
	lost, noCount := metric(ctx, s.url, dropped)
	theirs, ours, ratio, err := b.paired(rate(none), rate(s))
	if err != nil {
		return err
	}
	b.add(row{
		what:  fmt.Sprintf("M-URL 304 to a bot, warm, %d pages, with %s, wrk -t1 -c16", n, name),
		limit: fmt.Sprintf("%.0f requests/s (the same without)", theirs), ours: fmt.Sprintf("%.0f requests/s", ours),
		ratio: fmt.Sprintf("%.2f", ratio), reach: reach, good: ratio >= 0.95,
	})
	micros := func(of *server) float64 { return 1e6 * spent[of][0] / spent[of][1] }
	b.add(row{
		what:  "the same, time of the processors for a request, with what is stored meanwhile",
		limit: fmt.Sprintf("%.2f µs", micros(none)), ours: fmt.Sprintf("%.2f µs", micros(s)),
		ratio: fmt.Sprintf("%.2f", micros(none)/micros(s)), reach: reach, good: micros(none)/micros(s) >= 0.95,
	})
	if now, err := metric(ctx, s.url, dropped); err == nil && noCount == nil {
		lost, asked := now-lost, spent[s][1]
		b.add(row{
			what: "of these requests, not recorded because they came too fast", limit: fmt.Sprintf("%.0f", asked), ours: fmt.Sprintf("%.0f", lost),
			ratio: fmt.Sprintf("%.3f", lost/asked),
		})
	}
	return nil
}

// dropped counts the events that could not be recorded.
const dropped = "millrace_events_dropped_total"

// ticks is how many of its clock the kernel counts in a second, for programs.
const ticks = 100

// processorSeconds gives what a process has taken of the processors.
func processorSeconds(pid int) (float64, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	// The name of the program, in brackets, may have anything in it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const user, system = 11, 12
	var sum float64
	for _, i := range []int{user, system} {
		n, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum / ticks, nil
}

// metric gives one of a server's metrics.
func metric(ctx context.Context, base, name string) (float64, error) {
	_, body, err := fetch(ctx, http.DefaultClient, base+"metrics")
	if err != nil {
		return 0, err
	}
	lines := bufio.NewScanner(strings.NewReader(string(body)))
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(rest, 64)
		}
	}
	return 0, fmt.Errorf("%s: no %s", base, name)
}
