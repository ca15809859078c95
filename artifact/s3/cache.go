package s3

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace"
)

// cache stores objects as files in a folder, which several processes may share.
type cache struct {
	root  *os.Root
	limit int64 // maximum total size of the files, in bytes

	mu   sync.Mutex
	used int64 // total size of the files at the last count, plus the files added since, in bytes
}

const (
	tempPrefix = "temp-"
	// If a temporary file is older than this, the process that wrote it was killed.
	abandoned = 24 * time.Hour
	// The modification time of a used file is renewed at most once in this interval.
	usedEvery = time.Minute
)

// openCache opens the cache in a folder. It creates the folder and its parent folder if necessary.
// limit is in bytes.
func openCache(folder string, limit int64) (*cache, error) {
	for _, name := range []string{filepath.Dir(folder), folder} {
		if err := os.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, cacheError(err)
		}
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, cacheError(err)
	}
	c := &cache{root: root, limit: limit}
	return c, cacheError(c.evict())
}

func cacheError(err error) error {
	if err == nil {
		return nil
	}
	return millrace.Coded("file-permission", fmt.Errorf("cache of artifacts: %w: %w", millrace.ErrForbidden, err))
}

// file returns the name of the file of an object.
func (*cache) file(object string) string { return strings.ReplaceAll(object, "/", "-") }

// open opens the file of an object.
func (c *cache) open(object string) (*os.File, error) {
	f, err := c.root.Open(c.file(object))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if info, err := f.Stat(); err == nil && now.Sub(info.ModTime()) > usedEvery {
		_ = c.root.Chtimes(c.file(object), now, now) // if this fails, the file is evicted sooner
	}
	return f, nil
}

// read returns the bytes of an object.
func (c *cache) read(object string) ([]byte, error) { return c.root.ReadFile(c.file(object)) }

// remove removes the file of an object.
func (c *cache) remove(object string) { _ = c.root.Remove(c.file(object)) }

// add adds an object to the cache. write writes the bytes of the object to a file. A file of more
// than a quarter of the limit is not kept. add syncs the file, because nothing would detect a file
// that a power cut has damaged.
func (c *cache) add(object string, write func(f *os.File) error) error {
	temp := tempPrefix + rand.Text()
	f, err := c.root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer c.root.Remove(temp) //nolint:errcheck // no effect after the rename; otherwise, evict removes the file later
	err = write(f)
	size, seekErr := f.Seek(0, io.SeekEnd)
	if err = cmp.Or(err, seekErr); err == nil && size <= c.limit/4 {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err != nil || size > c.limit/4 {
		return err
	}
	if err := c.root.Rename(temp, c.file(object)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used += size; c.used > c.limit {
		return c.evict()
	}
	return nil
}

// files returns the files of objects, starting with the least recently used.
func (c *cache) files() (files []fs.FileInfo, err error) {
	entries, err := fs.ReadDir(c.root.FS(), ".")
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if !strings.HasPrefix(e.Name(), tempPrefix) {
			files = append(files, info)
		} else if time.Since(info.ModTime()) > abandoned {
			_ = c.root.Remove(e.Name())
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	return files, err
}

// evict computes the total size of the files. If it exceeds the limit, evict removes the least
// recently used files until the size is at most nine tenths of the limit.
func (c *cache) evict() error {
	files, err := c.files()
	c.used = 0
	for _, info := range files {
		c.used += info.Size()
	}
	if c.used <= c.limit {
		return err
	}
	for _, info := range files {
		if c.used <= c.limit-c.limit/10 {
			break
		}
		_ = c.root.Remove(info.Name())
		c.used -= info.Size()
	}
	return err
}
