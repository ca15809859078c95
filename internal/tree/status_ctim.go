//go:build linux || openbsd || dragonfly || solaris

package tree

import (
	"io/fs"
	"syscall"
	"time"
)

// status returns the time of the last change of a file's state, which no program can set back, and
// the inode of the file. If these are unavailable, it returns the modification time and 0.
func status(info fs.FileInfo) (changed time.Time, inode uint64) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Ctim.Unix()), s.Ino
	}
	return info.ModTime(), 0
}
