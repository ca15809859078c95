//go:build unix

package main

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// SIGTERM ends a command within 2 s, even while it reads a file of 50 GB.
func TestTerminate(t *testing.T) {
	t.Parallel()
	site := copySite(t, "handbook")
	huge := filepath.Join(site, "huge.css")
	robots := copySite(t, "handbook")
	for _, name := range []string{huge, filepath.Join(robots, "robots.txt"), filepath.Join(robots, "huge.html")} {
		write(t, name, "")
		if err := os.Truncate(name, 50<<30); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	for name, c := range map[string]struct {
		args  []string
		begun func(c *exec.Cmd) bool // reports whether the command reads the file; nil = after some time
	}{
		"build": {[]string{"build", site, "--out", out, "--base-url", "https://x.example/"}, func(*exec.Cmd) bool {
			parts, _ := filepath.Glob(filepath.Join(out, ".millrace", "tmp-*"))
			for _, p := range parts {
				if info, err := os.Stat(p); err == nil && info.Size() > 1<<20 {
					return true
				}
			}
			return false
		}},
		"report": {[]string{"report", huge}, nil},
		"serve": {[]string{"serve", robots, "--listen", "127.0.0.1:0"}, func(c *exec.Cmd) bool {
			m := readyLine.FindStringSubmatch(c.Stderr.(*buffer).String())
			if m == nil {
				return false
			}
			resp, err := http.Get(m[1] + "robots.txt") // building the response must not read the whole file
			if err != nil {
				return false
			}
			return resp.Body.Close() == nil
		}},
		"download": {[]string{"serve", site, "--listen", "127.0.0.1:0"}, func(c *exec.Cmd) bool {
			m := readyLine.FindStringSubmatch(c.Stderr.(*buffer).String())
			if m == nil {
				return false
			}
			resp, err := http.Get(m[1] + "huge.css")
			if err == nil {
				t.Cleanup(func() { resp.Body.Close() }) // the client reads nothing before that
			}
			return err == nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := asProcess(t.Context(), t, c.args...)
			cmd.Stderr, cmd.Stdout = new(buffer), new(bytes.Buffer)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			if c.begun != nil {
				eventually(t, "the command reads the file", func() bool { return c.begun(cmd) })
			} else {
				time.Sleep(500 * time.Millisecond)
			}
			start := time.Now()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			err := <-done
			if since := time.Since(start); since > 15*time.Second { // more than 2 s, because tests share the machine; less than reading 50 GB takes
				t.Errorf("the command ended after %s", since)
			}
			if _, exit := errors.AsType[*exec.ExitError](err); err != nil && !exit {
				t.Error(err)
			}
		})
	}
	// A configuration file of that size is not read.
	if exit, _, output := command(t, nil, "serve", "--config", huge); exit != exitUsage {
		t.Errorf("exit %d: %s", exit, output)
	}
}
