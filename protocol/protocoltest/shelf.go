package protocoltest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// Shelf is a [millrace.ArtifactSet] in memory.
type Shelf struct {
	Before []millrace.Artifact // what the edition before had
	Files  []millrace.Artifact
	Made   []millrace.Artifact // those of Files that are new
	Bodies map[string][]byte   // by path, as they are sent
	Docs   []*millrace.Document
	Gone   []millrace.Artifact // that were withdrawn
}

// fill returns the files of a view, with the deferred ones. last may be nil.
func fill(ctx context.Context, filer millrace.ArtifactPublisher, v millrace.View, now time.Time, last *Shelf) (*Shelf, error) {
	deferred := new(Shelf)
	if last != nil {
		deferred.Before, deferred.Bodies, deferred.Gone = last.Files, maps.Clone(last.Bodies), last.Gone
	}
	if err := filer.Deferred(ctx, v, now, deferred); err != nil {
		return nil, err
	}
	shelf := &Shelf{Before: slices.Concat(deferred.Before, deferred.Made), Bodies: deferred.Bodies}
	if last != nil {
		shelf.Gone = slices.Clone(last.Gone)
	}
	_, err := filer.Artifacts(ctx, v, now, shelf)
	return shelf, err
}

// Held implements [millrace.ArtifactSet].
func (s *Shelf) Held() []millrace.Artifact { return s.Before }

// Keep implements [millrace.ArtifactSet].
func (s *Shelf) Keep(f millrace.Artifact) { s.Files = append(s.Files, f) }

// Withdraw implements [millrace.ArtifactSet].
func (s *Shelf) Withdraw(f millrace.Artifact, _ time.Time) { s.Gone = append(s.Gone, f) }

// Withdrawn implements [millrace.ArtifactSet].
func (s *Shelf) Withdrawn() (notes []json.RawMessage) {
	for _, f := range s.Gone {
		notes = append(notes, f.Note)
	}
	return notes
}

// Put implements [millrace.ArtifactSet].
func (s *Shelf) Put(ctx context.Context, d *millrace.Document) error {
	built, err := built(ctx, d)
	s.Docs = append(s.Docs, built)
	return err
}

// Create implements [millrace.ArtifactSet].
func (s *Shelf) Create() (millrace.ArtifactWriter, error) { return &draft{shelf: s}, nil }

// built gives a large document with its bytes, as an edition has it.
func built(ctx context.Context, d *millrace.Document) (*millrace.Document, error) {
	var b bytes.Buffer
	if err := d.Write(ctx, &b); err != nil {
		return nil, err
	}
	out := *d
	if out.ETag == "" {
		out.ETag = "sha256-" + canon.SHA256Hex(b.Bytes())
	}
	out.Write = func(_ context.Context, w io.Writer) error {
		_, err := w.Write(b.Bytes())
		return err
	}
	return &out, nil
}

// document gives a file as an edition serves it.
func (s *Shelf) document(f millrace.Artifact) *millrace.Document {
	h := f.Header.Clone()
	h.Set("Last-Modified", f.Modified.UTC().Format(http.TimeFormat))
	if f.Coding != "" {
		h.Set("Content-Encoding", f.Coding)
	}
	return &millrace.Document{Path: f.Path, ETag: f.ETag, Header: h, Large: true, Write: func(_ context.Context, w io.Writer) error {
		_, err := w.Write(s.Bodies[f.Path])
		return err
	}}
}

// draft is a [millrace.ArtifactWriter] in memory.
type draft struct {
	shelf *Shelf
	body  []byte
}

func (d *draft) Write(b []byte) (int, error) {
	d.body = append(d.body, b...)
	return len(b), nil
}

// Finish implements [millrace.ArtifactWriter].
func (d *draft) Finish(_ context.Context, head []byte, f millrace.Artifact, codings []string, name func(coding, sum string) string) ([]millrace.Artifact, error) {
	var out []millrace.Artifact
	for _, c := range codings {
		var b bytes.Buffer
		w := io.WriteCloser(plain{&b})
		var err error
		switch c {
		case "zstd":
			w, err = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
		case "gzip":
			w = gzip.NewWriter(&b)
		case "":
		default:
			err = fmt.Errorf("there is no coding %q", c)
		}
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(slices.Concat(head, d.body)); err != nil {
			return nil, err
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		made := f
		made.Coding, made.Size, made.Sum = c, int64(b.Len()), canon.SHA256Hex(b.Bytes())
		made.ETag = cmp.Or(f.ETag, "sha256:"+made.Sum)
		made.Path = name(c, made.Sum)
		if d.shelf.Bodies == nil {
			d.shelf.Bodies = map[string][]byte{}
		}
		d.shelf.Bodies[made.Path] = b.Bytes()
		d.shelf.Files, d.shelf.Made = append(d.shelf.Files, made), append(d.shelf.Made, made)
		out = append(out, made)
	}
	return out, nil
}

// Discard implements [millrace.ArtifactWriter].
func (d *draft) Discard() {}

type plain struct{ io.Writer }

func (plain) Close() error { return nil }
