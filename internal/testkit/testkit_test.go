package testkit

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain can also run the test binary as one that panics, and as a server that such a test
// leaves running.
func TestMain(m *testing.M) {
	if os.Getenv(endVariable) == "serve" {
		time.Sleep(time.Hour)
	}
	Main(m)
}

const endVariable = "MILLRACE_TEST_END"

// TestEnds is the child of TestNothingLeft. It writes a file, starts a process and ends
// without any cleanup.
func TestEnds(t *testing.T) {
	end := os.Getenv(endVariable)
	if end == "" {
		t.Skip("MILLRACE_TEST_END is set only for the child of TestNothingLeft")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(os.Args[0]) // without t.Context: it must outlive the test
	server.Env = append(os.Environ(), endVariable+"=serve")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Println(dir, server.Process.Pid)
	switch end {
	case "return":
		return
	case "panic":
		panic("on purpose")
	case "panic elsewhere":
		go func() { panic("on purpose") }()
	case "kill":
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Kill()
		}
	}
	time.Sleep(time.Hour) // or until the time limit
}

func TestNothingLeft(t *testing.T) {
	if freeSpace("/proc") == 0 && freeSpace("/") == 0 {
		t.Skip("MILLRACE_TEST_END: only Linux lists the processes of a test")
	}
	t.Parallel()
	for _, end := range []string{"return", "panic", "panic elsewhere", "kill", "time limit"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			test := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEnds$", "-test.timeout=5s")
			test.Env = append(os.Environ(), endVariable+"="+end, scratchVariable+"=", "TMPDIR="+t.TempDir())
			out, err := test.StdoutPipe()
			if err == nil {
				err = test.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			var dir string
			var pid int
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if pid == 0 {
					_, _ = fmt.Sscan(lines.Text(), &dir, &pid)
				}
			}
			if err := test.Wait(); err == nil {
				t.Error("a test that leaves a process behind passes")
			}
			if pid == 0 || !strings.HasPrefix(dir, test.Env[len(test.Env)-1][len("TMPDIR="):]) {
				t.Fatalf("process %d, folder %q", pid, dir)
			}
			for stop := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
				_, err := os.Stat(filepath.Dir(filepath.Dir(dir)))
				if os.IsNotExist(err) && !alive(pid) {
					return
				}
				if time.Now().After(stop) {
					t.Fatalf("folder: %v, process: %v", err, alive(pid))
				}
			}
		})
	}
}

// alive reports whether a process runs. A zombie has no arguments.
func alive(pid int) bool {
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && len(args) > 0 && syscall.Kill(pid, 0) == nil
}

func TestFind(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := find("no-such-program|" + file); got != file {
		t.Errorf("%q", got)
	}
	if got := find("no-such-program"); got != "" {
		t.Errorf("%q", got)
	}
}
