package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/millrace/millrace"
)

// private creates the file of a new store with access for the owner only, because the store
// contains hidden pages, hashes of keys, and requests. SQLite gives its other files the same
// permissions. An existing file keeps its permissions. private does not open an existing file,
// because closing it would release the locks of this process.
func private(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil //nolint:nilerr // SQLite reports the error again
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: %w", millrace.ErrForbidden, err)
	} else if err != nil {
		return err
	}
	return f.Close()
}
