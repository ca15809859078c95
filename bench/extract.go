package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// extraction compares extract with its peers and prints its own table. It needs gold
// data and runs only on request.
type extraction struct {
	data    string // folder with the gold sets wcxb and blocks
	manual  string
	verbose bool   // list the worst pages instead of the table
	kind    string // with verbose: only pages of this kind
	page    string // with verbose: only this page, word by word
	lines   int    // with verbose: maximum number of lines in a list
	rows    []extractRow
}

// extractRow is one line of the table. The cells contain the figures of readability, trafilatura
// and millrace; "" if the row does not apply to an extractor.
type extractRow struct {
	what  string
	count int
	cells [3]string
	reach string // "" = no target
	good  bool
}

const oursAt = 2 // index of millrace in cells

func (x *extraction) run(ctx context.Context) error {
	if x.data == "" {
		return errors.New("missing folder of gold data; set -data or MILLRACE_TEST_DATA")
	}
	// Unlike a server, an extractor is measured with Go's default settings.
	debug.SetGCPercent(100)
	debug.SetMemoryLimit(math.MaxInt64)
	pages, err := readPages(x.data)
	if err != nil {
		return err
	}
	if x.verbose {
		return x.list(ctx, pages)
	}
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"words", func(ctx context.Context) error { return x.words(ctx, pages) }},
		{"blocks", x.blocks},
		{"manual", x.manualWords},
		{"time", func(ctx context.Context) error { return x.time(ctx, pages) }},
		{"scale", x.scale},
	} {
		fmt.Fprintln(os.Stderr, "measuring:", part.name)
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("extract, %s: %w", part.name, err)
		}
	}
	x.print()
	return nil
}

func (x *extraction) print() {
	fmt.Println("| what | count | readability | trafilatura | millrace | to reach | |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, r := range x.rows {
		verdict := ""
		switch {
		case r.reach == "":
		case r.good:
			verdict = "reached"
		default:
			verdict = "missed"
		}
		cells := append([]string{r.what, fmt.Sprint(r.count)}, r.cells[:]...)
		fmt.Println("| " + strings.Join(append(cells, r.reach, verdict), " | ") + " |")
	}
}

// atLeast adds a row of shares. The share of millrace should be at least reach. If reach is 0, there
// is no target.
func (x *extraction) atLeast(what string, count int, v [3]float64, reach float64) {
	r := extractRow{what: what, count: count, good: v[oursAt] >= reach}
	for i := range v {
		r.cells[i] = fmt.Sprintf("%.3f", v[i])
	}
	if reach > 0 {
		r.reach = fmt.Sprintf("%.2f", reach)
	}
	x.rows = append(x.rows, r)
}

// atMost adds a row of factors. The factor of millrace should be at most reach.
func (x *extraction) atMost(what string, count int, v [3]float64, reach float64) {
	r := extractRow{what: what, count: count, reach: fmt.Sprintf("at most %.1f", reach), good: v[oursAt] <= reach}
	for i := range v {
		r.cells[i] = fmt.Sprintf("%.2f", v[i])
	}
	x.rows = append(x.rows, r)
}

// manualPages returns the files of Debian's postgresql-doc-15.
func (x *extraction) manualPages() ([]string, error) {
	names, err := filepath.Glob(filepath.Join(x.manual, "*.html"))
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no pages in %s; install Debian's postgresql-doc-15, or give its folder with -manual", x.manual)
	}
	return names, err
}
