package folder

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/millrace/millrace"
)

func makePipe(t *testing.T, name string) {
	t.Helper()
	must(t, syscall.Mkfifo(name, 0o644))
}

// asNobody runs a function without the privileges of root over files.
func asNobody(t *testing.T, dir string, run func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		run()
		return
	}
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		must(t, os.Chmod(d, 0o755))
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0); e != 0 {
		t.Fatal("setfsuid: ", e)
	}
	defer syscall.RawSyscall(syscall.SYS_SETFSUID, 0, 0, 0)
	run()
}

func TestUnreadable(t *testing.T) {
	f, dir := site(t, map[string]string{"index.html": html("Home", ""), "closed.html": html("Closed", ""), "shut/a.html": html("A", "")})
	must(t, os.Chmod(filepath.Join(dir, "closed.html"), 0))
	must(t, os.Chmod(filepath.Join(dir, "shut"), 0))
	t.Cleanup(func() { os.Chmod(filepath.Join(dir, "shut"), 0o755) })
	asNobody(t, dir, func() {
		got := walk(t, f)
		if got.mark.Complete {
			t.Error("the list is complete without the pages of a directory that could not be read")
		}
		if !errors.Is(got.skipped["/shut/"], millrace.ErrForbidden) {
			t.Errorf("skipped %v", got.skipped)
		}
		if _, err := f.Page(t.Context(), millrace.Ref{URL: "/closed.html"}); !errors.Is(err, millrace.ErrForbidden) {
			t.Errorf("a file without read permission: %v", err)
		}
		for d, want := range map[string]error{"shut": millrace.ErrForbidden} {
			if _, err := New(filepath.Join(dir, d), nil); !errors.Is(err, want) {
				t.Errorf("New(%s) = %v", d, err)
			}
		}
	})
}
