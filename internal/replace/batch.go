package replace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
)

// A Batch replaces many files of a folder with few syncs. New files have temporary names
// until Rename, which makes them durable before it renames the first one. Therefore a
// power cut leaves each file old or new, never partial. A Batch is not safe for
// concurrent use.
type Batch struct {
	root     *os.Root
	prefix   string
	made     int // number of temporary files so far
	size     int64
	added    []rename
	unsynced []string // names of changed files that are not durable yet
}

type rename struct{ temp, name string }

// A batch is full when it has batchFiles files or batchBytes bytes. This limits the memory for the
// names, and the disk space for new files in addition to the old ones.
const (
	batchFiles = 1000
	batchBytes = 256 << 20
)

// NewBatch returns a batch for files below root. Temporary files have the prefix, which starts with
// an existing folder. NewBatch removes the temporary files that a killed process left.
func NewBatch(root *os.Root, prefix string) (*Batch, error) {
	b := &Batch{root: root, prefix: prefix}
	folder, err := root.Open(path.Dir(prefix))
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if ok, _ := path.Match(path.Base(prefix)+"*", n); ok {
			err = cmp.Or(err, b.remove(path.Join(path.Dir(prefix), n)))
		}
	}
	return b, err
}

// Create creates a temporary file, and returns its name below the root.
func (b *Batch) Create() (f *os.File, temp string, err error) {
	temp = fmt.Sprint(b.prefix, b.made)
	b.made++
	f, err = b.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o666)
	return f, temp, err
}

// Add adds a closed temporary file, which Rename renames to name. It returns true if the batch is
// full and the caller must call Rename.
func (b *Batch) Add(temp, name string, size int64) (full bool) {
	b.added = append(b.added, rename{temp, name})
	b.size += size
	return len(b.added) >= batchFiles || b.size >= batchBytes
}

// Added calls f with the name of each file that was added since the last Rename.
func (b *Batch) Added(f func(name string)) {
	for _, r := range b.added {
		f(r.name)
	}
}

// Changed makes Sync and Commit sync a file that was changed or removed without the batch.
func (b *Batch) Changed(name string) { b.unsynced = append(b.unsynced, name) }

// Rename makes the added files and the files in first durable, and then renames the added files. It
// creates missing folders.
func (b *Batch) Rename(first ...string) error {
	if len(b.added) == 0 {
		return nil
	}
	for _, r := range b.added {
		first = append(first, r.temp)
	}
	if err := b.sync(first); err != nil {
		return err
	}
	for len(b.added) > 0 {
		r := b.added[0]
		if err := b.root.MkdirAll(path.Dir(r.name), 0o777); err != nil {
			return err
		}
		if err := b.root.Rename(r.temp, r.name); err != nil {
			return err
		}
		b.added = b.added[1:]
		b.Changed(r.name)
	}
	b.size = 0
	return nil
}

// Sync makes all changes durable.
func (b *Batch) Sync() error { return b.sync(nil) }

// Commit makes all changes durable, and then renames a temporary file, durably. If the new file
// exists after a power cut, so do all earlier changes.
func (b *Batch) Commit(temp, name string) error {
	if err := b.sync([]string{temp}); err != nil {
		return err
	}
	if err := b.root.Rename(temp, name); err != nil {
		return err
	}
	return b.sync([]string{name})
}

// Discard removes the temporary files that were added since the last Rename.
func (b *Batch) Discard() error {
	var err error
	for _, r := range b.added {
		err = cmp.Or(err, b.remove(r.temp))
	}
	b.added = nil
	return err
}

func (b *Batch) remove(name string) error {
	if err := b.root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// fewFiles is the maximum number of files to sync one by one. For more files, it is faster to sync
// the whole file system, although that includes the files of other programs.
const fewFiles = 8

// sync makes the named and all unsynced files durable, with the folders above them.
func (b *Batch) sync(names []string) error {
	names = append(names, b.unsynced...)
	b.unsynced = nil
	if len(names) > fewFiles {
		if err := syncFileSystem(b.root); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	synced := make(map[string]bool)
	for _, name := range names {
		for ; !synced[name]; name = path.Dir(name) {
			synced[name] = true
			if err := b.syncOne(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// syncOne makes one file or folder durable, if it exists.
func (b *Batch) syncOne(name string) error {
	info, err := b.root.Lstat(name)
	switch {
	case err != nil:
		return nil // nolint:nilerr // the file was removed, which is durable when its folder is
	case info.IsDir():
		return SyncFolder(b.root.Open(name))
	case !info.Mode().IsRegular():
		return nil
	}
	flag := os.O_RDONLY
	if runtime.GOOS == "windows" { // Windows syncs only files that are open for writing
		flag = os.O_RDWR
	}
	f, err := b.root.OpenFile(name, flag, 0)
	if err != nil {
		return err
	}
	return cmp.Or(f.Sync(), f.Close())
}

// SyncFolder makes the entries of an open folder durable and closes it.
func SyncFolder(f *os.File, err error) error {
	if err != nil {
		return err
	}
	defer f.Close()
	if runtime.GOOS == "windows" { // Windows cannot sync folders
		return nil
	}
	return f.Sync()
}
