package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/millrace/millrace/bench/feeder"
)

// feederServer is a process that serves one site in OpenFeeder only.
type feederServer struct {
	*server
	in  io.Writer
	out *bufio.Reader
}

// startFeeder starts the server. If its command does not exist, startFeeder builds it first.
func (b *bench) startFeeder(ctx context.Context, t feeder.Task) (*feederServer, error) {
	exe := filepath.Join(b.dir, "feederd")
	if _, err := os.Stat(exe); err != nil {
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", exe, "./feeder/feederd").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build OpenFeeder server: %w\n%s", err, out)
		}
	}
	t.CPU = os.Getenv("MILLRACE_BENCH_CPU")
	raw, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, exe, string(raw))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	// The process exits when its standard input is closed.
	s := &feederServer{&server{pid: c.Process.Pid, stop: func() { _ = in.Close(); _ = c.Wait() }}, in, bufio.NewReader(out)}
	if err := s.read(&s.url); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// do sends a command and decodes the response.
func (s *feederServer) do(command string, answer any) error {
	if _, err := fmt.Fprintln(s.in, command); err != nil {
		return err
	}
	return s.read(answer)
}

func (s *feederServer) read(answer any) error {
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("OpenFeeder server exited: %w", err)
	}
	return json.Unmarshal(line, answer)
}
