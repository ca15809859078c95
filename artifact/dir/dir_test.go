package dir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/artifact/artifacttest"
	"github.com/millrace/millrace/internal/testkit"
)

func openStore(place string) (artifact.Store, error) { return Open(place) }

func TestMain(m *testing.M) {
	artifacttest.Child(openStore)
	testkit.Main(m)
}

func newStore(t testing.TB) (*Store, string) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "artifacts")
	s, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, folder
}

func TestStore(t *testing.T) {
	artifacttest.Run(t, func(t testing.TB) artifact.Store {
		s, _ := newStore(t)
		return s
	})
}

func TestCrash(t *testing.T) {
	artifacttest.Crash(t, filepath.Join(t.TempDir(), "artifacts"), openStore)
}

// TestTwoStores checks that two stores in one folder see each other's artifacts.
func TestTwoStores(t *testing.T) {
	one, folder := newStore(t)
	two, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	if err := errors.Join(one.Put(t.Context(), "a/b", strings.NewReader("one")), two.Put(t.Context(), "a/b", strings.NewReader("second"))); err != nil {
		t.Fatal(err)
	}
	if info, err := two.Stat(t.Context(), "a/b"); err != nil || info.Size != 3 {
		t.Errorf("stat: %+v, %v", info, err)
	}
}

// TestPrivate checks that only the owner has access to the files.
func TestPrivate(t *testing.T) {
	s, folder := newStore(t)
	if err := s.Put(t.Context(), "a/b/c", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	want := map[string]fs.FileMode{".": fs.ModeDir | 0o700, unfinished: fs.ModeDir | 0o700, "a_": fs.ModeDir | 0o700, "a_/b_": fs.ModeDir | 0o700, "a_/b_/c": 0o600}
	if err := fs.WalkDir(os.DirFS(folder), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Mode() != want[name] {
			t.Errorf("%s has mode %v (%v), want %v", name, info.Mode(), err, want[name])
		}
		delete(want, name)
		return nil
	}); err != nil || len(want) > 0 {
		t.Errorf("not found: %v, %v", want, err)
	}
}

// TestUnfinished checks that Open removes abandoned uploads and keeps all others.
func TestUnfinished(t *testing.T) {
	s, folder := newStore(t)
	reading := readFunc(func([]byte) (int, error) {
		uploads, err := os.ReadDir(filepath.Join(folder, unfinished))
		if err != nil || len(uploads) != 1 {
			t.Errorf("%d uploads, %v", len(uploads), err)
		}
		return 0, errors.New("cause")
	})
	if err := s.Put(t.Context(), "a", reading); err == nil {
		t.Error("put returns nil")
	}
	for name, age := range map[string]time.Duration{"old": abandoned + time.Minute, "young": abandoned - time.Minute} {
		name, then := filepath.Join(folder, unfinished, name), time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Chtimes(name, then, then)); err != nil {
			t.Fatal(err)
		}
	}
	again, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	left, err := os.ReadDir(filepath.Join(folder, unfinished))
	if err != nil || len(left) != 1 || left[0].Name() != "young" {
		t.Errorf("uploads left: %v, %v", left, err)
	}
}

type readFunc func([]byte) (int, error)

func (r readFunc) Read(p []byte) (int, error) { return r(p) }

// TestForeign checks that List skips files that Put did not create, and that the store
// does not follow links out of the folder.
func TestForeign(t *testing.T) {
	s, folder := newStore(t)
	outside := t.TempDir()
	for _, name := range []string{"sub", "_", "A_"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".hidden", "NAME", "with space", "ends_", "sub/file", "_/a", "A_/a"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(folder, "out_")); err != nil {
		t.Fatal(err)
	}
	for info, err := range s.List(t.Context(), "") {
		t.Errorf("listed: %+v, %v", info, err)
	}
	if err := s.Put(t.Context(), "out/a", strings.NewReader("x")); millrace.ErrorCode(err) != "disk-error" {
		t.Errorf("put: %v", err)
	}
	if files, err := os.ReadDir(outside); err != nil || len(files) > 0 {
		t.Errorf("files outside: %v, %v", files, err)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		err      error
		sentinel error
		code     string
	}{
		{syscall.ENOSPC, millrace.ErrUnavailable, "disk-full"},
		{syscall.EDQUOT, millrace.ErrUnavailable, "disk-full"},
		{syscall.EFBIG, millrace.ErrUnavailable, "disk-full"},
		{syscall.EIO, millrace.ErrUnavailable, "disk-error"},
		{syscall.EACCES, millrace.ErrForbidden, "file-permission"},
		{syscall.EROFS, millrace.ErrForbidden, "file-permission"},
	} {
		err := explain("put artifact a", &fs.PathError{Op: "write", Path: "a", Err: c.err})
		if !errors.Is(err, c.sentinel) || millrace.ErrorCode(err) != c.code || !errors.Is(err, c.err) {
			t.Errorf("%v: %v with the code %s", c.err, err, millrace.ErrorCode(err))
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{
		file:                              "disk-error",
		filepath.Join(file, "a"):          "disk-error",
		filepath.Join(file+"absent", "a"): "no-folder",
	} {
		if s, err := Open(folder); millrace.ErrorCode(err) != want || s != nil {
			t.Errorf("open %s: %v, %v, want the code %s", folder, s, err, want)
		}
	}
}

// TestReaderError checks that Put does not report an error of the reader as an error of the store.
func TestReaderError(t *testing.T) {
	s, _ := newStore(t)
	err := s.Put(t.Context(), "a", readFunc(func([]byte) (int, error) { return 0, fs.ErrNotExist }))
	if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, millrace.ErrUnavailable) {
		t.Errorf("put: %v", err)
	}
}
