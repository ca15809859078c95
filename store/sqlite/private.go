package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/millrace/millrace"
)

// private makes the file of a store that is not there yet readable for its owner
// alone: it holds hidden pages, hashes of keys and what is asked for. SQLite
// gives the files beside it the same mode. One that is there keeps its own; it
// is not even opened, since closing it would end locks that others in this
// process have on it.
func private(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil //nolint:nilerr // SQLite comes upon it again
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: %w", millrace.ErrForbidden, err)
	} else if err != nil {
		return err
	}
	return f.Close()
}
