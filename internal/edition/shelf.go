package edition

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/millrace/millrace"
)

// shelved is one file of an edition.
type shelved struct {
	Room string `json:"room"`
	millrace.File
}

// name is that of the file in the directory.
func (f *shelved) name() string { return f.Sum + fileSuffix }

// fileSuffix tells the files of shelves from those of documents.
const fileSuffix = "-file"

// foreignGone is how long files of another configuration answer 410: as long as
// a list that names them may be valid.
const foreignGone = 31 * 24 * time.Hour

// files lets the rooms make their files, and completes m with them. Rooms with
// other options have other files: those of a foreign prev are withdrawn.
func (p *Press) files(ctx context.Context, view millrace.View, prev, m *manifest) error {
	now := p.now().UTC()
	if site := view.Site(); now.Before(site.Time) {
		now = site.Time // the clock was set back: changes are not later than files
	}
	if prev != nil {
		for path, until := range prev.Gone {
			if now.Before(until) {
				m.withdraw(path, until)
			}
		}
	}
	for _, room := range p.rooms {
		filer, ok := room.Publisher.(millrace.Filer)
		if !ok {
			continue
		}
		s := &shelf{press: p, room: room.Name, view: view, prev: prev, m: m}
		again, err := filer.Files(ctx, view, now, s)
		if err != nil {
			return fmt.Errorf("files of %s: %w", room.Name, err)
		}
		if !again.IsZero() && (m.Again.IsZero() || again.Before(m.Again)) {
			m.Again = again
		}
	}
	seen := make(map[string]bool)
	for _, path := range append(m.shelfPaths(), m.documentPaths()...) {
		if seen[path] {
			return fmt.Errorf("two documents or files are %s", path)
		}
		seen[path] = true
	}
	if prev != nil && prev.foreign {
		for _, path := range prev.shelfPaths() {
			if !seen[path] {
				m.withdraw(path, now.Add(foreignGone))
			}
		}
	}
	return nil
}

// plainSizes gives how large files are without coding, by their validators,
// which all codings of one have.
func (m *manifest) plainSizes() map[string]int64 {
	sizes := make(map[string]int64)
	for _, f := range m.Shelf {
		if f.Coding == "" {
			sizes[f.ETag] = f.Size
		}
	}
	return sizes
}

func (m *manifest) shelfPaths() (paths []string) {
	for _, f := range m.Shelf {
		paths = append(paths, f.Path)
	}
	return paths
}

func (m *manifest) documentPaths() (paths []string) {
	for _, d := range m.Documents {
		paths = append(paths, d.Path)
	}
	return paths
}

// due reports whether the files are to be made anew.
func (m *manifest) due(now time.Time) bool {
	return m != nil && !m.Again.IsZero() && !now.Before(m.Again)
}

// there checks that every file of the edition is there with its size, and every
// chunk that the current edition does not have.
func (m *manifest) there(ctx context.Context, p *Press) error {
	dir := p.dir
	for i := range m.Documents {
		if err := m.Documents[i].there(dir, false); err != nil {
			return err
		}
	}
	var current *manifest
	if ed := p.current.Load(); ed != nil {
		current = ed.manifest
	}
	err := m.beyond(ctx, p.artifacts, current, func(b *branch, height int) error { return b.there(ctx, p.artifacts, height) })
	if err != nil {
		return err
	}
	for i := range m.Shelf {
		if err := m.Shelf[i].there(dir, false); err != nil {
			return err
		}
	}
	return nil
}

// there is that of a file of a document.
func (f *shelved) there(dir string, deep bool) error {
	sum, err := hex.DecodeString(f.Sum)
	if err != nil {
		return err
	}
	bytes := file{Name: f.name(), Size: f.Size, SHA256: sum}
	if err := bytes.there(dir, deep); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	return nil
}

// entry makes the file ready to be answered with.
// plain is its size without coding, 0 if that is not known.
func (f *shelved) entry(dir string, guarded bool, plain int64, now time.Time) (key, *entry, error) {
	u, err := url.Parse(f.Path)
	if err != nil {
		return key{}, nil, fmt.Errorf("file: %w: %w", millrace.ErrInvalid, err)
	}
	header := f.Header.Clone()
	if header == nil {
		header = make(http.Header)
	}
	header.Set("Last-Modified", f.Modified.UTC().Format(http.TimeFormat))
	if f.Coding != "" {
		header.Set("Content-Encoding", f.Coding)
	}
	e, err := prepare(&millrace.Document{Path: f.Path, ETag: f.ETag, Header: header, Fixed: true}, guarded, 0, now)
	if err != nil {
		return key{}, nil, err
	}
	sum, err := hex.DecodeString(f.Sum)
	if err != nil {
		return key{}, nil, err
	}
	e.about(&millrace.Document{Names: f.Names}, f.Room)
	e.key, e.dir = keyOf(u), dir
	e.reps[identity].Store(&rep{
		coding: identity, file: f.name(), size: f.Size, plain: plain, length: [1]string{strconv.FormatInt(f.Size, 10)},
		digest: [1]string{"sha-256=:" + base64.StdEncoding.EncodeToString(sum) + ":"},
	})
	return e.key, e, nil
}

// shelf is a [millrace.Shelf] in the directory of a press.
type shelf struct {
	press   *Press
	room    string
	view    millrace.View
	prev, m *manifest
}

// Held implements [millrace.Shelf].
func (s *shelf) Held() []millrace.File {
	if s.prev == nil || s.prev.foreign {
		return nil
	}
	var out []millrace.File
	for i := range s.prev.Shelf {
		if f := &s.prev.Shelf[i]; f.Room == s.room && f.there(s.press.dir, false) == nil {
			out = append(out, f.File)
		}
	}
	return out
}

// Keep implements [millrace.Shelf].
func (s *shelf) Keep(f millrace.File) { s.m.Shelf = append(s.m.Shelf, shelved{s.room, f}) }

// Withdraw implements [millrace.Shelf].
func (s *shelf) Withdraw(f millrace.File, until time.Time) { s.m.withdraw(f.Path, until) }

// withdraw makes a path answer 410 until a time.
func (m *manifest) withdraw(path string, until time.Time) {
	if m.Gone == nil {
		m.Gone = make(map[string]time.Time)
	}
	m.Gone[path] = until
}

// errGone is the answer to a request for a file that was withdrawn.
var errGone = &millrace.RequestError{Status: http.StatusGone, Text: "this file was withdrawn: read the list that named it"}

// Put implements [millrace.Shelf].
func (s *shelf) Put(ctx context.Context, d *millrace.Document) error {
	next := large{
		Room: s.room, Path: d.Path, ETag: d.ETag, Own: d.ETag != "", OneTag: d.OneTag, Names: d.Names, Header: d.Header, Modified: s.view.Site().Time,
	}
	last := s.prev.document(d.Path)
	if d.Parts != nil {
		since, err := new(manifest).touch(ctx, s.view, s.prev, []roomDocument{{d, s.room}})
		if err != nil {
			return err
		}
		if err := s.press.chunk(ctx, d, &next, last, s.prev != nil && s.prev.foreign, since[0], s.view); err != nil {
			return err
		}
		s.m.Documents = append(s.m.Documents, next)
		return nil
	}
	if err := s.press.press(ctx, d, &next); err != nil {
		return err
	}
	switch {
	case last == nil:
	case last.ETag == next.ETag:
		next.Modified = last.Modified
	default:
		next.Modified = later(next.Modified, last.Modified)
	}
	s.m.Documents = append(s.m.Documents, next)
	return nil
}

// Draft implements [millrace.Shelf].
func (s *shelf) Draft() (millrace.Draft, error) {
	f, err := os.CreateTemp(s.press.dir, unfinished+"*")
	if err != nil {
		return nil, err
	}
	return &draft{shelf: s, f: f, buf: bufio.NewWriterSize(f, 256<<10)}, nil
}

// draft is a [millrace.Draft] in a temporary file.
type draft struct {
	shelf *shelf
	f     *os.File // nil = discarded
	buf   *bufio.Writer
	temps []*os.File
}

func (d *draft) Write(b []byte) (int, error) { return d.buf.Write(b) }

// WriteAt implements [io.WriterAt].
func (d *draft) WriteAt(b []byte, at int64) (int, error) {
	if err := d.buf.Flush(); err != nil {
		return 0, err
	}
	return d.f.WriteAt(b, at)
}

// Finish implements [millrace.Draft].
func (d *draft) Finish(ctx context.Context, f millrace.File, codings []string, name func(coding, sum string) string) ([]millrace.File, error) {
	defer d.Discard()
	if err := d.buf.Flush(); err != nil {
		return nil, err
	}
	var out []millrace.File
	for _, c := range codings {
		next, err := d.code(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("coding a file as %q: %w", c, err)
		}
		made := f
		made.Coding, made.Size, made.Sum = c, next.size, hex.EncodeToString(next.sum.Sum(nil))
		made.ETag = cmp.Or(f.ETag, "sha256:"+made.Sum)
		made.Path = name(c, made.Sum)
		on := shelved{d.shelf.room, made}
		if err := os.Rename(next.f.Name(), filepath.Join(d.shelf.press.dir, on.name())); err != nil {
			return nil, err
		}
		d.shelf.m.Shelf = append(d.shelf.m.Shelf, on)
		out = append(out, made)
	}
	return out, syncDir(d.shelf.press.dir)
}

// code writes the bytes of one coding, durable but for their name.
func (d *draft) code(ctx context.Context, name string) (*output, error) {
	c := identity
	if name != "" {
		var ok bool
		if c, ok = codingOf(name); !ok {
			return nil, fmt.Errorf("%w: there is no such coding", millrace.ErrInvalid)
		}
	}
	f, err := os.CreateTemp(d.shelf.press.dir, unfinished+"*")
	if err != nil {
		return nil, err
	}
	d.temps = append(d.temps, f)
	o := &output{coding: c, f: f, buf: bufio.NewWriterSize(f, 256<<10), sum: sha256.New()}
	if o.enc, err = stream(c, o); err != nil {
		return nil, err
	}
	if _, err := d.f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if _, err := io.CopyBuffer(&stoppable{ctx, o.enc}, struct{ io.Reader }{d.f}, make([]byte, 256<<10)); err != nil {
		return nil, err
	}
	return o, errors.Join(o.enc.Close(), o.buf.Flush(), f.Chmod(0o644), f.Sync())
}

// Discard implements [millrace.Draft].
func (d *draft) Discard() {
	if d.f == nil {
		return
	}
	for _, f := range append(d.temps, d.f) {
		f.Close()
		_ = os.Remove(f.Name()) // renamed away when all went well
	}
	d.f = nil
}
