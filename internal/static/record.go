package static

import (
	"bufio"
	"bytes"
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

// What is in the hidden folder.
const (
	hidden      = ".millrace"
	recordName  = hidden + "/build.jsonl" // what the last build has written
	journalName = hidden + "/journal"     // what this one has written so far, beside that
	lockName    = hidden + "/lock"        // held by the build that is at work
	unfinished  = hidden + "/tmp-"
)

// recordFormat moves when a record is read in another way.
const recordFormat = 1

// line is one line of a record, which has one for the format, then one for each
// header that files have in common, before the first of them, and one for each
// file.
type line struct {
	Format int `json:"format,omitempty"` // on the first line

	Header []field `json:"header,omitempty"` // the next header: they are counted from 1

	Name string `json:"name,omitempty"`
	Size int64  `json:"size,omitempty"`
	Sum  string `json:"sum,omitempty"` // hex SHA-256
	entry
}

// entry is what a server should say of a file.
type entry struct {
	Path     string `json:"path,omitempty"`     // percent-encoded, as requests name it
	Protocol string `json:"protocol,omitempty"` // "" = the site's own file
	Set      int    `json:"set,omitempty"`      // which header; 0 = none
	Tag      string `json:"tag,omitempty"`      // ETag, with its quotes
	Link     string `json:"link,omitempty"`     // all of the field, joined
	Date     string `json:"date,omitempty"`     // Last-Modified, which is that of the file
	// Immutable: no other bytes will ever have the name.
	Immutable bool `json:"immutable,omitempty"`
}

// separate reports whether a document is not where its path says.
func (l *line) separate() bool {
	if l.Protocol == "" {
		return false
	}
	name, err := fileOf(l.Path)
	return err != nil || name != l.Name
}

// field is one field of a header.
type field struct {
	Name  string `json:"n"`
	Value string `json:"v"`
}

// key stands for a name.
type key [8]byte

func keyOf(name string) (k key) {
	sum := sha256.Sum256([]byte(name))
	copy(k[:], sum[:])
	return k
}

// lines calls f for every line of a record but the first.
func lines(r io.Reader, f func(l *line) error) error {
	first := true
	return linesFrom(r, func(l *line) error {
		if first && l.Format != recordFormat {
			return fmt.Errorf("%w: the record is of another version", millrace.ErrConflict)
		}
		if first {
			first = false
			return nil
		}
		return f(l)
	})
}

// linesFrom is lines in the middle of a record.
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
			return fmt.Errorf("line %d: %w", n, err)
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

// ours gives an error if the folder is not empty, and no build has made it.
func (b *Build) ours() error {
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
			return millrace.Coded("foreign-folder", fmt.Errorf("%w: %s is in it, and no build has made the folder", millrace.ErrInvalid, n))
		}
	}
	return nil
}

// recall reads what earlier builds have written.
func (b *Build) recall() error {
	f, err := b.root.Open(recordName)
	switch {
	case err == nil:
		defer f.Close()
		b.found = true
		err = lines(f, func(l *line) error {
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
		if name, whole := strings.CutSuffix(name, "\n"); whole {
			k := keyOf(name)
			b.owned[k], b.journalled[k] = true, true
		}
	}
	return err
}

// claim notes that a file is to become ours, before it is there.
func (b *Build) claim(name string) error {
	k := keyOf(name)
	if b.journalled[k] {
		return nil
	}
	if _, err := b.journal.WriteString(name + "\n"); err != nil {
		return err
	}
	b.owned[k], b.journalled[k] = true, true
	return nil
}

// sweep removes what earlier builds have written and this one has not.
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
				b.Report.leave(name, "", "foreign-file", "it is not removed: it is not what was written here any more")
				return nil //nolint:nilerr // what cannot be read is not ours any more
			}
		}
		if err := b.root.Remove(name); err != nil {
			return err
		}
		b.Report.Removed++
		b.Report.RemovedFiles = some(b.Report.RemovedFiles, name)
		b.prune(name)
		return nil
	}
	if f, err := b.root.Open(recordName); err == nil {
		defer f.Close()
		err := lines(f, func(l *line) error {
			if l.Name == "" {
				return nil
			}
			return gone(l.Name, l.Sum)
		})
		if err != nil {
			return err
		}
	}
	// A build that was killed has left files that no record names.
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

// prune removes the folders of a file as far as they are empty.
func (b *Build) prune(name string) {
	for _, dir := range slices.Backward(parents(name)) {
		if b.root.Remove(dir) != nil {
			return
		}
	}
}

// sumOf gives the SHA-256 of a regular file in hex.
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

// clear removes what a build that was killed had under way.
func (b *Build) clear() error {
	dir, err := b.root.Open(hidden)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, n := range names {
		if strings.HasPrefix(hidden+"/"+n, unfinished) {
			if err := b.root.Remove(hidden + "/" + n); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// openJournal goes on with the journal of a build that was killed, but for a
// line that was cut: it could be another name.
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
