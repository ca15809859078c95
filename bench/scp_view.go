package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/scp"
)

// pagesView is a [millrace.View] of pages outside a store.
type pagesView struct {
	n    int
	page func(i int) *millrace.Page
}

var scpTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Site implements [millrace.View].
func (v *pagesView) Site() millrace.Site {
	return millrace.Site{Base: scpSite, EndpointBase: scpSite, Title: "Bench", Language: "en", Epoch: "bench", Seq: uint64(v.n), Time: scpTime, Pages: v.n}
}

// Scan implements [millrace.View].
func (v *pagesView) Scan(context.Context, millrace.Scan) iter.Seq2[*millrace.Page, error] {
	return func(yield func(*millrace.Page, error) bool) {
		for i := range v.n {
			if !yield(v.page(i), nil) {
				return
			}
		}
	}
}

// Tags implements [millrace.View].
func (v *pagesView) Tags(context.Context, string, string) iter.Seq2[millrace.Tag, error] {
	return func(yield func(millrace.Tag, error) bool) {
		for i := range v.n {
			if !yield(millrace.Tag{URL: scpURL(i), Value: "1", N: 1, Modified: scpTime}, nil) {
				return
			}
		}
	}
}

// SeqAt implements [millrace.View]. The view has no history.
func (v *pagesView) SeqAt(context.Context, time.Time) (uint64, error) { return uint64(v.n), nil }

// Changes implements [millrace.View].
func (v *pagesView) Changes(context.Context, millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(func(millrace.Change, error) bool) {}
}

// Page implements [millrace.View].
func (v *pagesView) Page(context.Context, millrace.Ref) (*millrace.Page, error) {
	return nil, millrace.ErrNotFound
}

// Tag implements [millrace.View].
func (v *pagesView) Tag(context.Context, string, string) (millrace.Tag, error) {
	return millrace.Tag{}, millrace.ErrNotFound
}

// newEncoder returns an encoder with the settings that internal/edition uses for artifacts.
func newEncoder(w io.Writer) (*zstd.Encoder, error) {
	return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(4<<20))
}

// zstdSet is a [millrace.ArtifactSet] like that of internal/edition, but only for zstd.
type zstdSet struct {
	dir   string
	files []string // created files
}

// Existing implements [millrace.ArtifactSet].
func (s *zstdSet) Existing() []millrace.Artifact { return nil }

// Keep implements [millrace.ArtifactSet].
func (s *zstdSet) Keep(millrace.Artifact) {}

// Withdraw implements [millrace.ArtifactSet].
func (s *zstdSet) Withdraw(millrace.Artifact, time.Time) {}

// Withdrawn implements [millrace.ArtifactSet].
func (s *zstdSet) Withdrawn() []json.RawMessage { return nil }

// Put implements [millrace.ArtifactSet].
func (s *zstdSet) Put(ctx context.Context, d *millrace.Document) error {
	return d.Write(ctx, io.Discard)
}

// Create implements [millrace.ArtifactSet].
func (s *zstdSet) Create() (millrace.ArtifactWriter, error) {
	f, err := os.CreateTemp(s.dir, "artifact-*")
	if err != nil {
		return nil, err
	}
	return &zstdWriter{s: s, f: f, buf: bufio.NewWriterSize(f, 256<<10)}, nil
}

type zstdWriter struct {
	s   *zstdSet
	f   *os.File
	buf *bufio.Writer
}

func (d *zstdWriter) Write(b []byte) (int, error) { return d.buf.Write(b) }

// Finish implements [millrace.ArtifactWriter].
func (d *zstdWriter) Finish(_ context.Context, head []byte, f millrace.Artifact, _ []string, name func(coding, sum string) string) ([]millrace.Artifact, error) {
	if err := d.buf.Flush(); err != nil {
		return nil, err
	}
	if _, err := d.f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	out, err := os.CreateTemp(d.s.dir, "coded-*")
	if err != nil {
		return nil, err
	}
	defer out.Close()
	sum := sha256.New()
	w := bufio.NewWriterSize(out, 256<<10)
	enc, err := newEncoder(io.MultiWriter(w, sum))
	if err != nil {
		return nil, err
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{enc}, io.MultiReader(bytes.NewReader(head), d.f), make([]byte, 256<<10)); err != nil {
		return nil, err
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	f.Coding, f.Sum = "zstd", hex.EncodeToString(sum.Sum(nil))
	f.Path = name(f.Coding, f.Sum)
	info, err := out.Stat()
	if err != nil {
		return nil, err
	}
	f.Size = info.Size()
	file := filepath.Join(d.s.dir, filepath.Base(f.Path))
	d.s.files = append(d.s.files, file)
	return []millrace.Artifact{f}, os.Rename(out.Name(), file)
}

// Discard implements [millrace.ArtifactWriter].
func (d *zstdWriter) Discard() {
	_ = d.f.Close()
	_ = os.Remove(d.f.Name())
}

var errNoFiler = errors.New("the publisher creates no files")

// snapshot writes the only snapshot of a view, and returns the name of its file.
func snapshot(ctx context.Context, v millrace.View, dir string) (string, error) {
	s := &zstdSet{dir: dir}
	p, ok := scp.NewPublisher(&protocol.PublisherOptions{Own: []any{&scp.PublisherOptions{Sections: []string{}}}}).(millrace.ArtifactPublisher)
	if !ok {
		return "", errNoFiler
	}
	if err := p.Deferred(ctx, v, scpTime, s); err != nil {
		return "", err
	}
	if len(s.files) != 1 {
		return "", fmt.Errorf("%d files for one snapshot", len(s.files))
	}
	return s.files[0], nil
}
