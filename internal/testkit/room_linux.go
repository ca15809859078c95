package testkit

import "syscall"

// roomInMemory returns how many bytes a folder has room for, 0 if it is not there.
func roomInMemory(dir string) uint64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}
