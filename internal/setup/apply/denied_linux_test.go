package apply

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Without permissions, the error names a file and sudo.
func TestApplyDenied(t *testing.T) { //nolint:paralleltest // the test changes the user of its thread
	m := newMachine(t, "nginx")
	sites := filepath.Join(m.root, "etc/nginx/sites-available")
	for _, d := range []string{filepath.Join(m.root, "etc"), filepath.Join(m.root, "etc/nginx/sites-enabled"), m.root, filepath.Dir(m.root)} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{filepath.Join(m.root, "etc"), sites} {
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		err := func() error {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			if os.Geteuid() == 0 { // root can write everywhere, so use another file system user
				if _, _, e := syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0); e != 0 {
					t.Fatal(e)
				}
				defer syscall.RawSyscall(syscall.SYS_SETFSUID, 0, 0, 0)
			}
			a := m.applier("nginx")
			_, err := a.Prepare(t.Context())
			return err
		}()
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "sudo") || !strings.Contains(err.Error(), m.root+"/etc/") {
			t.Errorf("%v", err)
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		m.undone("denied")
	}
}
