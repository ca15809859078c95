// Command bench measures millrace against its peers and limits, in one run, and prints a table
// of the results. README.md has the current figures.
//
//	go run .                 every part except fleet, month, history, soak, search and extract
//	go run . -large          the same, also with a million pages
//	go run . -only PART      one part: ingest, crawl, edit, pull, dictionary, serve, front, postgres,
//	                         replicas, s3, leases, memory, start, html, list, scp, openfeeder, whole,
//	                         limits, middleware, overload, events, usage, log, dashboard, up,
//	                         or one of the following
//	go run . -only fleet     many sites kept fresh, a few minutes; hours with -large
//	go run . -only month     mirrors of a changing site, for a month of daily rounds, a few minutes
//	go run . -only history   the same for the releases of a Markdown manual; needs npm
//	go run . -only soak      edits, clients and load for two hours, or for the duration given by -for
//	go run . -only search    search, with each part switched off, on the gold data and on Debian's manuals
//	go run . -only extract   extraction compared with its peers, on the gold data in the folder -data
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
	"strings"
	"time"
)

func main() {
	if os.Getenv("MILLRACE_BENCH_PEER") != "" {
		if err := peer(); err != nil {
			fmt.Fprintln(os.Stderr, "bench: peer:", err)
			os.Exit(1)
		}
		return
	}
	if what := os.Getenv("MILLRACE_BENCH_EXTRACT"); what != "" {
		extractOnce(what)
		return
	}
	if task := os.Getenv("MILLRACE_BENCH_FLEET"); task != "" {
		if err := fleetWorkers(task); err != nil {
			fmt.Fprintln(os.Stderr, "bench: workers:", err)
			os.Exit(1)
		}
		return
	}
	if task := os.Getenv("MILLRACE_BENCH_SCP"); task != "" {
		scpOnce(task)
		return
	}
	// Use the garbage collector settings of `millrace serve`, also for the peers in this process.
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
	short := flag.Bool("short", false, "month, history: four days; fleet: 1,000 hosts")
	only := flag.String("only", "", "one part: serve, front, ingest, crawl, edit, pull, dictionary, postgres, replicas, s3, fleet, leases, month, history, list, html, memory, start, scp, openfeeder, whole, limits, middleware, overload, events, usage, log, dashboard, soak, up, search, extract")
	manual := flag.String("manual", "/usr/share/doc/postgresql-doc-15/html", "the folder of Debian's postgresql-doc-15")
	turns := flag.Int("turns", 9, "number of turns of each side of a comparison; a turn of wrk takes a second")
	x := &extraction{}
	flag.StringVar(&x.data, "data", os.Getenv("MILLRACE_TEST_DATA"), "extract, search, html: the folder of gold data")
	flag.BoolVar(&x.verbose, "v", false, "extract: list the worst results instead of the table")
	flag.StringVar(&x.kind, "kind", "", "extract -v: only pages of this kind; overload: only this kind of abuse")
	flag.StringVar(&x.page, "page", "", "extract -v: only this page, with its missing and surplus text")
	flag.IntVar(&x.lines, "lines", 15, "extract -v: maximum number of lines in a list")
	long := soaking{}
	flag.DurationVar(&long.duration, "for", 2*time.Hour, "soak: duration")
	flag.IntVar(&long.load, "load", 20, "soak: number of busy processes that compete with the server")
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
		err = run(ctx, *large, *short, *only, *manual, x.data, x.kind, *turns, long)
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
	dir     string   // temporary folder of this run
	binary  string   // path of the millrace binary
	nice    string   // niceness of the millrace servers
	env     []string // additional environment variables of the millrace servers
	turns   int      // number of turns of each side in a duel
	scripts int      // number of scripts written for wrk
	manual  string
	results []row
}

func run(ctx context.Context, large, short bool, only, manual, data, kind string, turns int, long soaking) error {
	dir, err := os.MkdirTemp("", "millrace-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b := &bench{dir: dir, binary: filepath.Join(dir, "millrace"), nice: "0", turns: turns, manual: manual}
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
		{"dictionary", func(ctx context.Context) error { return b.dictionary(ctx, 10_000) }},
		{"serve", func(ctx context.Context) error { return b.serve(ctx, 10_000) }},
		{"front", b.front},
		{"postgres", b.postgres},
		{"replicas", func(ctx context.Context) error { return b.replicas(ctx, sizes[len(sizes)-1]) }},
		{"s3", b.s3},
		{"fleet", func(ctx context.Context) error {
			if only == "" {
				return nil
			}
			return b.fleet(ctx, large, short)
		}},
		{"leases", func(ctx context.Context) error { return b.leases(ctx, sizes[len(sizes)-1]) }},
		{"memory", func(ctx context.Context) error { return b.memory(ctx, sizes) }},
		{"start", func(ctx context.Context) error { return b.start(ctx, sizes[len(sizes)-1]) }},
		{"month", func(ctx context.Context) error {
			if only == "" {
				return nil
			}
			return b.month(ctx, short)
		}},
		{"history", func(ctx context.Context) error {
			if only == "" {
				return nil
			}
			return b.history(ctx, short)
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
		{"overload", func(ctx context.Context) error { return b.overload(ctx, 10_000, kind) }},
		{"events", func(ctx context.Context) error { return b.events(ctx, 10_000) }},
		{"usage", func(ctx context.Context) error { return b.usage(ctx, large) }},
		{"log", func(ctx context.Context) error { return b.accessLog(ctx, sizes[len(sizes)-1]*10) }},
		{"dashboard", b.dashboard},
		{"soak", func(ctx context.Context) error {
			if only == "" {
				return nil
			}
			return b.soak(ctx, long)
		}},
		{"up", func(ctx context.Context) error { return b.up(ctx, only == "up") }},
		{"serve", func(ctx context.Context) error {
			if !large {
				return nil
			}
			file, err := b.fill(ctx, 1_000_000)
			if err != nil {
				return err
			}
			return b.cold(ctx, file, 1_000_000)
		}},
	} {
		if only != "" && only != part.name {
			continue
		}
		if err := part.run(ctx); err != nil {
			b.print() // print the rows measured so far
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	if len(b.results) == 0 {
		return errors.New("nothing was measured; -only takes serve, front, ingest, crawl, edit, pull, dictionary, postgres, replicas, s3, fleet, leases, month, history, list, html, memory, start, scp, openfeeder, whole, limits, middleware, overload, events, usage, log, dashboard, soak, up, search or extract")
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
		case r.reach == "": // the row has no target
			verdict = ""
		case r.good:
			verdict = "reached"
		}
		fmt.Println("| " + strings.Join([]string{r.what, r.limit, r.ours, r.ratio, r.reach, verdict}, " | ") + " |")
	}
}
