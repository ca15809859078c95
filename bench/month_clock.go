package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Environment variables of the binary that [bench.buildClocked] builds: the number of seconds by
// which its clock is ahead, and the factor by which its clock is faster.
const (
	clockName = "MILLRACE_BENCH_CLOCK"
	speedName = "MILLRACE_BENCH_SPEED"
)

// clockPatches are the changes to the clock of package time: file, number of matches,
// old line, new line.
var clockPatches = []struct {
	file     string
	times    int
	old, new string
}{
	{"time.go", 1, "	sec, nsec, mono := runtimeNow()\n", "	sec, nsec, mono := runtimeNow()\n	sec += ahead\n"},
	{"time.go", 1, "	mono -= startNano\n", "	mono -= startNano\n	sec, nsec, mono = faster(sec, nsec, mono)\n"},
	{"time.go", 2, "runtimeNano()-startNano", "(runtimeNano()-startNano)*speed"},
	{"sleep.go", 1, "runtimeNano() + int64(d)\n", "runtimeNano() + int64(d)/speed\n"},
	{"tick.go", 2, "when(d), int64(d)", "when(d), max(int64(d)/speed, 1)"},
}

const clockAdded = `package time

import "syscall"

func fromEnv(name string) (n int64) {
	s, _ := syscall.Getenv(name)
	for _, c := range s {
		n = n*10 + int64(c-'0')
	}
	return n
}

var ahead, speed = fromEnv("` + clockName + `"), max(fromEnv("` + speedName + `"), 1)

func faster(sec int64, nsec int32, mono int64) (int64, int32, int64) {
	more := int64(nsec) + mono*(speed-1)
	return sec + more/1e9, int32(more % 1e9), mono * speed
}
`

// buildClocked builds millrace with a patched clock: package time of the standard library adds the
// seconds from the environment, and runs faster. The command reads the kernel's clock directly, so
// there is no other way to change its time. Deadlines of connections use the real clock.
func (b *bench) buildClocked(ctx context.Context) (binary string, err error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	dir := filepath.Join(string(bytes.TrimSpace(root)), "src", "time")
	sources := map[string]string{"ahead.go": clockAdded}
	for _, p := range clockPatches {
		if sources[p.file] == "" {
			source, err := os.ReadFile(filepath.Join(dir, p.file))
			if err != nil {
				return "", err
			}
			sources[p.file] = string(source)
		}
		if n := strings.Count(sources[p.file], p.old); n != p.times {
			return "", fmt.Errorf("%s of package time has %q %d times, not %d", p.file, p.old, n, p.times)
		}
		sources[p.file] = strings.ReplaceAll(sources[p.file], p.old, p.new)
	}
	replace := map[string]string{}
	for name, source := range sources {
		file := filepath.Join(b.dir, name)
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(dir, name)] = file
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(b.dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(b.dir, "millrace-clocked")
	c := exec.CommandContext(ctx, "go", "build", "-overlay", file, "-o", binary, "./cmd/millrace")
	c.Dir = ".."
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build millrace with a patched clock: %w\n%s", err, out)
	}
	return binary, nil
}

// clocked returns a command that runs m.binary with its clock set to at.
func (m *month) clocked(ctx context.Context, at time.Time, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, m.binary, args...)
	ahead := int64(time.Until(at) / time.Second)
	c.Env = []string{"HOME=" + m.dir, "PATH=/usr/bin:/bin", "TZ=UTC", clockName + "=" + strconv.FormatInt(max(0, ahead), 10)}
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	return c
}

// publisher is a running `millrace serve` of the month's folder.
type publisher struct {
	address string // address that the server listens on
	stop    func()
}

var (
	listening = regexp.MustCompile(`msg=listening address=(\S+)`)
	published = regexp.MustCompile(`msg=published seq=(\d+) `)
	ingested  = regexp.MustCompile(`msg=ingested `)
)

// publish starts a server with its clock set to at, and waits until it has published the folder.
// The parameter changed reports whether the folder has changed since the last start.
func (m *month) publish(ctx context.Context, at time.Time, changed bool) (*publisher, error) {
	p, err := m.start(ctx, at, !changed)
	for range 9 {
		if !errors.Is(err, errPaused) {
			break
		}
		p.stop()
		p, err = m.start(ctx, at, true)
	}
	return p, err
}

// errPaused reports that a server published an edition when it started, because documents were
// due, and now pauses before the next edition. A restart is faster than waiting.
var errPaused = errors.New("millrace serve pauses publishing")

// start is like publish, but does not restart the server. again reports that the folder was read
// before, and only the edition may be missing.
func (m *month) start(ctx context.Context, at time.Time, again bool) (_ *publisher, err error) {
	ctx, cancel := context.WithCancel(ctx)
	c := m.clocked(ctx, at, "serve", m.folder, "--listen", "127.0.0.1:0", "--base-url", m.base, "--store", m.store, "--as", m.as)
	stderr, err := c.StderrPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	p := &publisher{stop: sync.OnceFunc(func() { cancel(); _ = c.Wait() })}
	defer func() {
		if err != nil && !errors.Is(err, errPaused) {
			p.stop()
		}
	}()
	output, ready := make(chan string), make(chan struct{})
	defer close(ready)
	go func() {
		defer close(output)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			select {
			case output <- lines.Text():
			case <-ready:
			}
		}
		_, _ = io.Copy(io.Discard, stderr) // discard all output after a line that is too long
	}()
	var seen []string
	taken := again
	var paused, unchanged <-chan time.Time
	for took := time.After(5 * time.Minute); ; {
		select {
		case line, ok := <-output:
			if !ok {
				return nil, fmt.Errorf("millrace serve exited: %q", seen)
			}
			seen = append(seen, line)
			if f := listening.FindStringSubmatch(line); f != nil {
				p.address = f[1]
			}
			seq := m.seq
			if f := published.FindStringSubmatch(line); f != nil {
				if seq, err = strconv.ParseInt(f[1], 10, 64); err != nil {
					return nil, err
				}
			}
			switch {
			case taken && seq > m.seq: // ignore an edition of the previous day's pages with documents that were due
				m.seq = seq
				return p, nil
			case ingested.MatchString(line):
				taken, paused = true, time.After(8*time.Second)
			case again && strings.HasPrefix(line, "ready "):
				unchanged = time.After(3 * time.Second) // if no edition is published by then, there are no changes
			}
		case <-unchanged:
			return p, nil
		case <-paused:
			return p, errPaused
		case <-took:
			return nil, fmt.Errorf("millrace serve did not publish in time: %q", seen)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// monthPull is the part of a pull's report that month reads.
type monthPull struct {
	pullReport
	Via   string
	Error string
}

// pull runs `millrace pull` with its clock set to at.
func (m *month) pull(ctx context.Context, at time.Time, store string, args ...string) (r monthPull, err error) {
	args = append([]string{"pull", m.base, "--store", store, "--allow-private", "--json", "--unchanged"}, args...)
	c := m.clocked(ctx, at, args...)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err == nil && r.Error != "" {
		err = errors.New(r.Error)
	}
	if err != nil {
		return r, fmt.Errorf("millrace pull %q: %w\n%s%s", args, err, out, errs.String())
	}
	return r, nil
}
