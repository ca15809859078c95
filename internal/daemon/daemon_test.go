package daemon

import (
	"net"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// environment returns an environment with the given names.
func environment(names ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, n := range names {
			if n == name {
				return "1", true
			}
		}
		return "", false
	}
}

func percent() int {
	n := debug.SetGCPercent(lazy)
	debug.SetGCPercent(n)
	return n
}

// The garbage collector runs more often while many streams are open.
func TestStreams(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(lazy))
	f := Memory{environment()}.Streams()
	for _, c := range []struct{ open, want int }{{255, lazy}, {256, eager}, {128, eager}, {127, lazy}, {200, lazy}} {
		if f(c.open); percent() != c.want {
			t.Errorf("%d streams: %d, want %d", c.open, percent(), c.want)
		}
	}
}

// Settings in the environment are not changed.
func TestMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(7))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		m := Memory{environment(name)}
		m.Limit()
		if m.SaveMemory(); percent() != 7 || m.Streams() != nil {
			t.Errorf("%s: %d", name, percent())
		}
	}
	m := Memory{environment()}
	if m.SaveMemory(); percent() != saving {
		t.Errorf("saving: %d", percent())
	}
	if m.Limit(); percent() != lazy || debug.SetMemoryLimit(-1) != softLimit {
		t.Errorf("limited: %d", percent())
	}
}

// The limit rises with the memory in use, so that the collector does not run all the time. It
// falls again when less is in use.
func TestLimitRises(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(lazy))
	Memory{environment()}.Limit()
	// The limit is set after a collection, by another goroutine.
	becomes := func(what string, is func(limit int64) bool) {
		t.Helper()
		for range 1000 {
			runtime.GC()
			if is(debug.SetMemoryLimit(-1)) {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Errorf("%s: the limit is %d", what, debug.SetMemoryLimit(-1))
	}
	used := make([]byte, 2*softLimit)
	becomes("much memory in use", func(limit int64) bool { return limit >= 5*softLimit/2 })
	runtime.KeepAlive(used)
	becomes("little memory in use", func(limit int64) bool { return limit == softLimit })
}

func TestNotify(t *testing.T) {
	name := filepath.Join(t.TempDir(), "socket")
	if err := Notify(name, "READY=1"); err == nil {
		t.Error("no socket, and no error")
	}
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := Notify(name, "READY=1", "STATUS=x"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err := socket.Read(b); err != nil || string(b[:n]) != "READY=1\nSTATUS=x" {
		t.Errorf("%q, %v", b[:n], err)
	}
	if err := Notify("", "READY=1"); err != nil {
		t.Error(err)
	}
}

func TestHangups(t *testing.T) {
	signals, stop := Hangups()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if s, more := <-signals; !more || s != syscall.SIGHUP {
		t.Error(s, more)
	}
	stop()
	if _, more := <-signals; more {
		t.Error("a signal after the end")
	}
}
