package testkit

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Environment variables by which the processes of one test binary recognize each other. Both
// contain the path of the scratch folder.
const (
	scratchVariable = "MILLRACE_TEST_SCRATCH" // set in the processes that tests start
	keeperVariable  = "MILLRACE_TEST_KEEPER"  // set in the keeper
)

// Main is the TestMain of a package whose tests write files or start processes. It provides a
// scratch folder, which contains every [testing.T.TempDir]. The folder is in memory if /dev/shm has
// enough space, because tests of a store spend most time on synchronous writes. TMPDIR overrides
// the location, and tests at full length use the disk.
//
// A second process, the keeper, waits until the test process ends, even if it ends by a panic, a
// timeout or a kill. The keeper then kills every process that has the folder in its environment or
// its arguments, and removes the folder. A test that leaves a process behind fails the package.
func Main(m *testing.M) {
	if dir := os.Getenv(keeperVariable); dir != "" {
		keep(dir)
		os.Exit(0)
	}
	if os.Getenv(scratchVariable) != "" {
		os.Exit(m.Run()) // a test started this process, and its keeper will end it
	}
	os.Exit(watched(m))
}

func watched(m *testing.M) int {
	dir, err := makeScratch()
	if err != nil {
		return complain(err)
	}
	exe, err := os.Executable()
	if err != nil {
		return complain(err)
	}
	keeper := exec.CommandContext(context.Background(), exe)
	keeper.Env = []string{keeperVariable + "=" + dir}
	pipe, err := keeper.StdinPipe()
	if err == nil {
		err = keeper.Start()
	}
	if err != nil {
		return complain(err)
	}
	code := m.Run()
	for end := time.Now().Add(10 * time.Second); ; {
		left := processes(dir, keeper.Process.Pid)
		if len(left) == 0 {
			break
		}
		if time.Now().After(end) {
			for pid, name := range left {
				code = complain(fmt.Errorf("a test left process %d behind: %s", pid, name))
			}
			break
		}
		wait(50 * time.Millisecond)
	}
	_ = pipe.Close()
	if err := keeper.Wait(); err != nil {
		return complain(fmt.Errorf("remove %s: %w", dir, err))
	}
	return code
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "testkit:", err)
	return 1
}

func wait(d time.Duration) { <-time.After(d) }

func makeScratch() (string, error) {
	parent := os.TempDir()
	if os.Getenv("TMPDIR") == "" && !Soaking() && freeSpace(memoryFolder) >= 2<<30 {
		parent = memoryFolder
	}
	dir, err := os.MkdirTemp(parent, "millrace-test-")
	if err != nil {
		return "", err
	}
	// Use the mode of /tmp, because servers that run as other users also have temporary files.
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil { //nolint:gosec
		return "", err
	}
	for name, value := range map[string]string{"TMPDIR": dir, scratchVariable: dir} {
		if err := os.Setenv(name, value); err != nil {
			return "", err
		}
	}
	return dir, nil
}

const memoryFolder = "/dev/shm"

// keep runs the keeper: it waits for the end of the process at the other end of its standard
// input, then cleans up.
func keep(dir string) {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	_, _ = io.Copy(io.Discard, os.Stdin)
	for range 100 {
		left := processes(dir, os.Getpid())
		for pid := range left {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
		err := os.RemoveAll(dir)
		if err == nil && len(left) == 0 {
			return
		}
		if err != nil {
			_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, _ error) error {
				if d != nil && d.IsDir() {
					_ = os.Chmod(name, 0o700) // nolint:gosec // folders that a test has made inaccessible
				}
				return nil
			})
		}
		wait(50 * time.Millisecond)
	}
	os.Exit(1)
}

// processes lists the processes that have a folder in their environment or arguments, by id, with
// their arguments. Without /proc it finds none. It omits this process and the one with the given
// id.
func processes(dir string, except int) map[int]string {
	found := map[int]string{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || pid == except {
			continue
		}
		args, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		env, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if bytes.Contains(args, []byte(dir)) || bytes.Contains(env, []byte(dir)) {
			found[pid] = string(bytes.ReplaceAll(args, []byte{0}, []byte{' '}))
		}
	}
	return found
}
