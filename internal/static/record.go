package static

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/millrace/millrace"
)

// Files in the hidden folder.
const (
	hidden      = ".millrace"
	recordName  = hidden + "/build.jsonl.gz" // record of the last complete build
	journalName = hidden + "/journal"        // files that the current build adds to the record
	lockName    = hidden + "/lock"           // held by the running build
	unfinished  = hidden + "/tmp-"
)

// recordFormat is the version of the record's format.
const recordFormat = 1

// line is one line of a record. The first line contains the format and the base URL. A line for
// each file follows, and a line for each common header before its first file.
type line struct {
	Format int    `json:"format,omitempty"` // version of the format, only on the first line
	Base   string `json:"base,omitempty"`   // base URL, only on the first line

	Header []field `json:"header,omitempty"` // a header that files have in common; these headers are numbered from 1

	Name string `json:"name,omitempty"`
	Size int64  `json:"size,omitempty"`
	Sum  string `json:"sum,omitempty"` // hex SHA-256
	entry
}

// entry describes how a server should serve a file.
type entry struct {
	Path     string `json:"path,omitempty"`     // percent-encoded request path
	Protocol string `json:"protocol,omitempty"` // "" = the site's own file
	Set      int    `json:"set,omitempty"`      // number of the common header, or 0
	Tag      string `json:"tag,omitempty"`      // ETag with quotes
	Link     string `json:"link,omitempty"`     // value of the Link field
	Date     string `json:"date,omitempty"`     // Last-Modified, equal to the file's modification time
	// Immutable reports whether the bytes of the name never change.
	Immutable bool `json:"immutable,omitempty"`
}

// separate reports whether the file's name does not follow from its path.
func (l *line) separate() bool {
	if l.Protocol == "" {
		return false
	}
	name, err := fileOf(l.Path)
	return err != nil || name != l.Name
}

// field is a header field.
type field struct {
	Name  string `json:"n"`
	Value string `json:"v"`
}

// key is the hash of a name.
type key [8]byte

func keyOf(name string) (k key) {
	sum := sha256.Sum256([]byte(name))
	copy(k[:], sum[:])
	return k
}

// compressedLines is like lines, for the compressed record of an earlier build.
func compressedLines(r io.Reader, f func(l *line) error) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("%w: %w", millrace.ErrInvalid, err)
	}
	return lines(z, f)
}

// lines calls f for every line of a record.
func lines(r io.Reader, f func(l *line) error) error {
	first := true
	return linesFrom(r, func(l *line) error {
		if first && l.Format != recordFormat {
			return fmt.Errorf("%w: the record has another version", millrace.ErrConflict)
		}
		first = false
		return f(l)
	})
}

// linesFrom calls f for every remaining line of r.
func linesFrom(r io.Reader, f func(l *line) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		raw, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			rest, more := in.ReadBytes('\n')
			raw, err = append(bytes.Clone(raw), rest...), more
		}
		if err == io.EOF && len(raw) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d: %w: %w", n, millrace.ErrInvalid, err)
		}
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			return fmt.Errorf("line %d: %w: %w", n, millrace.ErrInvalid, err)
		}
		if err := f(&l); err != nil {
			return err
		}
	}
}

// checkFolder returns an error if the folder is not empty and was not created by a build.
func (b *Build) checkFolder() error {
	for _, name := range []string{recordName, journalName} {
		if _, err := b.root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	dir, err := b.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, n := range names {
		if n != hidden {
			return millrace.Coded("foreign-folder", fmt.Errorf("%w: the folder contains %s and was not created by a build", millrace.ErrInvalid, n))
		}
	}
	return nil
}

// readNames reads the names of the files that earlier builds have written.
func (b *Build) readNames() error {
	f, err := b.root.Open(recordName)
	switch {
	case err == nil:
		defer f.Close()
		b.found = true
		err = b.recordLines(f, func(l *line) error {
			if l.Name != "" {
				b.owned[keyOf(l.Name)] = true
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", recordName, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	journal, err := b.root.ReadFile(journalName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	b.found = true
	for name := range strings.Lines(string(journal)) {
		if name, complete := strings.CutSuffix(name, "\n"); complete {
			k := keyOf(name)
			b.owned[k], b.journalled[k] = true, true
			b.files.Changed(name)
		}
	}
	return err
}

// recordLines calls f for the lines of the last record, up to a damaged line. It ignores the
// damage, because the build compares the bytes of every file in any case.
func (b *Build) recordLines(r io.Reader, f func(l *line) error) error {
	if err := compressedLines(r, f); !errors.Is(err, millrace.ErrInvalid) {
		return err
	}
	return nil
}

// sweep removes files of earlier builds that this build has not written.
func (b *Build) sweep() error {
	gone := func(name, sum string) error {
		if at, ok := b.names[keyOf(fold(name))]; ok && at.exact == keyOf(name) && at.file {
			return nil
		}
		if !b.there(name) {
			return nil
		}
		if sum != "" && !b.journalled[keyOf(name)] {
			if now, err := b.sumOf(name); err != nil || now != sum {
				b.Report.leave(name, "", "foreign-file", "not removed: the file has changed since a build wrote it")
				return nil //nolint:nilerr // do not remove a file that cannot be read
			}
		}
		if err := b.root.Remove(name); err != nil {
			return err
		}
		b.files.Changed(name)
		b.Report.Removed++
		b.Report.RemovedFiles = some(b.Report.RemovedFiles, name)
		b.prune(name)
		return nil
	}
	if f, err := b.root.Open(recordName); err == nil {
		defer f.Close()
		err := b.recordLines(f, func(l *line) error {
			if l.Name == "" {
				return nil
			}
			return gone(l.Name, l.Sum)
		})
		if err != nil {
			return err
		}
	}
	// Only the journal contains the files of a build that crashed.
	journal, err := b.root.ReadFile(journalName)
	if err != nil {
		return err
	}
	for name := range strings.Lines(string(journal)) {
		if err := gone(strings.TrimSuffix(name, "\n"), ""); err != nil {
			return err
		}
	}
	return nil
}

// prune removes the folders above a removed file that are now empty.
func (b *Build) prune(name string) {
	for _, dir := range slices.Backward(parents(name)) {
		if b.root.Remove(dir) != nil {
			return
		}
	}
}

// sumOf returns the SHA-256 of a regular file in hex.
func (b *Build) sumOf(name string) (string, error) {
	f, err := b.root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// openJournal continues the journal of a build that crashed. It drops an incomplete last
// line, which could be another name.
func (b *Build) openJournal() (err error) {
	b.journal, err = b.root.OpenFile(journalName, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(b.journal)
	if err != nil {
		return err
	}
	return b.journal.Truncate(int64(bytes.LastIndexByte(text, '\n') + 1))
}
