//go:build !(linux || openbsd || dragonfly || solaris || darwin || freebsd || netbsd)

package tree

import (
	"io/fs"
	"time"
)

// status returns a file's modification time and 0, the best that is available.
func status(info fs.FileInfo) (changed time.Time, inode uint64) {
	return info.ModTime(), 0
}
