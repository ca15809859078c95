package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

func TestOpenReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	benchSite(t, path).store.Close()
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 { // for root, the file system user is changed below instead
		if err := os.Chmod(filepath.Dir(path), 0o555); err != nil {
			t.Fatal(err)
		}
		defer os.Chmod(filepath.Dir(path), 0o755)
	}
	if os.Geteuid() == 0 { // root can write everywhere, so use another file system user
		for d := filepath.Dir(path); d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if _, _, e := syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0); e != 0 {
			t.Fatal(e)
		}
		defer syscall.RawSyscall(syscall.SYS_SETFSUID, 0, 0, 0)
	}
	if _, err := Open(t.Context(), path, nil); !errors.Is(err, millrace.ErrForbidden) {
		t.Errorf("open: %v", err)
	}
	// Reading needs no write permission, neither for the file nor for its folder.
	s, err := Open(t.Context(), path, &store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Sites(t.Context()) {
		if err != nil {
			t.Error(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
