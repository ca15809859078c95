package main

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"syscall"
	"time"

	"golang.org/x/net/html"
)

// parseAlone parses a page as every extractor must, with the options that millrace uses.
func parseAlone(data []byte) error {
	_, err := html.ParseWithOptions(bytes.NewReader(data), html.ParseOptionEnableScripting(false))
	return err
}

// time compares the time and the allocation per page with those of html.Parse alone. For each page,
// it measures both, and uses the medians of several rounds.
func (x *extraction) time(ctx context.Context, pages []goldPage) error {
	// Use one core, so that the garbage collector cannot use the idle time of other cores.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var time, space [3]float64
	var parsed, ours cost
	for i, rounds := range [3]int{3, 1, 5} { // trafilatura is slow
		alone, own, err := costs(ctx, extractors[i], pages, rounds)
		if err != nil {
			return err
		}
		time[i], space[i] = own.seconds/alone.seconds, own.bytes/alone.bytes
		parsed, ours = alone, own
	}
	n := float64(len(pages))
	x.atMost(fmt.Sprintf("time per page, relative to html.Parse alone (%.2f ms; ours %.2f ms)", parsed.seconds/n*1e3, ours.seconds/n*1e3), len(pages), time, 1.6)
	x.atMost(fmt.Sprintf("allocation per page, relative to html.Parse alone (%.0f kB; ours %.0f kB)", parsed.bytes/n/1e3, ours.bytes/n/1e3), len(pages), space, 1.5)
	return nil
}

// cost is the cost of a run over all pages.
type cost struct{ seconds, bytes float64 }

// costs measures the parser alone and an extractor, page by page.
func costs(ctx context.Context, e extractor, pages []goldPage, rounds int) (alone, own cost, err error) {
	runtime.GC() // collect the garbage of the previous run
	for k := range pages {
		p := &pages[k]
		data, err := p.html()
		if err != nil {
			return alone, own, err
		}
		for _, side := range []struct {
			into *cost
			run  func() error
		}{
			{&alone, func() error { _ = parseAlone(data); return nil }}, // ignore the error: html.Parse rejects deep nesting
			{&own, func() error { _, err := e.try(ctx, data, p.URL); return err }},
		} {
			var took, space []float64
			for range rounds {
				s, b, err := measure(side.run)
				if err != nil {
					return alone, own, fmt.Errorf("page %s: %w", p.ID, err)
				}
				took, space = append(took, s), append(space, b)
			}
			side.into.seconds += median(took)
			side.into.bytes += median(space)
		}
	}
	return alone, own, nil
}

// measure returns the seconds of processor time of a call, including its share of the garbage
// collector's time, and the bytes that it allocates.
func measure(f func() error) (seconds, allocated float64, err error) {
	heap := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(heap)
	before, start := heap[0].Value.Uint64(), processorTime()
	err = f()
	seconds = processorTime() - start
	metrics.Read(heap)
	return seconds, float64(heap[0].Value.Uint64() - before), err
}

// processorTime returns the processor time of this process in seconds. Other load of
// the machine has little effect on it.
func processorTime() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic("bench: " + err.Error())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
