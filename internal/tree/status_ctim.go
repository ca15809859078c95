//go:build linux || openbsd || dragonfly || solaris

package tree

import (
	"io/fs"
	"syscall"
	"time"
)

// status returns the time at which a file's state last changed, which no program can set back, and
// the file's inode. If these are unavailable, it returns the modification time and 0.
func status(info fs.FileInfo) (changed time.Time, inode uint64) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Ctim.Unix()), s.Ino
	}
	return info.ModTime(), 0
}
