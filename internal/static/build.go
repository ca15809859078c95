package static

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/millrace/millrace"
)

// Options of [Open]. The zero value works.
type Options struct {
	// Force: a folder that is not empty and that no build has made is written
	// to as well, and files in it that have the names of a build's are replaced.
	Force bool
	// HeadersFor is the host for which the _headers file is made: "netlify",
	// which takes many rules, "cloudflare", which takes few but ones that say
	// much, or "" for a file that both can read.
	HeadersFor string
}

// Build writes one state of a site into a folder. It is for one goroutine.
type Build struct {
	Report Report // complete after Finish

	root    *os.Root
	dir     string
	made    bool         // there was no such folder
	lock    *flock.Flock // for as long as this build has the folder for itself
	handler http.Handler
	base    *url.URL
	prefix  string // path of base without the slash at its end, percent-encoded
	force   bool
	most    int  // rules of the _headers file
	splats  bool // its values may name what a "*" stands for

	found      bool         // an earlier build has made the folder
	owned      map[key]bool // files that earlier builds or this one have written
	journalled map[key]bool
	journal    *os.File

	names  map[key]nameEntry // by keys of folded names
	rules  []rule            // of the _headers file
	sets   map[string]int
	lists  [][]field // the headers that files have in common
	fixed  []bool    // of which files
	said   int       // of them are in the record
	record *os.File
	temp   string                   // its name until it is complete
	out    *bufio.Writer            // to record
	at     int64                    // bytes in out
	late   []*output                // what is in the way goes first
	own    map[string]*bytes.Buffer // what the site itself says in files that are ours to complete
}

// nameEntry is what a name of the build is.
type nameEntry struct {
	exact key
	file  bool  // else a folder
	at    int64 // of its line in the record; 0 = it is only reserved
}

// Item is something to be written.
type Item struct {
	Path     string // percent-encoded path of the request, from the root of base; with the query if it has one
	Protocol string // the protocol; "" = the site's own
	Name     string // the file; "" = as the path says
	Ask      string // path to ask the handler for, from the root of the host; "" = Path below base
	// Immutable: the file is never another one, since its name changes with its
	// bytes.
	Immutable bool
}

// Open starts to write what a handler answers, as the site with a base URL,
// into a folder, which it makes if it has to. The folder is what the base URL
// names. [millrace.ErrInvalid]: the folder is not empty, and no build has made
// it. [millrace.ErrConflict]: another build is writing to it. Call Close in the
// end: a folder to which nothing was added is then as it was.
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
		Report: NewReport(), own: map[string]*bytes.Buffer{headersName: nil, redirectsName: nil},
	}
	b.most, b.splats = maxRules, o.HeadersFor == cloudflare
	if o.HeadersFor == netlify {
		b.most = maxRulesNetlify
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
		if err := b.ours(); err != nil {
			return err
		}
	}
	if err := b.root.MkdirAll(hidden, 0o755); err != nil {
		return err
	}
	if b.lock, err = b.lockFolder(); err != nil {
		return err
	}
	if err := b.recall(); err != nil {
		return err
	}
	if err := errors.Join(b.clear(), b.openJournal()); err != nil {
		return err
	}
	if b.record, b.temp, err = b.temporary(); err != nil {
		return err
	}
	b.out = bufio.NewWriterSize(b.record, 64<<10)
	return b.write(&line{Format: recordFormat})
}

// Close gives the folder back. What was not finished is completed by the next
// build.
func (b *Build) Close() error {
	var errs []error
	for _, o := range b.late {
		errs = append(errs, o.discard())
	}
	if b.record != nil {
		errs = append(errs, b.record.Close(), b.root.Remove(b.temp))
	}
	if b.journal != nil {
		errs = append(errs, b.journal.Close())
	}
	if b.lock != nil {
		if !b.found && len(b.journalled) == 0 { // nothing came of it
			_ = b.root.Remove(journalName)
			_ = b.root.Remove(lockName)
			_ = b.root.Remove(hidden)
		}
		errs = append(errs, b.lock.Close())
	}
	if b.root != nil {
		errs = append(errs, b.root.Close())
		if b.made {
			_ = os.Remove(b.dir) // if it is empty
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
	_, _ = b.out.Write(text) // an error stays until Flush
	return b.out.WriteByte('\n')
}

// Reserve keeps the name of a file of the site's own for it: documents that
// would be in its way are put elsewhere or left out. It reports whether the
// name can be had.
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

// take gives a name to a file, or says why it cannot have it.
func (b *Build) take(name string, at int64) (why string) {
	exact, folded := keyOf(name), keyOf(fold(name))
	switch p, taken := b.names[folded]; {
	case taken && !p.file:
		return errFolder
	case taken && p.exact != exact:
		return "another file has the same name but for upper and lower case"
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
	errFolder  = "its name is that of a folder as well"
	errFile    = "a folder of its path is a file as well"
	errForeign = "there is a file of its name that no build has written"
)

// there reports whether something but a folder has a name.
func (b *Build) there(name string) bool {
	info, err := b.root.Lstat(name)
	return err == nil && !info.IsDir()
}

// Add writes what the handler answers for an item, if it has the status 200.
// What a static host cannot have is left out and reported; an error is one of
// the handler or the file system.
func (b *Build) Add(ctx context.Context, it Item) error {
	name := it.Name
	if name == "" {
		named, err := fileOf(it.Path)
		if err != nil {
			b.Report.leave(it.Path, it.Protocol, "file-name", err.Error())
			return nil //nolint:nilerr // it is reported
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
		if it.Protocol != "" { // a document of another protocol, or of this one, was first
			b.Report.leave(it.Path, it.Protocol, "name-taken", "another document has the same name")
		}
		return nil
	}
	if why := b.take(name, b.at); why != "" {
		b.Report.leave(it.Path, it.Protocol, "name-taken", why)
		return nil
	}
	if !b.force && !b.owned[keyOf(name)] {
		if b.there(name) {
			b.Report.leave(it.Path, it.Protocol, "foreign-file", errForeign)
			b.names[keyOf(fold(name))] = nameEntry{exact: keyOf(name), file: true} // and it stays
			return nil
		}
	}
	return b.take200(ctx, it, name)
}

// blocked says why a document's name cannot be had because of files and
// folders of its path.
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

// separateSuffix is that of the folder in which documents are that would be below
// a file.
const separateSuffix = ".docs"

// separate gives another name to a document that would be below a file: servers
// with rules of their own find it there.
func (b *Build) separateName(name string) string {
	for _, dir := range parents(name) {
		if p, taken := b.names[keyOf(fold(dir))]; taken && p.file {
			return dir + separateSuffix + strings.TrimPrefix(name, dir)
		}
	}
	return name
}

// Finish writes the configuration of the hosts, removes what is gone, and
// completes the record.
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
	if err := b.sweep(); err != nil {
		return err
	}
	for _, o := range b.late {
		if err := o.place(); err != nil {
			b.Report.leave("/"+o.name, "", "foreign-file", "something that no build has written is in its way")
			_ = o.discard()
		}
	}
	b.late = nil
	if _, err := b.record.Seek(0, io.SeekStart); err != nil {
		return err
	}
	record := &output{build: b, name: recordName}
	_, err := io.Copy(record, b.record)
	if err == nil {
		_, err = record.commit(time.Time{})
	}
	if err := errors.Join(err, record.discard()); err != nil {
		return err
	}
	return b.root.Remove(journalName)
}

// each calls f for every file that was written, in order.
func (b *Build) each(f func(l *line) error) error {
	return lines(io.NewSectionReader(b.record, 0, b.at), func(l *line) error {
		if l.Name == "" {
			return nil
		}
		return f(l)
	})
}
