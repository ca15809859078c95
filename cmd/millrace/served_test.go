package main

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// served is a running `millrace serve`.
type served struct {
	url           string
	out           *buffer // standard error
	stdout        *buffer
	stop          func() int
	reloadSignals chan os.Signal
}

var (
	readyLine   = regexp.MustCompile(`(?m)^ready (https?://\S+)$`)
	configTaken = regexp.MustCompile(`level=INFO .* url=`) // the log line of a configuration that is in use
)

// serve starts `millrace serve` on a free port and waits until it is ready.
func serve(t *testing.T, args ...string) *served {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &served{out: &buffer{}, stdout: &buffer{}, reloadSignals: make(chan os.Signal)}
	p := newProcess(environment(map[string]string{"HOME": t.TempDir()}), strings.NewReader(""), s.stdout, s.out)
	p.reloadSignals = func() (<-chan os.Signal, func()) { return s.reloadSignals, func() {} }
	done := make(chan int, 1)
	go func() { done <- p.run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)) }()
	s.stop = sync.OnceValue(func() int { cancel(); return <-done })
	t.Cleanup(func() { s.stop() })
	deadline := time.After(5 * time.Minute)
	for {
		if m := readyLine.FindStringSubmatch(s.out.String()); m != nil {
			s.url = m[1]
			return s
		}
		select {
		case code := <-done:
			done <- code // for stop
			t.Fatalf("serve ended with %d:\n%s", code, s.out.String())
		case <-deadline:
			t.Fatalf("serve was not ready in time:\n%s", s.out.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// reload writes another configuration and reloads it.
func (s *served) reload(t *testing.T, file, config string) {
	t.Helper()
	write(t, file, config)
	n := len(configTaken.FindAllString(s.out.String(), -1))
	s.reloadSignals <- syscall.SIGHUP
	eventually(t, "the configuration is in use", func() bool { return len(configTaken.FindAllString(s.out.String(), -1)) > n })
}

// warnings returns the warnings of a log that have no error code.
func warnings(log string) (lines []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "level=WARN") && !strings.Contains(line, " code=") {
			lines = append(lines, line)
		}
	}
	return lines
}

// ended stops the server and fails the test unless it exits cleanly.
func (s *served) ended(t *testing.T) {
	t.Helper()
	if code := s.stop(); code != 0 {
		t.Errorf("exit %d:\n%s", code, s.out)
	}
}

// asProcess returns a command as a separate process, not started. The end of ctx kills
// it.
func asProcess(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(ctx, exe, args...)
	c.Env = []string{"MILLRACE_TEST_COMMAND=1", "HOME=" + t.TempDir()}
	return c
}
