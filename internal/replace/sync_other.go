//go:build !linux

package replace

import (
	"errors"
	"os"
)

// syncFileSystem returns errors.ErrUnsupported, because this system has no such call.
func syncFileSystem(*os.Root) error { return errors.ErrUnsupported }
