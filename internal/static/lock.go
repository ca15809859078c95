package static

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/millrace/millrace"
)

// lockFolder locks the folder for this build until the lock is closed. The system releases the
// lock when the process ends. On a file system without locks, several builds can run at the
// same time.
func (b *Build) lockFolder() (*flock.Flock, error) {
	name := filepath.Join(b.dir, filepath.FromSlash(lockName))
	for {
		f := flock.New(name, flock.SetPermissions(0o644))
		locked, err := f.TryLock()
		if err != nil && !errors.Is(err, errors.ErrUnsupported) {
			return nil, err
		}
		if err == nil && !locked {
			return nil, fmt.Errorf("%w: another build is writing to it", millrace.ErrConflict)
		}
		opened, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		now, err := b.root.Stat(lockName)
		if err == nil && os.SameFile(opened, now) {
			return f, nil
		}
		// The previous build removed the file before it closed its lock.
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
