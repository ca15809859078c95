package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/index"
	stores "github.com/millrace/millrace/store/all"
)

// indexed is the result of a child process that indexes the manuals.
type indexed struct {
	CPU, Passed float64    // seconds, from the first page to the last word
	RSS         [3]float64 // memory in MB after a quarter, half and all of the pages
}

// indexProcess runs in the child process. It indexes the store in a file and prints the cost.
func indexProcess(file string) error {
	ctx := context.Background()
	st, err := stores.Open(ctx, file, nil)
	if err != nil {
		return err
	}
	site, err := st.Site(ctx, searchBase, searchBase)
	if err != nil {
		return err
	}
	head, err := site.Head(ctx)
	if err != nil {
		return err
	}
	x, err := index.Open(ctx, index.File(file, "manuals"), nil)
	if err != nil {
		return err
	}
	var out indexed
	at := func(part int) error {
		out.RSS[part], err = statusMB(os.Getpid(), "VmRSS:")
		return err
	}
	start, before := time.Now(), processorTime()
	err = x.Update(ctx, head, func(done, total int) {
		switch {
		case out.RSS[0] == 0 && 4*done >= total:
			_ = at(0) // ignore the error, because reading the size at the end would also fail
		case out.RSS[1] == 0 && 2*done >= total:
			_ = at(1)
		}
	})
	if err != nil {
		return err
	}
	out.CPU, out.Passed = processorTime()-before, time.Since(start).Seconds()
	if err := at(2); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		return err
	}
	return errors.Join(x.Close(), st.Close())
}

// startIndexing indexes a store in a child process. processors is the number of processors that
// the process may use; 0 = all.
func startIndexing(ctx context.Context, file string, processors int) (out indexed, err error) {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), "MILLRACE_BENCH_INDEX="+file)
	if processors > 0 {
		cmd.Env = append(cmd.Env, "GOMAXPROCS="+strconv.Itoa(processors))
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, os.Stderr
	if err := cmd.Run(); err != nil {
		return out, fmt.Errorf("indexing %s: %w", file, err)
	}
	return out, json.Unmarshal(output.Bytes(), &out)
}

// indexRounds is the number of turns of each side. The table contains medians.
const indexRounds = 3

// searchIndexing compares the indexing of a store with the insertion of the same passages into a
// plain table, in alternating turns. It returns the file of the last indexed store, and the last
// plain table.
func (b *bench) searchIndexing(ctx context.Context, empty string, head millrace.View, pages int) (file string, peer *plainTable, err error) {
	var plain, plainPassed, plainC []float64
	var one, all []indexed
	for i := range indexRounds {
		if peer != nil {
			if err := peer.db.Close(); err != nil {
				return "", nil, err
			}
		}
		if peer, err = newPlain(ctx, filepath.Join(b.dir, fmt.Sprintf("plain-%d.db", i))); err != nil {
			return "", nil, err
		}
		if err := peer.fill(ctx, head); err != nil {
			return "", nil, err
		}
		inC, err := peer.inC(ctx)
		if err != nil {
			return "", nil, err
		}
		plain, plainPassed, plainC = append(plain, peer.cpu), append(plainPassed, peer.passed), append(plainC, inC)
		for processors, into := range []*[]indexed{&all, &one} {
			file = filepath.Join(b.dir, fmt.Sprintf("indexed-%d-%d.db", i, processors))
			if err := copyFile(file, empty); err != nil {
				return "", nil, err
			}
			got, err := startIndexing(ctx, file, processors)
			if err != nil {
				return "", nil, err
			}
			*into = append(*into, got)
		}
	}
	of := func(list []indexed, f func(indexed) float64) float64 {
		var v []float64
		for _, x := range list {
			v = append(v, f(x))
		}
		return median(v)
	}
	cpu, passed := func(x indexed) float64 { return x.CPU }, func(x indexed) float64 { return x.Passed }
	what := fmt.Sprintf("indexing %d passages of %d pages", peer.passages, pages)
	for _, r := range []struct {
		how         string
		peer, ours  float64
		reach, unit string
	}{
		{"wall time, all processors", median(plainPassed), of(all, passed), "at most 2.5", "passed"},
		{"processor time, all processors", median(plain), of(all, cpu), "", "of processor time"},
		{"processor time, one processor", median(plain), of(one, cpu), "", "of processor time"},
	} {
		b.add(row{
			what: what + ": " + r.how, limit: fmt.Sprintf("%.1f s %s (insertion into a plain FTS5 table)", r.peer, r.unit),
			ours: fmt.Sprintf("%.1f s", r.ours), ratio: fmt.Sprintf("%.2f", r.ours/r.peer), reach: r.reach, good: r.ours <= 2.5*r.peer,
		})
	}
	b.add(row{
		what: what + ": processor time, one processor", limit: fmt.Sprintf("%.1f s of processor time (the same in C, by sqlite3)", median(plainC)),
		ours: fmt.Sprintf("%.1f s", of(one, cpu)), ratio: fmt.Sprintf("%.2f", of(one, cpu)/median(plainC)),
	})
	var rss [3]float64
	for i := range rss {
		rss[i] = of(all, func(x indexed) float64 { return x.RSS[i] })
	}
	b.add(row{
		what: "VmRSS of that, in its own process", limit: fmt.Sprintf("%.0f MB (a quarter of the pages)", rss[0]),
		ours: fmt.Sprintf("%.0f MB (half), %.0f MB (all)", rss[1], rss[2]), ratio: fmt.Sprintf("%.2f", rss[2]/rss[0]), reach: "at most 1.2", good: rss[2] <= 1.2*rss[0],
	})
	return file, peer, nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
