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

// ArtifactSet is a [millrace.ArtifactSet] in memory.
type ArtifactSet struct {
	Before []millrace.Artifact // artifacts of the previous edition
	Files  []millrace.Artifact
	Made   []millrace.Artifact // new artifacts, which are also in Files
	Bodies map[string][]byte   // coded bodies by path
	Docs   []*millrace.Document
	Gone   []millrace.Artifact // withdrawn artifacts
}

// fill returns the artifacts of a view, including deferred ones. last may be nil.
func fill(ctx context.Context, filer millrace.ArtifactPublisher, v millrace.View, now time.Time, last *ArtifactSet) (*ArtifactSet, error) {
	deferred := new(ArtifactSet)
	if last != nil {
		deferred.Before, deferred.Bodies, deferred.Gone = last.Files, maps.Clone(last.Bodies), last.Gone
	}
	if err := filer.Deferred(ctx, v, now, deferred); err != nil {
		return nil, err
	}
	artifacts := &ArtifactSet{Before: slices.Concat(deferred.Before, deferred.Made), Bodies: deferred.Bodies}
	if last != nil {
		artifacts.Gone = slices.Clone(last.Gone)
	}
	_, err := filer.Artifacts(ctx, v, now, artifacts)
	return artifacts, err
}

// Existing implements [millrace.ArtifactSet].
func (s *ArtifactSet) Existing() []millrace.Artifact { return s.Before }

// Keep implements [millrace.ArtifactSet].
func (s *ArtifactSet) Keep(f millrace.Artifact) { s.Files = append(s.Files, f) }

// Withdraw implements [millrace.ArtifactSet].
func (s *ArtifactSet) Withdraw(f millrace.Artifact, _ time.Time) { s.Gone = append(s.Gone, f) }

// Withdrawn implements [millrace.ArtifactSet].
func (s *ArtifactSet) Withdrawn() (notes []json.RawMessage) {
	for _, f := range s.Gone {
		notes = append(notes, f.Note)
	}
	return notes
}

// Put implements [millrace.ArtifactSet].
func (s *ArtifactSet) Put(ctx context.Context, d *millrace.Document) error {
	built, err := built(ctx, d)
	s.Docs = append(s.Docs, built)
	return err
}

// Create implements [millrace.ArtifactSet].
func (s *ArtifactSet) Create() (millrace.ArtifactWriter, error) {
	return &artifactWriter{artifacts: s}, nil
}

// built returns a large document with its bytes, as an edition builds it.
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

// document returns an artifact as the document that an edition serves.
func (s *ArtifactSet) document(f millrace.Artifact) *millrace.Document {
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

// artifactWriter is a [millrace.ArtifactWriter] in memory.
type artifactWriter struct {
	artifacts *ArtifactSet
	body      []byte
}

func (d *artifactWriter) Write(b []byte) (int, error) {
	d.body = append(d.body, b...)
	return len(b), nil
}

// Finish implements [millrace.ArtifactWriter].
func (d *artifactWriter) Finish(_ context.Context, head []byte, f millrace.Artifact, codings []string, name func(coding, sum string) string) ([]millrace.Artifact, error) {
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
			err = fmt.Errorf("unknown coding %q", c)
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
		if d.artifacts.Bodies == nil {
			d.artifacts.Bodies = map[string][]byte{}
		}
		d.artifacts.Bodies[made.Path] = b.Bytes()
		d.artifacts.Files, d.artifacts.Made = append(d.artifacts.Files, made), append(d.artifacts.Made, made)
		out = append(out, made)
	}
	return out, nil
}

// Discard implements [millrace.ArtifactWriter].
func (d *artifactWriter) Discard() {}

type plain struct{ io.Writer }

func (plain) Close() error { return nil }
