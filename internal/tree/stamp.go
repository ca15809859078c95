package tree

import (
	"io/fs"
	"strconv"
	"time"
)

// Racy is the time within which two changes of a file can leave the same size and times, on the
// file systems with the coarsest clocks.
const Racy = 2 * time.Second

// Stamp distinguishes two states of a file without reading it.
type Stamp struct {
	size, modified, changed int64 // bytes, nanoseconds since 1970
	inode                   uint64
}

// StampOf returns the stamp of a file, and reports whether any later change is certain to change
// the stamp.
func StampOf(info fs.FileInfo, now time.Time) (Stamp, bool) {
	changed, inode := status(info)
	return Stamp{info.Size(), info.ModTime().UnixNano(), changed.UnixNano(), inode}, now.Sub(changed) >= Racy
}

// Changed returns the time at which a file's state last changed.
func Changed(info fs.FileInfo) time.Time {
	changed, _ := status(info)
	return changed
}

// Version returns the validator of a file's state, with rules as its prefix, or "" if the file may
// still change without a change to the validator.
func Version(rules string, info fs.FileInfo, now time.Time) string {
	s, sure := StampOf(info, now)
	if !sure {
		return ""
	}
	b := make([]byte, 0, 64)
	b = append(b, rules...)
	for _, n := range [...]uint64{uint64(s.size), uint64(s.modified), uint64(s.changed), s.inode} {
		b = append(b, '.')
		b = strconv.AppendUint(b, n, 36)
	}
	return string(b)
}
