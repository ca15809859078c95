package testkit

import "syscall"

// freeSpace returns the free space of a folder in bytes, or 0 if the folder does not exist.
func freeSpace(dir string) uint64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}
