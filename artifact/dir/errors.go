package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/millrace/millrace"
)

// explain wraps a file system error with the operation and its subject, a sentinel error and a
// code.
func explain(what string, err error) error {
	if err == nil {
		return nil
	}
	sentinel, code := millrace.ErrUnavailable, "disk-error"
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		sentinel, code = millrace.ErrForbidden, "file-permission"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		code = "disk-full"
	}
	return millrace.Coded(code, fmt.Errorf("%s: %w: %w", what, sentinel, err))
}
