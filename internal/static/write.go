package static

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"os"
	"time"
)

// output is a file being written. It writes nothing as long as the bytes equal those of the
// existing file.
type output struct {
	build *Build
	name  string

	begun bool
	old   *os.File // the existing file, or nil if absent or not regular
	same  int64    // number of leading bytes that equal those of old
	tmp   *os.File
	at    string // name of tmp
	size  int64
	sum   hash.Hash
	buf   []byte
	mod   time.Time
}

func (o *output) begin() error {
	if o.begun {
		return nil
	}
	o.begun = true
	o.sum = sha256.New()
	info, err := o.build.root.Lstat(o.name)
	if err != nil || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // renaming the file reports the conflict
	}
	o.mod = info.ModTime()
	o.old, err = o.build.root.Open(o.name)
	return err
}

// Write appends to the file.
func (o *output) Write(p []byte) (int, error) {
	if err := o.begin(); err != nil {
		return 0, err
	}
	o.sum.Write(p)
	o.size += int64(len(p))
	if o.tmp == nil && o.old != nil {
		o.buf = append(o.buf[:0], p...)
		n, err := io.ReadFull(o.old, o.buf)
		if err == nil && bytes.Equal(o.buf[:n], p) {
			o.same += int64(n)
			return len(p), nil
		}
	}
	if err := o.divert(); err != nil {
		return 0, err
	}
	return o.tmp.Write(p)
}

// divert switches to a temporary file, and copies the equal bytes to it.
func (o *output) divert() (err error) {
	if o.tmp != nil {
		return nil
	}
	if o.tmp, o.at, err = o.build.files.Create(); err != nil || o.same == 0 {
		return err
	}
	_, err = io.Copy(o.tmp, io.NewSectionReader(o.old, 0, o.same))
	return err
}

// complete completes the file and reports whether it has changed. modified is its modification
// time; if zero, the current time.
func (o *output) complete(modified time.Time) (changed bool, err error) {
	if err := o.begin(); err != nil {
		return false, err
	}
	if o.tmp == nil && o.old != nil {
		info, err := o.old.Stat()
		if err != nil || info.Size() == o.same {
			return false, err
		}
	}
	if err := o.divert(); err != nil {
		return false, err
	}
	switch {
	case !modified.IsZero():
		if !o.mod.IsZero() && modified.Unix() <= o.mod.Unix() {
			// Clients that compare dates must detect the change.
			modified = o.mod.Truncate(time.Second).Add(time.Second)
		}
		o.mod = modified
		return true, o.build.root.Chtimes(o.at, modified, modified)
	default:
		info, err := o.tmp.Stat()
		if err != nil {
			return false, err
		}
		o.mod = info.ModTime()
		return true, nil
	}
}

// addToBatch adds a complete file to the batch, which renames it.
func (o *output) addToBatch() error {
	// Some systems cannot rename open files, or replace them.
	if err := o.closeFiles(); err != nil {
		return err
	}
	o.tmp = nil
	if o.build.files.Add(o.at, o.name, o.size) {
		return o.build.renameFiles()
	}
	return nil
}

// closeFiles closes the files.
func (o *output) closeFiles() error {
	var errs []error
	for _, f := range []*os.File{o.old, o.tmp} {
		if f == nil {
			continue
		}
		if err := f.Close(); !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
	}
	o.old = nil
	return errors.Join(errs...)
}

// finish completes a file and adds a line for it to the record.
func (o *output) finish(modified time.Time, e *entry) error {
	b := o.build
	changed, err := o.complete(modified)
	switch {
	case err != nil:
		return err
	case changed && !b.force && !b.owned[keyOf(o.name)] && b.there(o.name):
		b.refuse(o.name, cmp.Or(e.Path, "/"+o.name), e.Protocol)
		return nil
	case changed && b.inTheWay(o.name): // Finish first removes the conflicting file
		err = o.closeFiles()
		b.late = append(b.late, &output{build: b, name: o.name, tmp: o.tmp, at: o.at, size: o.size})
		o.tmp = nil // so that discard keeps the file
	case changed:
		err = o.addToBatch()
	}
	if err != nil {
		return err
	}
	e.Date = o.mod.UTC().Format(http.TimeFormat)
	b.Report.count(o.name, e.Protocol, o.size, changed)
	if e.Set > 0 {
		for n := b.recorded; n < e.Set; n++ {
			if err := b.write(&line{Header: b.lists[n]}); err != nil {
				return err
			}
			b.recorded = n + 1
		}
	}
	folded := keyOf(fold(o.name))
	p := b.names[folded]
	p.at = b.at
	b.names[folded] = p
	return b.write(&line{Name: o.name, Size: o.size, Sum: hex.EncodeToString(o.sum.Sum(nil)), entry: *e})
}

// inTheWay reports whether a folder has the name of the file, or a file has the name of
// one of its folders.
func (b *Build) inTheWay(name string) bool {
	if info, err := b.root.Lstat(name); err == nil && info.IsDir() {
		return true
	}
	for _, dir := range parents(name) {
		if info, err := b.root.Stat(dir); err == nil && !info.IsDir() {
			return true
		}
	}
	return false
}

// discard removes the file if it was not added to the batch. It may be called several times.
func (o *output) discard() error {
	err := o.closeFiles()
	if o.tmp != nil {
		if gone := o.build.root.Remove(o.at); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		o.tmp = nil
	}
	return err
}
