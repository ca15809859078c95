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
	"github.com/millrace/millrace/artifact"
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
	since, err := m.touch(ctx, view, prev, docs)
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
		next := large{Room: d.room, Path: d.Path, ETag: d.ETag, Own: d.ETag != "", OneTag: d.OneTag, Public: d.Public, Names: d.Names, Header: d.Header, Modified: since[i].time}
		if d.Parts != nil {
			if err := p.chunk(ctx, d.Document, &next, old, prev != nil && prev.foreign, since[i], view); err != nil {
				return nil, fmt.Errorf("building %s: %w", d.Path, err)
			}
			m.Documents = append(m.Documents, next)
			continue
		}
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
	for i, d := range todo {
		next := &m.Documents[i]
		if next.Chunks != nil {
			continue
		}
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

// chunk completes next, a document of parts, from its earlier form.
func (p *Press) chunk(ctx context.Context, d *millrace.Document, next, old *large, foreign bool, since changes, view millrace.View) error {
	one := func(parts *millrace.Parts, next, old, served *large, changed []string) error {
		var earlier *chunked
		if old != nil && !foreign && !since.unreachable && old.Chunks != nil && old.Chunks.there(ctx, p.artifacts, served.tree()) == nil {
			earlier = old.Chunks
		}
		made, err := cut(ctx, p.artifacts, parts, earlier, changed)
		if err != nil {
			return err
		}
		next.Chunks, next.ETag, next.Modified = made, made.etag(), view.Site().Time
		switch {
		case old == nil:
		case old.ETag == next.ETag:
			next.Modified = old.Modified
		default: // Last-Modified has whole seconds, and some clients go by it alone.
			next.Modified = later(next.Modified, old.Modified)
		}
		return nil
	}
	var served *large // whose chunks are there
	if ed := p.current.Load(); ed != nil && p.verified {
		served = ed.manifest.document(d.Path)
	}
	if err := one(d.Parts, next, old, served, since.parts); err != nil || d.PartsKeyed == nil {
		return err
	}
	keyed := *next
	var last *large
	if old != nil {
		last = old.Keyed
	}
	if served != nil {
		served = served.Keyed
	}
	if err := one(d.PartsKeyed, &keyed, last, served, since.partsKeyed); err != nil {
		return fmt.Errorf("for those with a key: %w", err)
	}
	next.Keyed = &keyed
	return nil
}

// changes is what has happened to a document since an edition.
type changes struct {
	time        time.Time // of the newest entry that touches it, zero if none does
	parts       []string  // keys of the parts that may have changed
	partsKeyed  []string
	unreachable bool // the log does not reach back so far: everything may have changed
}

// maxKeys is how many keys of changed parts are held for a document: where more
// have changed, all its parts are written again.
const maxKeys = 100_000

// touch reads the log since prev: it gives what has happened to every document,
// and sets m.Cursor.
func (m *manifest) touch(ctx context.Context, view millrace.View, prev *manifest, docs []roomDocument) ([]changes, error) {
	out := make([]changes, len(docs))
	var since millrace.Cursor
	if prev != nil {
		since = prev.Cursor
	}
	for change, err := range view.Changes(ctx, since) {
		switch {
		case errors.Is(err, millrace.ErrConflict) && since != "":
			if _, err := m.touch(ctx, view, nil, nil); err != nil {
				return nil, err
			}
			for i := range out {
				out[i] = changes{time: view.Site().Time, unreachable: true}
			}
			return out, nil
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
			out[i].add(d.Document, change.URL, at)
		}
	}
	return out, nil
}

// add adds the change of a page to those of a document.
func (c *changes) add(d *millrace.Document, url string, at time.Time) {
	if d.Parts == nil {
		if at.After(c.time) && (d.Touched == nil || d.Touched(url)) {
			c.time = at
		}
		return
	}
	if c.unreachable {
		return
	}
	c.parts = append(c.parts, d.Parts.Changed(url)...)
	if d.PartsKeyed != nil {
		c.partsKeyed = append(c.partsKeyed, d.PartsKeyed.Changed(url)...)
	}
	if len(c.parts) > maxKeys {
		*c = changes{unreachable: true}
	}
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
	if err := p.collectChunks(ctx, retired, now); err != nil {
		return fmt.Errorf("collecting old chunks: %w", err)
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

// collectChunks deletes the chunks and nodes that no manifest of the store names,
// after their grace period, which began when an edition was published that does
// not need them. It looks for them once an hour.
func (p *Press) collectChunks(ctx context.Context, retired *manifest, now time.Time) error {
	ed := p.current.Load()
	if retired != nil {
		err := retired.beyond(ctx, p.artifacts, ed.manifest, func(b *branch, height int) error {
			if err := artifact.Touch(ctx, p.artifacts, b.name(height)); !errors.Is(err, millrace.ErrNotFound) {
				return err
			}
			return nil
		})
		if err != nil && !errors.Is(err, millrace.ErrNotFound) {
			return err
		}
	}
	if now.Sub(p.collected) < min(time.Hour, p.chunkGrace) {
		return nil
	}
	p.collected = now
	needed := make(map[string]bool)
	need := func(m *manifest) error {
		return m.beyond(ctx, p.artifacts, nil, func(b *branch, height int) error {
			needed[b.name(height)] = true
			return nil
		})
	}
	if err := need(ed.manifest); err != nil {
		return err
	}
	for raw, err := range p.from.Store.Manifests(ctx) {
		m := new(manifest)
		if err == nil {
			err = json.Unmarshal(raw, m)
		}
		if err == nil {
			err = need(m)
		}
		if err != nil {
			return err
		}
	}
	for info, err := range p.artifacts.List(ctx, "") {
		if err != nil {
			return err
		}
		if needed[info.Name] || now.Sub(info.Modified) < p.chunkGrace {
			continue
		}
		if err := p.artifacts.Delete(ctx, info.Name); err != nil {
			return err
		}
	}
	return nil
}

// beyond calls f for every chunk and node of the documents of a manifest that the
// document of the same path of another does not have.
func (m *manifest) beyond(ctx context.Context, store artifact.Store, other *manifest, f func(b *branch, height int) error) error {
	for i := range m.Documents {
		o := other.document(m.Documents[i].Path)
		for d := &m.Documents[i]; d != nil; d = d.Keyed {
			if d.Chunks != nil {
				if err := d.Chunks.Tree.beyond(ctx, store, o.tree(), f); err != nil {
					return err
				}
			}
			if o != nil {
				o = o.Keyed
			}
		}
	}
	return nil
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
