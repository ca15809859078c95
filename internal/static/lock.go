package static

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/lock"
)

// lockFolder gets the folder for this build alone, until the file is closed,
// which the system does for a build that is killed. Where the file system
// knows no locks, builds are not kept apart.
func (b *Build) lockFolder() (*os.File, error) {
	name := filepath.Join(b.dir, filepath.FromSlash(lockName))
	for {
		f, err := lock.Try(name)
		if errors.Is(err, lock.ErrHeld) {
			return nil, fmt.Errorf("%w: another build is writing to it", millrace.ErrConflict)
		}
		if err != nil {
			return nil, err
		}
		held, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		now, err := b.root.Lstat(lockName)
		if err == nil && os.SameFile(held, now) {
			return f, nil
		}
		// The one before has taken it away with the folder, in between.
		if err := f.Close(); err != nil {
			return nil, err
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err := b.root.MkdirAll(hidden, 0o755); err != nil {
			return nil, err
		}
	}
}
