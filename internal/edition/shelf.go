package edition

import (
	"bufio"
	"bytes"
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
	"strconv"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/artifact"
	"github.com/millrace/millrace/internal/spool"
)

// shelved is one file of an edition.
type shelved struct {
	Room string `json:"room"`
	millrace.File
}

// name returns the name of the artifact.
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
		s := &shelf{press: p, room: room.Name, held: p.held(ctx, prev, room.Name), view: view, prev: prev, m: m}
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

// entry makes the file ready to be answered with.
// plain is its size without coding, 0 if that is not known.
func (f *shelved) entry(p *Press, plain int64, now time.Time) (key, *entry, error) {
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
	e, err := prepare(&millrace.Document{Path: f.Path, ETag: f.ETag, Header: header, Fixed: true}, p.guarded(f.Room), 0, now)
	if err != nil {
		return key{}, nil, err
	}
	sum, err := hex.DecodeString(f.Sum)
	if err != nil {
		return key{}, nil, err
	}
	e.about(&millrace.Document{Names: f.Names}, f.Room)
	e.key, e.large = keyOf(u), true
	e.reps[identity].Store(&rep{
		coding: identity, content: &blob{loss: loss{press: &p.damaged}, store: p.artifacts, name: f.name(), size: f.Size, sum: sum},
		size: f.Size, plain: plain, length: [1]string{strconv.FormatInt(f.Size, 10)},
	})
	return e.key, e, nil
}

// blob is the bytes of a file.
type blob struct {
	loss
	store artifact.Store
	name  string
	size  int64
	sum   []byte // SHA-256
}

func (b *blob) known() string { return "sha-256=:" + base64.StdEncoding.EncodeToString(b.sum) + ":" }

func (b *blob) digest(context.Context) (string, error) { return b.known(), b.err() }

// write implements [content]. It verifies the bytes of the whole file.
func (b *blob) write(ctx context.Context, w io.Writer, from, n int64) error {
	r, err := b.store.Open(ctx, b.name, from, n)
	if err != nil {
		return b.lost(ctx, b.name, err)
	}
	defer r.Close()
	out, sum := &window{w: w, left: n}, sha256.New()
	in := io.Reader(r)
	if n == b.size {
		in = io.TeeReader(r, sum)
	}
	_, err = io.Copy(out, in)
	switch {
	case out.err != nil:
		return out.err
	case err == nil && (out.left > 0 || n == b.size && !bytes.Equal(sum.Sum(nil), b.sum)):
		err = fmt.Errorf("its bytes are others: %w", errors.Join(millrace.ErrInvalid, b.store.Delete(ctx, b.name)))
	}
	if err != nil {
		return b.lost(ctx, b.name, err)
	}
	return nil
}

// shelf is a [millrace.Shelf] of a press.
type shelf struct {
	press   *Press
	room    string
	held    []millrace.File
	view    millrace.View
	prev, m *manifest
}

// held returns the files of a room in a manifest, as far as they are there.
func (p *Press) held(ctx context.Context, prev *manifest, room string) (out []millrace.File) {
	if prev == nil || prev.foreign {
		return nil
	}
	served := make(map[string]bool)
	if m := p.served(); m != nil {
		for i := range m.Shelf {
			served[m.Shelf[i].name()] = true
		}
	}
	exists := p.exists(ctx)
	for i := range prev.Shelf {
		if f := &prev.Shelf[i]; f.Room == room && (served[f.name()] || exists(f.name(), f.Size) == nil) {
			out = append(out, f.File)
		}
	}
	return out
}

// Held implements [millrace.Shelf].
func (s *shelf) Held() []millrace.File { return s.held }

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
	doc := roomDocument{d, s.room}
	since, err := new(manifest).touch(ctx, s.view, s.prev, []roomDocument{doc})
	if err != nil {
		return err
	}
	next, err := s.press.chunk(ctx, doc, s.prev, since[0], s.view)
	s.m.Documents = append(s.m.Documents, next)
	return err
}

// Draft implements [millrace.Shelf].
func (s *shelf) Draft() (millrace.Draft, error) {
	d := &draft{shelf: s}
	d.buf = bufio.NewWriterSize(&d.body, 256<<10)
	return d, nil
}

// draft is a [millrace.Draft].
type draft struct {
	shelf *shelf
	body  spool.Spool
	buf   *bufio.Writer // of body
}

func (d *draft) Write(b []byte) (int, error) { return d.buf.Write(b) }

// Finish implements [millrace.Draft].
func (d *draft) Finish(ctx context.Context, head []byte, f millrace.File, codings []string, name func(coding, sum string) string) ([]millrace.File, error) {
	defer d.Discard()
	if err := d.buf.Flush(); err != nil {
		return nil, err
	}
	var out []millrace.File
	for _, c := range codings {
		made := f
		if err := d.code(ctx, head, c, &made); err != nil {
			return nil, fmt.Errorf("coding a file as %q: %w", c, err)
		}
		made.ETag = cmp.Or(f.ETag, "sha256:"+made.Sum)
		made.Path = name(c, made.Sum)
		d.shelf.m.Shelf = append(d.shelf.m.Shelf, shelved{d.shelf.room, made})
		out = append(out, made)
	}
	return out, nil
}

// code stores the bytes of one coding, and completes the file with them.
func (d *draft) code(ctx context.Context, head []byte, name string, f *millrace.File) error {
	c := identity
	if name != "" {
		var ok bool
		if c, ok = codingOf(name); !ok {
			return fmt.Errorf("%w: there is no such coding", millrace.ErrInvalid)
		}
	}
	body, err := d.body.Reader()
	if err != nil {
		return err
	}
	var coded spool.Spool
	defer coded.Close()
	sum := sha256.New()
	buf := bufio.NewWriterSize(io.MultiWriter(&coded, sum), 256<<10)
	enc, err := stream(c, buf)
	if err != nil {
		return err
	}
	if _, err := io.CopyBuffer(&stoppable{ctx, enc}, io.MultiReader(bytes.NewReader(head), body), make([]byte, 256<<10)); err != nil {
		return err
	}
	if err := errors.Join(enc.Close(), buf.Flush()); err != nil {
		return err
	}
	f.Coding, f.Size, f.Sum = name, coded.Size(), hex.EncodeToString(sum.Sum(nil))
	r, err := coded.Reader()
	if err != nil {
		return err
	}
	return d.shelf.press.artifacts.Put(ctx, (&shelved{File: *f}).name(), r)
}

// Discard implements [millrace.Draft].
func (d *draft) Discard() { d.body.Close() }

// stoppable ends a long coding soon after its context is cancelled.
type stoppable struct {
	ctx context.Context
	w   io.Writer
}

func (s *stoppable) Write(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.w.Write(b)
}
