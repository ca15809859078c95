//go:build darwin || freebsd || netbsd

package tree

import (
	"io/fs"
	"syscall"
	"time"
)

// status returns when a file's state last changed, which no program can set back, and
// its inode; or its modification time and 0 if unavailable.
func status(info fs.FileInfo) (changed time.Time, inode uint64) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Ctimespec.Unix()), uint64(s.Ino)
	}
	return info.ModTime(), 0
}
