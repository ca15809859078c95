package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace"
)

// scpTask is the task of a child process, which gets it in MILLRACE_BENCH_SCP.
type scpTask struct {
	Words string // file of the author's words
	Pages int
	Most  int    // bytes of the largest page; 0 = like the others
	Dir   string // folder to write the snapshot to
	File  string // snapshot to read; "" = write one
	Bytes int    // decoded size of File, to measure rates; 0 = measure memory
	Turns int    // number of turns of each side, to measure rates
}

// scpPeak is the result of the child process. Idle and Most are resident memory in MB.
type scpPeak struct {
	File    string
	Idle    float64
	Most    float64
	Largest int      // length of the longest line in bytes
	Rates   [2]score // rates in MB: verification alone, and a complete read
}

// scpMemory measures the peak memory of writing and of reading snapshots.
func (b *bench) scpMemory(ctx context.Context, words string, sizes []int) error {
	tasks := make([]scpTask, 0, len(sizes)+1)
	for _, n := range sizes {
		tasks = append(tasks, scpTask{Words: words, Pages: n})
	}
	tasks = append(tasks, scpTask{Words: words, Pages: 2_000, Most: 90_000_000})
	for _, t := range tasks {
		dir, err := os.MkdirTemp(b.dir, "scp-")
		if err != nil {
			return err
		}
		t.Dir = dir
		wrote, err := scpChild(ctx, t)
		if err != nil {
			return err
		}
		t.Dir, t.File = "", wrote.File
		read, err := scpChild(ctx, t)
		if err != nil {
			return err
		}
		for _, side := range []struct {
			what string
			peak scpPeak
		}{{"writing", wrote}, {"reading", read}} {
			limit := 64 + 3*float64(wrote.Largest)/(1<<20)
			over := side.peak.Most - side.peak.Idle
			b.add(row{
				what: fmt.Sprintf("peak memory of %s %d pages, the largest of %.1f kB, above that of the idle process (%.0f MB)",
					side.what, t.Pages, float64(wrote.Largest)/1e3, side.peak.Idle),
				limit: fmt.Sprintf("%.0f MB", limit), ours: fmt.Sprintf("%.0f MB", over),
				ratio: fmt.Sprintf("%.2f", over/limit), reach: "at most 1", good: over <= limit,
			})
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

// scpChild runs this program again for one task.
func scpChild(ctx context.Context, t scpTask) (p scpPeak, err error) {
	exe, err := os.Executable()
	if err != nil {
		return p, err
	}
	raw, err := json.Marshal(t)
	if err != nil {
		return p, err
	}
	c := exec.CommandContext(ctx, exe)
	c.Env = append(os.Environ(), "MILLRACE_BENCH_SCP="+string(raw), "GOMAXPROCS=1")
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		return p, fmt.Errorf("SCP process: %w\n%s", err, errs.String())
	}
	return p, json.Unmarshal(out, &p)
}

// scpOnce runs in the child process.
func scpOnce(raw string) {
	p, err := func() (p scpPeak, err error) {
		// Use the garbage collector settings of the commands that write (build, serve) and read (pull).
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(104 << 20)
		var t scpTask
		if err := json.Unmarshal([]byte(raw), &t); err != nil {
			return p, err
		}
		switch {
		case t.Bytes > 0:
			return t.rates()
		case t.File != "":
			return t.read()
		}
		return t.write()
	}()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(p)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (t *scpTask) write() (p scpPeak, err error) {
	a, err := newAuthor(t.Words)
	if err != nil {
		return p, err
	}
	a.most = t.Most
	large := a.page(1, 0) // retained, so that the view generates it only once
	view := &pagesView{n: t.Pages, page: func(i int) *millrace.Page {
		if i == 1 {
			return large
		}
		return a.page(i, 0)
	}}
	if p.Idle, err = idle(); err != nil {
		return p, err
	}
	if p.File, err = snapshot(context.Background(), view, t.Dir); err != nil {
		return p, err
	}
	if p.Most, err = statusMB(os.Getpid(), "VmHWM:"); err != nil {
		return p, err
	}
	p.Largest, err = longestLine(p.File)
	return p, err
}

func (t *scpTask) read() (p scpPeak, err error) {
	f, err := os.Open(t.File)
	if err != nil {
		return p, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return p, err
	}
	if p.Idle, err = idle(); err != nil {
		return p, err
	}
	if err := readAll(context.Background(), f, info.Size(), t.Pages); err != nil {
		return p, err
	}
	p.Most, err = statusMB(os.Getpid(), "VmHWM:")
	return p, err
}

// idle returns the current memory of this process, and resets its peak.
func idle() (float64, error) {
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return 0, err
	}
	return residentMB(os.Getpid())
}

// longestLine returns the length of the longest line of a compressed file, in bytes.
func longestLine(file string) (longest int, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	d, err := zstd.NewReader(f)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	in, n := bufio.NewReader(d), 0
	for {
		part, err := in.ReadSlice('\n')
		n += len(part)
		longest = max(longest, n)
		switch {
		case err == nil:
			n = 0
		case errors.Is(err, io.EOF):
			return longest, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return 0, err
		}
	}
}
