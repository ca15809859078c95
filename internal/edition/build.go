package edition

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace"
)

// build makes every large document of a view, from prev where that is still
// right. prev may be nil, or foreign: then all are made, and a document that
// another configuration has changed is later than it was.
func (p *Press) build(ctx context.Context, view millrace.View, prev *manifest) (*manifest, error) {
	site := view.Site()
	m := &manifest{Format: manifestFormat, Key: p.key, Seq: site.Seq}
	all, err := p.largeDocuments(ctx, view)
	if err != nil {
		return nil, err
	}
	docs := slices.DeleteFunc(slices.Clone(all), func(d roomDocument) bool { return d.Same != "" })
	touched, err := m.touch(ctx, view, prev, docs)
	if err != nil {
		return nil, err
	}
	before := make(map[string]*large)
	if prev != nil {
		for i := range prev.Documents {
			before[prev.Documents[i].Path] = &prev.Documents[i]
		}
	}
	todo := make([]*millrace.Document, len(docs)) // nil: what was built before stands
	for i, d := range docs {
		old := before[d.Path]
		if old != nil && (old.Room != d.room || old.OneTag != d.OneTag || d.ETag != "" && old.ETag != d.ETag || old.Own != (d.ETag != "")) {
			old = nil
		}
		next := large{Room: d.room, Path: d.Path, ETag: d.ETag, Own: d.ETag != "", OneTag: d.OneTag, Public: d.Public, Names: d.Names, Header: d.Header, Modified: touched[i]}
		switch {
		case old == nil && next.Modified.IsZero():
			next.Modified = site.Time
		case old != nil && next.Modified.IsZero():
			next.Modified = old.Modified
			if err := old.there(p.dir, false); err == nil && !prev.foreign {
				next.ETag, next.Files, next.Keyed = old.ETag, old.Files, old.Keyed
			}
		}
		if next.Files == nil || (next.Keyed == nil) != (d.WriteKeyed == nil) {
			next.Files, next.Keyed = nil, nil
			todo[i] = d.Document
		}
		m.Documents = append(m.Documents, next)
	}
	spooled, done, err := p.spool(ctx, todo)
	defer done()
	if err != nil {
		return nil, err
	}
	for i, d := range spooled {
		next := &m.Documents[i]
		if d != nil {
			if err := p.press(ctx, d, next); err != nil {
				return nil, err
			}
		}
		switch last := before[next.Path]; {
		case last == nil:
		case last.ETag != next.ETag:
			// Last-Modified has whole seconds, and some clients go by it alone.
			next.Modified = later(next.Modified, last.Modified)
		case next.Modified.Before(last.Modified): // the clock was set back
			next.Modified = last.Modified
		}
		if docs[i].WriteKeyed != nil {
			if err := p.pressKeyed(ctx, d, next, before[next.Path]); err != nil {
				return nil, err
			}
		}
	}
	if err := m.name(all); err != nil {
		return nil, err
	}
	return m, p.files(ctx, view, prev, m)
}

// spool writes the documents of each group to temporary files, in one pass
// each, and gives the documents as they are to be read from there. A document
// alone in its group is given as it is. done removes the files; call it always.
func (p *Press) spool(ctx context.Context, docs []*millrace.Document) (out []*millrace.Document, done func(), err error) {
	var files []*os.File
	done = func() {
		for _, f := range files {
			f.Close()
			_ = os.Remove(f.Name())
		}
	}
	out = slices.Clone(docs)
	groups := make(map[*millrace.Group][]int)
	for i, d := range docs {
		if d != nil && d.Group != nil {
			groups[d.Group] = append(groups[d.Group], i)
		}
	}
	for group, members := range groups {
		if len(members) < 2 {
			continue
		}
		to := make(map[string]io.Writer, len(members))
		for _, i := range members {
			f, err := os.CreateTemp(p.dir, unfinished+"*")
			if err != nil {
				return nil, done, err
			}
			files = append(files, f)
			to[docs[i].Path] = &stoppable{ctx, f}
			spooled := *docs[i]
			spooled.Write = func(_ context.Context, w io.Writer) error {
				_, err := io.Copy(w, io.NewSectionReader(f, 0, 1<<62))
				return err
			}
			out[i] = &spooled
		}
		if err := group.Write(ctx, to); err != nil {
			return nil, done, fmt.Errorf("building %d documents together: %w", len(members), err)
		}
	}
	return out, done, nil
}

// later gives t, or the next whole second after another time if t is not in a
// later second.
func later(t, other time.Time) time.Time {
	if t.Unix() > other.Unix() {
		return t
	}
	return other.Truncate(time.Second).Add(time.Second)
}

// roomDocument is a large document with the name of its room.
type roomDocument struct {
	*millrace.Document
	room string
}

// largeDocuments lists what has to be built. Rooms yield large documents
// first, so that nothing else is made here.
func (p *Press) largeDocuments(ctx context.Context, view millrace.View) ([]roomDocument, error) {
	var out []roomDocument
	seen := make(map[string]string)
	for _, room := range p.rooms {
		for d, err := range room.Publisher.All(ctx, view) {
			if err != nil {
				return nil, fmt.Errorf("large documents of %s: %w", room.Name, err)
			}
			if !d.Large {
				break
			}
			if other, taken := seen[d.Path]; taken {
				return nil, fmt.Errorf("large document %s: both %s and %s publish it", d.Path, other, room.Name)
			}
			seen[d.Path] = room.Name
			out = append(out, roomDocument{d, room.Name})
		}
	}
	return out, nil
}

// touch reads the log since prev: it gives for every document the time of the
// newest entry that touches it, zero if none does, and sets m.Cursor.
func (m *manifest) touch(ctx context.Context, view millrace.View, prev *manifest, docs []roomDocument) ([]time.Time, error) {
	touched := make([]time.Time, len(docs))
	var since millrace.Cursor
	if prev != nil {
		since = prev.Cursor
	}
	for change, err := range view.Changes(ctx, since) {
		switch {
		case errors.Is(err, millrace.ErrConflict) && since != "":
			// The log does not reach back so far: everything is new.
			if _, err := m.touch(ctx, view, nil, nil); err != nil {
				return nil, err
			}
			for i := range touched {
				touched[i] = view.Site().Time
			}
			return touched, nil
		case err != nil:
			return nil, fmt.Errorf("reading the log: %w", err)
		}
		if change.Kind == millrace.Mark {
			m.Cursor = change.Mark.Cursor
			continue
		}
		if since == "" {
			continue // the state of the site, not what has happened to it
		}
		at := change.Time
		if at.IsZero() {
			at = view.Site().Time
		}
		for i, d := range docs {
			if at.After(touched[i]) && (d.Touched == nil || d.Touched(change.URL)) {
				touched[i] = at
			}
		}
	}
	return touched, nil
}

// output is one file being written.
type output struct {
	coding coding
	f      *os.File
	buf    *bufio.Writer
	sum    hash.Hash
	enc    io.WriteCloser
	size   int64
}

func (o *output) Write(b []byte) (int, error) {
	o.size += int64(len(b))
	o.sum.Write(b)
	return o.buf.Write(b)
}

// press writes a document's files, durable under their names when it returns,
// and completes next with them. On an error nothing of it is left.
func (p *Press) press(ctx context.Context, d *millrace.Document, next *large) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("building %s: %w", d.Path, err)
		}
	}()
	want := []coding{identity, brotliCoding, zstdCoding, gzipCoding}
	if d.Fixed || len(d.Header["Content-Encoding"]) > 0 {
		want = want[:1]
	}
	outputs := make([]*output, 0, len(want))
	defer func() {
		for _, o := range outputs {
			o.f.Close()
			_ = os.Remove(o.f.Name()) // renamed away when all went well
		}
	}()
	writers := make([]io.Writer, 0, len(want))
	for _, c := range want {
		f, err := os.CreateTemp(p.dir, unfinished+"*")
		if err != nil {
			return err
		}
		o := &output{coding: c, f: f, buf: bufio.NewWriterSize(f, 64<<10), sum: sha256.New()}
		outputs = append(outputs, o)
		if o.enc, err = stream(c, o); err != nil {
			return err
		}
		writers = append(writers, o.enc)
	}
	in := bufio.NewWriterSize(&stoppable{ctx, io.MultiWriter(writers...)}, 64<<10)
	if err := d.Write(ctx, in); err != nil {
		return err
	}
	if err := in.Flush(); err != nil {
		return err
	}
	for _, o := range outputs {
		if err := errors.Join(o.enc.Close(), o.buf.Flush(), o.f.Chmod(0o644), o.f.Sync()); err != nil {
			return err
		}
	}
	base := hex.EncodeToString(outputs[0].sum.Sum(nil))
	if !next.Own {
		next.ETag = "sha256-" + base
	}
	for _, o := range outputs {
		name := base + codingTable[o.coding].suffix
		if err := os.Rename(o.f.Name(), filepath.Join(p.dir, name)); err != nil {
			return err
		}
		next.Files = append(next.Files, file{codingTable[o.coding].name, name, o.size, o.sum.Sum(nil)})
	}
	return syncDir(p.dir)
}

// stoppable ends a long build soon after its context is cancelled.
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

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// unfinished starts the names of files that are being written.
const unfinished = "unfinished-"

// collect deletes the files that no manifest of the store names, after the grace
// period. retired is the manifest that was just superseded: the period of its
// files starts now.
func (p *Press) collect(ctx context.Context, retired *manifest, now time.Time) error {
	if retired != nil {
		retired.keep(p.dir, now)
	}
	needed := make(map[string]bool)
	if ed := p.current.Load(); ed != nil {
		for name := range ed.manifest.names() {
			needed[name] = true
		}
	}
	for raw, err := range p.from.Store.Manifests(ctx) {
		m := new(manifest)
		if err == nil {
			err = json.Unmarshal(raw, m)
		}
		if err != nil {
			return fmt.Errorf("collecting old files: %w", err)
		}
		for name := range m.names() {
			needed[name] = true
		}
	}
	files, err := os.ReadDir(p.dir)
	if err != nil {
		return fmt.Errorf("collecting old files: %w", err)
	}
	var errs []error
	for _, f := range files {
		info, err := f.Info()
		if err != nil || !info.Mode().IsRegular() || needed[f.Name()] || !ours(f.Name()) || now.Sub(info.ModTime()) < p.grace {
			continue
		}
		if err := os.Remove(filepath.Join(p.dir, f.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// keep begins the grace period of the manifest's files again: also of those
// that a process serves and the store no longer names.
func (m *manifest) keep(dir string, now time.Time) {
	for name := range m.names() {
		_ = os.Chtimes(filepath.Join(dir, name), now, now) // one that is gone needs no grace
	}
}

// ours reports whether a file has a name that press gives.
func ours(name string) bool {
	if strings.HasPrefix(name, unfinished) {
		return true
	}
	sum, suffix, _ := strings.Cut(name, "-")
	_, err := hex.DecodeString(sum)
	return err == nil && len(sum) == 2*sha256.Size && (suffix == "" || len(suffix) < 16)
}

// paths lists the large documents of a manifest.
func (m *manifest) paths() []string {
	set := make(map[string]bool)
	for _, d := range m.Documents {
		set[d.Path] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// names yields the names of all that a manifest needs in the directory.
func (m *manifest) names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, d := range m.Documents {
			for _, f := range d.files() {
				if !yield(f.Name) {
					return
				}
			}
		}
		for _, f := range m.Shelf {
			if !yield(f.name()) {
				return
			}
		}
	}
}
