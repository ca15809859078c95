// Package replace writes files atomically and durably: after a failure or a power cut, a file is
// the old or the new one. A file is synced before it is renamed, and its folder after that. A
// [Batch] replaces many files with few syncs.
package replace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// File replaces a file with the output of write. Until the new file is completely on the disk, and
// after a failure, the old file stays. The new file has the permissions and the owner of the old
// one. A file that is not regular, such as a pipe or a device, is written to directly.
func File(name string, write func(io.Writer) error) error {
	// If the file is a symbolic link, replace its target.
	if real, err := filepath.EvalSymlinks(name); err == nil {
		name = real
	}
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("write %s: %w; name a file in it", name, syscall.EISDIR)
	case err == nil && !info.Mode().IsRegular():
		return stream(name, write)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return Files([]string{name}, func(f []*os.File) error {
		if err := write(f[0]); err != nil || info == nil {
			return err
		}
		if err := own(f[0], info); err != nil {
			return err
		}
		return f[0].Chmod(info.Mode().Perm())
	})
}

// Files replaces several files when all of the new ones are on the disk. If anything fails before
// that, it replaces none.
func Files(names []string, write func([]*os.File) error) (err error) {
	files := make([]*os.File, 0, len(names))
	defer func() {
		for _, f := range files {
			if gone := os.Remove(f.Name()); err != nil && !errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}()
	for _, name := range names {
		f, err := createTemp(name)
		if failed, ok := errors.AsType[*fs.PathError](err); ok {
			failed.Path = name // users do not know the temporary name
		}
		if err != nil {
			return err
		}
		defer f.Close()
		files = append(files, f)
	}
	if err := write(files); err != nil {
		return err
	}
	for _, f := range files {
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	for i, f := range files {
		if err := os.Rename(f.Name(), names[i]); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := SyncFolder(os.Open(filepath.Dir(name))); err != nil {
			return err
		}
	}
	return nil
}

// New writes a new file with the given permissions. If the file exists, it returns
// fs.ErrExist.
func New(name string, data []byte, mode fs.FileMode) error {
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, error(&fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}))
	}
	return Files([]string{name}, func(f []*os.File) error {
		if err := f[0].Chmod(mode); err != nil {
			return err
		}
		_, err := f[0].Write(data)
		return err
	})
}

func stream(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// createTemp creates a temporary file in the folder of the named file.
func createTemp(name string) (*os.File, error) {
	dir, base := filepath.Split(name)
	if len(base) > 100 {
		base = base[:100]
	}
	for i := 0; ; i++ {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf(".%s.new-%d", base, i)), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}
