//go:build unix

package replace

import (
	"io/fs"
	"os"
	"syscall"
)

// own gives a new file the owner and group of another file.
func own(f *os.File, like fs.FileInfo) error {
	is, err := f.Stat()
	if err != nil {
		return err
	}
	want, ok := like.Sys().(*syscall.Stat_t)
	have, known := is.Sys().(*syscall.Stat_t)
	if !ok || !known || want.Uid == have.Uid && want.Gid == have.Gid {
		return nil
	}
	return f.Chown(int(want.Uid), int(want.Gid))
}
