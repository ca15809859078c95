package replace

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncFileSystem makes all files durable that are in the same file system as a folder.
func syncFileSystem(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd()))) //nolint:gosec // a descriptor fits an int
}
