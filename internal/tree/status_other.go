//go:build !(linux || openbsd || dragonfly || solaris || darwin || freebsd || netbsd)

package tree

import (
	"io/fs"
	"time"
)

// status returns a file's modification time and 0, because the time of the last change and the
// inode are unavailable.
func status(info fs.FileInfo) (changed time.Time, inode uint64) {
	return info.ModTime(), 0
}
