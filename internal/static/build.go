package static

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/replace"
)

// Options are the options of [Open]. The zero value works.
type Options struct {
	// Force allows a folder that is not empty and was not created by a build. Files of the
	// build replace existing files of the same name.
	Force bool
	// Host is the host for which the build writes configuration files, one of [HostNames]. If empty,
	// it is plain, a host without configuration files.
	Host string
}

// Build writes one state of a site into a folder. It is not safe for concurrent use.
type Build struct {
	Report Report // complete after Finish

	root    *os.Root
	dir     string
	made    bool         // whether this build created the folder
	lock    *flock.Flock // held until Close
	handler http.Handler
	base    *url.URL
	prefix  string // path of base without the slash at its end, percent-encoded
	force   bool
	kind    *kind

	found      bool         // whether the folder contains the record or the journal of an earlier build
	owned      map[key]bool // files written by earlier builds or this one
	journalled map[key]bool
	journal    *os.File

	names     map[key]nameEntry // entries by folded name
	rules     []rule            // of the host's file for header fields
	sets      map[string]int
	lists     [][]field // headers that files have in common
	immutable []bool    // whether the files of a list are immutable
	recorded  int       // number of lists already in the record
	record    *os.File
	temp      string                   // name of the record until it is complete
	out       *bufio.Writer            // writes to record
	at        int64                    // number of bytes written to out
	files     *replace.Batch           // complete files that still have temporary names
	late      []*output                // files to rename after Finish has removed files with conflicting names
	foreign   []string                 // names of conflicting files that no build has written
	own       map[string]*bytes.Buffer // the site's own text in files that the build extends
}

// nameEntry describes a name in the folder.
type nameEntry struct {
	exact key
	file  bool  // false = folder
	at    int64 // offset of its line in the record. If zero, the name is only reserved.
}

// Item is a file to write.
type Item struct {
	Path     string // percent-encoded request path relative to the base, with its query
	Protocol string // If empty, the site's own file.
	Name     string // name of the file. If empty, it is derived from Path.
	Ask      string // request path for the handler, from the root of the host. If empty, Path below base.
	// Immutable reports whether the file never changes, because its name contains a hash.
	Immutable bool
}

// Open opens a folder for the responses of a handler, and creates it if it is missing. The
// folder corresponds to the base URL. If the folder is not empty and was not created by a
// build, Open returns [millrace.ErrInvalid]. If another build is writing to it, Open returns
// [millrace.ErrConflict]. Call Close when done. If no file was added, Close leaves the folder
// unchanged.
func Open(dir, base string, handler http.Handler, o *Options) (*Build, error) {
	if o == nil {
		o = new(Options)
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("build: base: %w: %w", millrace.ErrInvalid, err)
	}
	b := &Build{
		handler: handler, base: u, prefix: strings.TrimRight(u.EscapedPath(), "/"), force: o.Force,
		owned: make(map[key]bool), journalled: make(map[key]bool), names: make(map[key]nameEntry),
		sets:   make(map[string]int),
		Report: NewReport(), own: make(map[string]*bytes.Buffer), kind: kindOf(o.Host),
	}
	if b.kind == nil {
		return nil, fmt.Errorf("build: host %q: %w: want one of %s", o.Host, millrace.ErrInvalid, strings.Join(HostNames(), ", "))
	}
	for _, name := range b.kind.own {
		b.own[name] = nil
	}
	if err := b.open(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("build into %s: %w", dir, err), b.Close())
	}
	return b, nil
}

func (b *Build) open(dir string) (err error) {
	_, err = os.Stat(dir)
	b.dir, b.made = dir, errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if b.root, err = os.OpenRoot(dir); err != nil {
		return err
	}
	if !b.force {
		if err := b.checkFolder(); err != nil {
			return err
		}
	}
	if err := b.root.MkdirAll(hidden, 0o755); err != nil {
		return err
	}
	if b.lock, err = b.lockFolder(); err != nil {
		return err
	}
	if b.files, err = replace.NewBatch(b.root, unfinished); err != nil {
		return err
	}
	if err := b.readNames(); err != nil {
		return err
	}
	if err := b.openJournal(); err != nil {
		return err
	}
	if b.record, b.temp, err = b.files.Create(); err != nil {
		return err
	}
	b.out = bufio.NewWriterSize(b.record, 64<<10)
	return b.write(&line{Format: recordFormat, Base: b.base.String()})
}

// Close unlocks the folder. If Finish was not called, the next build completes the work.
func (b *Build) Close() error {
	var errs []error
	for _, o := range b.late {
		errs = append(errs, o.discard())
	}
	if b.files != nil {
		errs = append(errs, b.files.Discard())
	}
	if b.record != nil {
		errs = append(errs, b.record.Close(), b.root.Remove(b.temp))
	}
	if b.journal != nil {
		errs = append(errs, b.journal.Close())
	}
	if b.lock != nil {
		if !b.found && len(b.journalled) == 0 { // nothing was written
			_ = b.root.Remove(journalName)
			_ = b.root.Remove(lockName)
			_ = b.root.Remove(hidden)
		}
		errs = append(errs, b.lock.Close())
	}
	if b.root != nil {
		errs = append(errs, b.root.Close())
		if b.made {
			_ = os.Remove(b.dir) // fails if the folder is not empty
		}
	}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, fs.ErrNotExist) })...)
}

// write appends a line to the record.
func (b *Build) write(l *line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	b.at += int64(len(text)) + 1
	_, _ = b.out.Write(text) // Flush returns the error
	return b.out.WriteByte('\n')
}

// Reserve reserves the name of one of the site's own files. A document of that name gets
// another name or is omitted. Reserve reports whether the name is free.
func (b *Build) Reserve(it Item) bool {
	if err := checkName(it.Name); err != nil {
		b.Report.leave(it.Path, it.Protocol, "file-name", err.Error())
		return false
	}
	if why := b.take(it.Name, 0); why != "" {
		b.Report.leave(it.Path, it.Protocol, "name-taken", why)
		return false
	}
	return true
}

// take assigns a name to a file. If it cannot, it returns the reason as text.
func (b *Build) take(name string, at int64) (why string) {
	exact, folded := keyOf(name), keyOf(fold(name))
	switch p, taken := b.names[folded]; {
	case taken && !p.file:
		return errFolder
	case taken && p.exact != exact:
		return "another file has the same name except for upper and lower case"
	case taken && p.at != 0:
		return "another document has the same name"
	}
	for _, dir := range parents(name) {
		if p, taken := b.names[keyOf(fold(dir))]; taken && p.file {
			return errFile
		}
	}
	for _, dir := range parents(name) {
		b.names[keyOf(fold(dir))] = nameEntry{exact: keyOf(dir)}
	}
	b.names[folded] = nameEntry{exact, true, at}
	return ""
}

const (
	errFolder  = "a folder has the same name"
	errFile    = "a folder of its path is also a file"
	errForeign = "a file or folder that no build has written is in the way"
)

// there reports whether a file of that name exists.
func (b *Build) there(name string) bool {
	info, err := b.root.Lstat(name)
	return err == nil && !info.IsDir()
}

// Add writes the handler's response for an item if its status is 200. A document that a static host
// cannot serve is listed as left out in the report. Add returns errors of the handler and the file
// system.
func (b *Build) Add(ctx context.Context, it Item) error {
	name := it.Name
	if name == "" {
		named, err := fileOf(it.Path)
		if err != nil {
			b.Report.leave(it.Path, it.Protocol, "file-name", err.Error())
			return nil //nolint:nilerr // the report lists the omitted document
		}
		name = named
		if why := b.blocked(name); why != "" {
			if name = b.separateName(name); !b.free(name) {
				b.Report.leave(it.Path, it.Protocol, "name-taken", why)
				return nil
			}
		}
	}
	if p := b.names[keyOf(fold(name))]; p.at != 0 && p.exact == keyOf(name) {
		if it.Protocol != "" { // another document has the name
			b.Report.leave(it.Path, it.Protocol, "name-taken", "another document has the same name")
		}
		return nil
	}
	if why := b.take(name, b.at); why != "" {
		b.Report.leave(it.Path, it.Protocol, "name-taken", why)
		return nil
	}
	return b.take200(ctx, it, name)
}

// blocked returns the reason why a file or folder of the build prevents a name, or "" if the
// name is possible.
func (b *Build) blocked(name string) string {
	if p, taken := b.names[keyOf(fold(name))]; taken && !p.file {
		return errFolder
	}
	for _, dir := range parents(name) {
		if p, taken := b.names[keyOf(fold(dir))]; taken && p.file {
			return errFile
		}
	}
	return ""
}

// free reports whether a document can have a name.
func (b *Build) free(name string) bool { return checkName(name) == nil && b.blocked(name) == "" }

// separateSuffix is the suffix of folders for documents whose path is below a file.
const separateSuffix = ".docs"

// separateName returns another name for a document whose path is below a file. Only servers
// with rules can map the path to that name.
func (b *Build) separateName(name string) string {
	for _, dir := range parents(name) {
		if p, taken := b.names[keyOf(fold(dir))]; taken && p.file {
			return dir + separateSuffix + strings.TrimPrefix(name, dir)
		}
	}
	return name
}

// Finish writes the configuration of the host, removes old files, and completes the record. After
// that, everything is durable. Without Options.Force, Finish keeps a file that no build has
// written, even if a file of this build has the same name but other bytes. Finish then writes all
// other files, and returns [millrace.ErrConflict] with the code foreign-file.
func (b *Build) Finish(ctx context.Context) error {
	if err := b.finish(ctx); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	return nil
}

func (b *Build) finish(ctx context.Context) error {
	if err := b.out.Flush(); err != nil {
		return err
	}
	if err := b.configure(ctx); err != nil {
		return err
	}
	if err := b.out.Flush(); err != nil {
		return err
	}
	if err := b.renameFiles(); err != nil {
		return err
	}
	if err := b.sweep(); err != nil {
		return err
	}
	for _, o := range b.late {
		var err error
		if b.inTheWay(o.name) {
			b.refuse(o.name, "/"+o.name, "")
			err = o.discard()
		} else {
			err = o.addToBatch()
		}
		if err != nil {
			return err
		}
	}
	b.late = nil
	if err := b.renameFiles(); err != nil {
		return err
	}
	if _, err := b.record.Seek(0, io.SeekStart); err != nil {
		return err
	}
	record := &output{build: b, name: recordName}
	compressed := gzip.NewWriter(record)
	_, err := io.Copy(compressed, b.record)
	if err == nil {
		err = compressed.Close()
	}
	changed := false
	if err == nil {
		changed, err = record.complete(time.Time{})
	}
	switch {
	case err != nil:
	case changed:
		err = errors.Join(record.closeFiles(), b.files.Commit(record.at, recordName))
	default:
		err = b.files.Sync()
	}
	if err := errors.Join(err, record.discard()); err != nil {
		return err
	}
	if err := b.root.Remove(journalName); err != nil {
		return err
	}
	if len(b.foreign) > 0 {
		return millrace.Coded("foreign-file", fmt.Errorf("%w: %d files were not written, such as %s: %s; remove the existing files, or use --force",
			millrace.ErrConflict, len(b.foreign), b.foreign[0], errForeign))
	}
	return nil
}

// renameFiles adds the complete files to the journal and renames them.
func (b *Build) renameFiles() error {
	var names strings.Builder
	b.files.Added(func(name string) {
		if k := keyOf(name); path.Dir(name) != hidden && !b.journalled[k] {
			names.WriteString(name + "\n")
			b.owned[k], b.journalled[k] = true, true
		}
	})
	if _, err := b.journal.WriteString(names.String()); err != nil {
		return err
	}
	return b.files.Rename(journalName)
}

// refuse reports a file that the build cannot write. The existing file or folder of that name
// stays.
func (b *Build) refuse(name, path, proto string) {
	b.Report.leave(path, proto, "foreign-file", errForeign)
	b.names[keyOf(fold(name))] = nameEntry{exact: keyOf(name), file: true}
	b.foreign = append(b.foreign, name)
}

// each calls f for every written file, in order.
func (b *Build) each(f func(l *line) error) error {
	return lines(io.NewSectionReader(b.record, 0, b.at), func(l *line) error {
		if l.Name == "" {
			return nil
		}
		return f(l)
	})
}
