package export

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/replace"
)

// maxKeptFiles is the maximum length of Counts.KeptFiles.
const maxKeptFiles = 100

// output is a folder of files that an export owns.
type output struct {
	root       *os.Root
	lock       *flock.Flock
	journal    *os.File
	batch      *replace.Batch
	journalBuf *bufio.Writer // buffer of the journal

	owned map[key]bool // folded names of files that earlier exports wrote
	names map[key]key  // files of this export: folded name to name
	old   []byte       // buffer for comparing a file

	ext string // extension of its files

	bytes                     int64
	files, unchanged, removed int
	keptFiles                 []string
}

// key is a hash of a name.
type key [8]byte

func keyOf(name string) (k key) {
	sum := sha256.Sum256([]byte(name))
	copy(k[:], sum[:])
	return k
}

// openFolder opens an existing folder for an export of files with the extension ext. It locks the
// folder until close.
func openFolder(dir, ext string) (_ *output, err error) {
	o := &output{ext: ext, owned: make(map[key]bool), names: make(map[key]key)}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.close())
		}
	}()
	if o.root, err = os.OpenRoot(dir); err != nil {
		return nil, err
	}
	if err := o.ours(); err != nil {
		return nil, err
	}
	if err := o.root.MkdirAll(hidden, 0o777); err != nil {
		return nil, err
	}
	o.lock = flock.New(filepath.Join(dir, filepath.FromSlash(lockName)), flock.SetPermissions(0o644))
	if locked, err := o.lock.TryLock(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	} else if err == nil && !locked {
		return nil, fmt.Errorf("%w: another export is writing to it", millrace.ErrConflict)
	}
	if o.batch, err = replace.NewBatch(o.root, tempName); err != nil {
		return nil, err
	}
	if err := o.recover(); err != nil {
		return nil, err
	}
	if o.journal, err = o.root.Create(journalName); err != nil {
		return nil, err
	}
	o.journalBuf = bufio.NewWriter(o.journal)
	return o, o.say(record{Format: format})
}

// ours returns an error if the folder contains files and was not written by an export.
func (o *output) ours() error {
	for _, name := range []string{manifestName, journalName} {
		if _, err := o.root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	d, err := o.root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, n := range names {
		if n != hidden {
			return millrace.Coded("foreign-folder", fmt.Errorf("%w: the folder contains %q and does not come from an export; use an empty folder", millrace.ErrInvalid, n))
		}
	}
	return nil
}

// unique returns a name that is unique in this export on any file system. It does not change the
// first of similar names.
func (o *output) unique(name, pageURL string) string {
	stem := strings.TrimSuffix(name, o.ext)
	for salt := pageURL; ; salt += "~" {
		folded := keyOf(fold(name))
		if _, ok := o.names[folded]; !ok {
			o.names[folded] = keyOf(name)
			return name
		}
		name = stem + "~" + short(salt) + o.ext
	}
}

// write writes a page's file, unless the bytes are unchanged.
func (o *output) write(name, pageURL string, b []byte) error {
	name = o.unique(name, pageURL)
	sum := sha256.Sum256(b)
	if err := o.say(record{File: name, Sum: hex.EncodeToString(sum[:])}); err != nil {
		return err
	}
	o.files++
	o.bytes += int64(len(b))
	info, err := o.root.Lstat(name)
	if err == nil && info.Mode().IsRegular() && info.Size() == int64(len(b)) {
		if same, err := o.same(name, b); err != nil || same {
			o.unchanged++
			return err
		}
	}
	if err == nil && !o.owned[keyOf(fold(name))] {
		return millrace.Coded("foreign-file", fmt.Errorf("%w: the file %s exists and does not come from an export", millrace.ErrConflict, name))
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, temp, err := o.batch.Create()
	if err != nil {
		return err
	}
	full := o.batch.Add(temp, name, int64(len(b)))
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err != nil || !full {
		return err
	}
	return o.commitFiles()
}

// commitFiles writes the buffered part of the journal, which has the names of the new files, and
// then renames these files.
func (o *output) commitFiles() error {
	if err := o.journalBuf.Flush(); err != nil {
		return err
	}
	return o.batch.Rename(journalName)
}

// same reports whether a file has these bytes.
func (o *output) same(name string, b []byte) (bool, error) {
	f, err := o.root.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	o.old = slices.Grow(o.old[:0], len(b))[:len(b)]
	n, err := io.ReadFull(f, o.old)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return n == len(b) && bytes.Equal(o.old, b), err
}

// finish removes files of earlier exports that have the same extension and are not in this export,
// except those of sites for which keep returns true. Then it makes the journal the manifest.
func (o *output) finish(keep func(site string) bool) error {
	if err := o.commitFiles(); err != nil {
		return err
	}
	m, err := o.root.Open(manifestName)
	if err != nil {
		return err
	}
	defer m.Close()
	changed := make(map[string]bool)
	_, err = records(m, func(r record) error {
		site, _, _ := strings.Cut(r.File, "/")
		if keep(site) || !strings.HasSuffix(r.File, o.ext) {
			folded := keyOf(fold(r.File))
			if _, ok := o.names[folded]; ok {
				return nil
			}
			o.names[folded] = keyOf(r.File)
			return o.say(r)
		}
		return o.sweep(r, changed)
	})
	if err != nil {
		return err
	}
	for name := range changed {
		o.keptFiles = append(o.keptFiles, name)
	}
	slices.Sort(o.keptFiles)
	o.keptFiles = o.keptFiles[:min(len(o.keptFiles), maxKeptFiles)]
	if err := o.journalBuf.Flush(); err != nil {
		return err
	}
	if err := errors.Join(o.journal.Close(), m.Close()); err != nil {
		return err
	}
	return o.batch.Commit(journalName, manifestName)
}

// sweep removes a file of an earlier export, unless it is in this export or was
// changed.
func (o *output) sweep(r record, changed map[string]bool) error {
	now, ok := o.names[keyOf(fold(r.File))]
	if ok && now == keyOf(r.File) {
		return nil
	}
	if _, err := o.root.Lstat(r.File); err != nil || ok && !o.listed(r.File) {
		return nil //nolint:nilerr // the file no longer exists, or is another name of a file of this export
	}
	b, err := o.root.ReadFile(r.File)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(b); r.Sum != hex.EncodeToString(sum[:]) {
		changed[r.File] = true
		return nil
	}
	if err := o.root.Remove(r.File); err != nil {
		return err
	}
	o.batch.Changed(r.File)
	delete(changed, r.File)
	o.removed++
	// Remove empty folders.
	for dir := path.Dir(r.File); dir != "." && o.root.Remove(dir) == nil; {
		dir = path.Dir(dir)
	}
	return nil
}

// listed reports whether a folder has a file with exactly this name.
func (o *output) listed(name string) bool {
	d, err := o.root.Open(path.Dir(name))
	if err != nil {
		return false
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	return slices.Contains(names, path.Base(name))
}

func (o *output) close() error {
	var errs []error
	if o.journal != nil {
		if err := o.journalBuf.Flush(); !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
		if err := o.journal.Close(); !errors.Is(err, os.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if o.batch != nil {
		errs = append(errs, o.batch.Discard())
	}
	if o.lock != nil {
		errs = append(errs, o.lock.Close())
	}
	if o.root != nil {
		errs = append(errs, o.root.Close())
	}
	return errors.Join(errs...)
}
