// Command bench measures millrace beside its peers and limits, in one run, and
// prints a table of what it found. See README.md for the figures so far.
//
//	go run .                 what fits in a few minutes
//	go run . -large          with a million pages
//	go run . -only serve     one part: serve, front, answers, ingest, crawl, edit, pull, list, html, memory, start, scp, openfeeder, whole, limits, middleware, events, usage
//	go run . -only search    search, with each part switched off, on the gold data and over Debian's manuals
//	go run . -only month     mirrors of a site that lives, for a month of daily rounds, some minutes
//	go run . -only extract   extraction beside its peers, on the gold data that -data names
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

func main() {
	if addr := os.Getenv("MILLRACE_BENCH_PEER"); addr != "" {
		peer(addr)
		return
	}
	if addr := os.Getenv("MILLRACE_BENCH_FRONT"); addr != "" {
		frontProcess(addr)
		return
	}
	if what := os.Getenv("MILLRACE_BENCH_SITE"); what != "" {
		serveSite(what)
		return
	}
	if what := os.Getenv("MILLRACE_BENCH_EXTRACT"); what != "" {
		extractOnce(what)
		return
	}
	if task := os.Getenv("MILLRACE_BENCH_SCP"); task != "" {
		scpOnce(task)
		return
	}
	// As `millrace serve` does; the peers in this process gain by it as well.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(104 << 20)
	if file := os.Getenv("MILLRACE_BENCH_INDEX"); file != "" {
		if err := indexProcess(file); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	large := flag.Bool("large", false, "also measure with 1,000,000 pages")
	short := flag.Bool("short", false, "month: four days")
	only := flag.String("only", "", "one part: serve, front, answers, ingest, crawl, edit, pull, month, list, html, memory, start, scp, openfeeder, whole, limits, middleware, events, usage, search, extract")
	manual := flag.String("manual", "/usr/share/doc/postgresql-doc-15/html", "the folder of Debian's postgresql-doc-15")
	seconds := flag.Int("seconds", 6, "how long each run of wrk lasts")
	x := &extraction{}
	flag.StringVar(&x.data, "data", os.Getenv("MILLRACE_TEST_DATA"), "extract, search, html: the folder of gold data")
	flag.BoolVar(&x.verbose, "v", false, "extract: list what is worst instead")
	flag.StringVar(&x.kind, "kind", "", "extract -v: pages of this kind only")
	flag.StringVar(&x.page, "page", "", "extract -v: this page only, with the text that is missing or too much")
	flag.IntVar(&x.lines, "lines", 15, "extract -v: the most lines of a list")
	flag.Parse()
	x.manual = *manual
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	switch *only {
	case "extract":
		err = x.run(ctx)
	case "search":
		err = searching(ctx, x.data)
	default:
		err = run(ctx, *large, *short, *only, *manual, x.data, time.Duration(*seconds)*time.Second)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// row is one line of the table.
type row struct {
	what, limit, ours, ratio, reach string
	good                            bool
}

// bench is one run of the command.
type bench struct {
	dir     string // temporary
	binary  string // of millrace
	wrk     time.Duration
	manual  string
	results []row
}

func run(ctx context.Context, large, short bool, only, manual, data string, wrk time.Duration) error {
	dir, err := os.MkdirTemp("", "millrace-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &bench{dir: dir, binary: filepath.Join(dir, "millrace"), wrk: wrk, manual: manual}
	build := exec.CommandContext(ctx, "go", "build", "-o", b.binary, "./cmd/millrace")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building millrace: %w\n%s", err, out)
	}
	sizes := []int{100_000}
	if large {
		sizes = append(sizes, 1_000_000)
	}
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"ingest", b.ingest},
		{"crawl", func(ctx context.Context) error { return b.crawl(ctx, sizes[0]) }},
		{"edit", func(ctx context.Context) error { return b.edits(ctx, large) }},
		{"pull", func(ctx context.Context) error { return b.pulls(ctx, 10_000) }},
		{"serve", func(ctx context.Context) error { return b.serve(ctx, 10_000, "warm", 0.8) }},
		{"front", b.front},
		{"answers", b.answers},
		{"memory", func(ctx context.Context) error { return b.memory(ctx, sizes) }},
		{"start", func(ctx context.Context) error { return b.start(ctx, sizes[len(sizes)-1]) }},
		{"month", func(ctx context.Context) error {
			if only == "" {
				return nil
			}
			return b.month(ctx, short)
		}},
		{"html", func(ctx context.Context) error {
			if data == "" && only == "" {
				return nil
			}
			return b.html(ctx, data)
		}},
		{"list", func(ctx context.Context) error { return b.lists(ctx, sizes[len(sizes)-1]) }},
		{"scp", func(ctx context.Context) error { return b.scp(ctx, large) }},
		{"openfeeder", func(ctx context.Context) error { return b.openfeeder(ctx, sizes[len(sizes)-1]) }},
		{"whole", b.whole},
		{"limits", func(ctx context.Context) error { return b.limits(ctx, 1_000_000) }},
		{"middleware", func(ctx context.Context) error { return b.middleware(ctx, 10_000) }},
		{"events", func(ctx context.Context) error { return b.events(ctx, 10_000) }},
		{"usage", func(ctx context.Context) error { return b.usage(ctx, large) }},
		{"dashboard", b.dashboard},
		{"serve", func(ctx context.Context) error {
			if !large {
				return nil
			}
			return b.serve(ctx, 1_000_000, "cold", 0.4)
		}},
	} {
		if only != "" && only != part.name {
			continue
		}
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	if len(b.results) == 0 {
		return errors.New("nothing was measured; -only takes serve, front, answers, ingest, crawl, edit, pull, month, list, html, memory, start, scp, openfeeder, whole, limits, middleware, events, usage or dashboard")
	}
	b.print()
	return nil
}

func (b *bench) add(r row) {
	b.results = append(b.results, r)
	fmt.Fprintf(os.Stderr, "%s: limit %s, ours %s, %s\n", r.what, r.limit, r.ours, r.ratio)
}

func (b *bench) print() {
	fmt.Println("| what | peer or limit | millrace | ratio | to reach | |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, r := range b.results {
		verdict := "missed"
		switch {
		case r.reach == "": // it is only printed
			verdict = ""
		case r.good:
			verdict = "reached"
		}
		fmt.Println("| " + strings.Join([]string{r.what, r.limit, r.ours, r.ratio, r.reach, verdict}, " | ") + " |")
	}
}

// median of three alternating runs of the peer and of ours.
func alternate(peer, ours func() (float64, error)) (p, o float64, err error) {
	var ps, os []float64
	for range 3 {
		for _, side := range []struct {
			f    func() (float64, error)
			into *[]float64
		}{{peer, &ps}, {ours, &os}} {
			v, err := side.f()
			if err != nil {
				return 0, 0, err
			}
			*side.into = append(*side.into, v)
		}
	}
	slices.Sort(ps)
	slices.Sort(os)
	return ps[1], os[1], nil
}

// paired runs the peer and ours in turns, often and shortly, so that a machine
// that is slower for a while is so for both: medians of both, and of the ratios of
// two that stand beside each other.
func (b *bench) paired(peer, ours func() (float64, error)) (p, o, ratio float64, err error) {
	whole := b.wrk
	defer func() { b.wrk = whole }()
	b.wrk = max(whole/3, time.Second)
	const rounds = 11
	var ps, os, ratios []float64
	for i := range rounds {
		first, second := peer, ours
		if i%2 == 1 {
			first, second = ours, peer
		}
		v, err := first()
		if err != nil {
			return 0, 0, 0, err
		}
		w, err := second()
		if err != nil {
			return 0, 0, 0, err
		}
		if i%2 == 1 {
			v, w = w, v
		}
		ps, os, ratios = append(ps, v), append(os, w), append(ratios, w/v)
	}
	for _, list := range [][]float64{ps, os, ratios} {
		slices.Sort(list)
	}
	return ps[rounds/2], os[rounds/2], ratios[rounds/2], nil
}
