package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/millrace/millrace/internal/report"
)

// logMemory is the memory limit in MB.
const logMemory = 100

// accessLog compares the speed of `millrace report` for a compressed access log with that of
// counting the lines of the log.
func (b *bench) accessLog(ctx context.Context, n int) error {
	for _, kind := range []struct {
		name     string
		distinct bool
	}{{"", false}, {", a different path and bot in each request", true}} {
		file := filepath.Join(b.dir, "access.log.gz")
		if err := writeLog(file, n, kind.distinct); err != nil {
			return err
		}
		var memory float64
		count := func(ctx context.Context) (work, error) {
			w, err := ended(exec.CommandContext(ctx, "sh", "-c", `zcat "$1" | wc -l`, "sh", file))
			w.units = float64(n)
			return w, err
		}
		read := func(ctx context.Context) (work, error) {
			c := exec.CommandContext(ctx, b.binary, "report", file, "--json")
			var out bytes.Buffer
			c.Stdout = &out
			w, peak, err := endedWatched(c)
			w.units, memory = float64(n), max(memory, peak)
			var r report.Report
			if err = errors.Join(err, json.Unmarshal(out.Bytes(), &r)); err == nil && r.Served[0].Log.Lines != int64(n) {
				err = fmt.Errorf("read %d of %d lines", r.Served[0].Log.Lines, n)
			}
			return w, err
		}
		turns := b.turns
		if n >= 10_000_000 {
			turns = min(turns, 3)
		}
		found, err := duel(ctx, turns, count, read)
		if err != nil {
			return err
		}
		r := found.row(fmt.Sprintf("report of an access log of %d lines, gzip%s", n, kind.name), "lines", "zcat \\| wc -l", 0.05)
		r.good = r.good && found.Rate >= 0.05
		b.add(r)
		b.add(row{
			what: "the same: peak memory", limit: fmt.Sprintf("%d MB", logMemory), ours: fmt.Sprintf("%.0f MB", memory),
			ratio: fmt.Sprintf("%.2f", memory/logMemory), reach: "below 1", good: memory < logMemory,
		})
	}
	return nil
}

// endedWatched runs a command. It returns the work of the command, with units unset, and its peak
// resident memory in MB. It does not use [maxMemory], whose result would include the memory of
// this process.
func endedWatched(c *exec.Cmd) (w work, peak float64, err error) {
	began := time.Now()
	if err := c.Start(); err != nil {
		return w, 0, err
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err = <-done:
			return work{passed: time.Since(began), spent: c.ProcessState.UserTime() + c.ProcessState.SystemTime()}, peak, err
		case <-tick.C:
			if now, err := statusMB(c.Process.Pid, "VmHWM:"); err == nil {
				peak = max(peak, now)
			}
		}
	}
}

// writeLog writes a log of 60 days in nginx's combined format, with the duration of each request
// appended. A third of the requests are from bots; if distinct is set, each has its own path and bot.
func writeLog(name string, n int, distinct bool) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(z, 1<<20)
	rng := rand.New(rand.NewPCG(1, 1))
	start := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	names := []string{"GPTBot/1.2", "ClaudeBot/1.0", "Googlebot/2.1", "bingbot/2.0", "PerplexityBot/1.0", "CCBot/2.0", "Amazonbot/0.1", "Bytespider"}
	for i := range n {
		at := start.Add(time.Duration(i) * 60 * 24 * time.Hour / time.Duration(n)).Format("02/Jan/2006:15:04:05 -0700")
		page := int(rng.ExpFloat64()*3000) % 20_000
		path := fmt.Sprintf("/%d/%02d/%s-%s-%d/", 2008+page%18, page%12+1, words[page%len(words)], words[page/7%len(words)], page)
		status, size := 200, 15_000+page*7919%90_000
		switch k := rng.IntN(100); {
		case k < 20:
			path = fmt.Sprintf("/img/%d.webp", rng.IntN(3000))
		case k < 30:
			status, size = 304, 0
		case k < 35:
			path, status, size = fmt.Sprintf("/%x", rng.IntN(1<<24)), 404, 150
		case k < 38:
			path = "/robots.txt"
		}
		agent := fmt.Sprintf("Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36", 90+rng.IntN(60))
		if rng.IntN(3) == 0 {
			agent = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; " + names[rng.IntN(len(names))] + "; +https://bots.example/)"
		}
		if distinct {
			path, agent = fmt.Sprintf("/%d%s", i, path), fmt.Sprintf("Spider-%d/1.0 (+https://bots.example/)", i)
		}
		fmt.Fprintf(w, "%d.%d.%d.%d - - [%s] \"GET %s HTTP/1.1\" %d %d \"https://www.example.com/\" \"%s\" 0.%03d\n",
			1+rng.IntN(220), rng.IntN(256), rng.IntN(256), rng.IntN(256), at, path, status, size, agent, rng.IntN(400))
	}
	return errors.Join(w.Flush(), z.Close())
}
