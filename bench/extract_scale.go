package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ordinaryPage returns a typical page of about n bytes.
func ordinaryPage(n int) string {
	var b strings.Builder
	b.WriteString("<!doctype html><html lang=en><head><title>An ordinary page</title></head><body><nav><a href=/>Home</a></nav><article><h1>An ordinary page</h1>")
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "<h2 id=s%d>Part %d</h2><p>The gate of a mill <a href=/gate/%d>opens</a> <em>slowly</em>, and water runs along the leat.</p><ul><li>one</li><li>two <code>x</code></li></ul>\n", i, i, i)
	}
	return b.String()
}

// usual is the size of the reference page.
const usual = 200 << 10

// scaleDocuments are pages that provoke quadratic work. The nested tags are inside an ordinary
// page. Alone, they take no measurable time, because the parser rejects such a page.
var scaleDocuments = []struct {
	what string
	make func() string
}{
	{"20,000 <p>", func() string { return "<body>" + strings.Repeat("<p>Some words of a paragraph, not many.", 20_000) }},
	{"512 nested tags", func() string {
		return ordinaryPage(usual/2) + strings.Repeat("<div>", 512) + "deep" + strings.Repeat("</div>", 512) + ordinaryPage(usual/2)
	}},
	{"a page of 7.6 MB", func() string { return ordinaryPage(7_600_000) }},
	{"100,000 links", func() string { return "<body>" + strings.Repeat(`<a href="/some/page">link text</a> `, 100_000) }},
	{"one text node of 5 MB", func() string { return "<body><p>" + strings.Repeat("word and ", 5_000_000/9) }},
}

const (
	scalePatience = 20 * time.Second
	scaleMemory   = 8 << 30
)

// scale compares the time per byte for unusual pages with that for an ordinary page.
func (x *extraction) scale(ctx context.Context) error {
	perByte := func(doc string, run func(data []byte) error) (float64, error) {
		var took []float64
		for range 7 {
			s, _, err := measure(func() error { return run([]byte(doc)) })
			if err != nil {
				return 0, err
			}
			took = append(took, s/float64(len(doc)))
		}
		return median(took), nil
	}
	ratio := func(doc, ordinary string, run func(data []byte) error) (float64, error) {
		base, err := perByte(ordinary, run)
		if err != nil {
			return 0, err
		}
		v, err := perByte(doc, run)
		return v / base, err
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // use one core, as in time
	runtime.GC()
	ordinary := ordinaryPage(usual)
	for i, d := range scaleDocuments {
		r := extractRow{what: "time per byte of " + d.what + ", relative to an ordinary page", reach: "at most 1.3"}
		for k, e := range extractors {
			if k != oursAt {
				cell, err := peerScale(ctx, k, i)
				if err != nil {
					return err
				}
				r.cells[k] = cell
				continue
			}
			doc := d.make()
			v, err := ratio(doc, ordinary, func(data []byte) error {
				_, err := e.run(ctx, data, "https://example.com/")
				return err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", d.what, err)
			}
			r.count, r.cells[k], r.good = len(doc), fmt.Sprintf("%.2f", v), v <= 1.3
			if alone, err := ratio(doc, ordinary, parseAlone); err == nil {
				r.what += fmt.Sprintf(" (html.Parse alone %.2f)", alone)
			} else {
				r.what += " (html.Parse alone fails)"
			}
		}
		x.rows = append(x.rows, r)
	}
	return nil
}

// peerScale runs a peer in its own process, with limits on time and memory.
func peerScale(ctx context.Context, peer, document int) (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	limited, cancel := context.WithTimeout(ctx, scalePatience)
	defer cancel()
	c := exec.CommandContext(limited, exe)
	c.Env = append(os.Environ(), fmt.Sprintf("MILLRACE_BENCH_EXTRACT=%d %d", peer, document))
	out, err := c.Output()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case limited.Err() != nil:
		return fmt.Sprintf("over %.0f s", scalePatience.Seconds()), nil
	case errors.As(err, &failed):
		return "fails", nil
	}
	return strings.TrimSpace(string(out)), err
}

// extractOnce runs in the child process of peerScale: it prints a peer's ratio of time
// per byte.
func extractOnce(what string) {
	var peer, document int
	if _, err := fmt.Sscan(what, &peer, &document); err != nil {
		panic("bench: " + err.Error())
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: scaleMemory, Max: scaleMemory}); err != nil {
		panic("bench: " + err.Error())
	}
	runtime.GOMAXPROCS(1)
	run := func(doc string) float64 {
		best := time.Hour.Seconds()
		for range 3 {
			s, _, err := measure(func() error {
				_, err := extractors[peer].run(context.Background(), []byte(doc), "https://example.com/")
				return err
			})
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			if best = min(best, s); s > 1 {
				break
			}
		}
		return best / float64(len(doc))
	}
	base := run(ordinaryPage(usual))
	fmt.Println(strconv.FormatFloat(run(scaleDocuments[document].make())/base, 'f', 2, 64))
}
