package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"regexp"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// singlePageView is a view with a single page, so a protocol builds only the parts of its documents that
// describe this page.
type singlePageView struct {
	millrace.View
	page *millrace.Page // with its blocks
	site millrace.Site
}

func newSinglePageView(v millrace.View, page *millrace.Page) *singlePageView {
	a := &singlePageView{View: v, page: page, site: v.Site()}
	a.site.Pages, a.site.Sections = 1, nil
	if page.Section != "" {
		a.site.Sections = []millrace.Section{{Name: page.Section, Pages: 1}}
	}
	return a
}

// Site implements [millrace.View].
func (a *singlePageView) Site() millrace.Site { return a.site }

// Scan implements [millrace.View].
func (a *singlePageView) Scan(_ context.Context, s millrace.Scan) iter.Seq2[*millrace.Page, error] {
	return func(yield func(*millrace.Page, error) bool) {
		pagePath, after := canon.Relative(a.site.Base, a.page.URL), canon.Relative(a.site.Base, s.After)
		if s.Section != "" && s.Section != a.page.Section || after != "" && (s.Order != millrace.ByURL || pagePath <= after) {
			return
		}
		p := a.page.Clone()
		if !s.WithBlocks {
			p.Blocks = nil
		}
		yield(p, nil)
	}
}

// Tags implements [millrace.View].
func (a *singlePageView) Tags(ctx context.Context, proto, after string) iter.Seq2[millrace.Tag, error] {
	return func(yield func(millrace.Tag, error) bool) {
		t, err := a.Tag(ctx, proto, a.page.URL)
		if errors.Is(err, millrace.ErrNotFound) || err == nil && canon.Relative(a.site.Base, t.URL) <= canon.Relative(a.site.Base, after) {
			return
		}
		yield(t, err)
	}
}

// Changes implements [millrace.Source].
func (a *singlePageView) Changes(_ context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		put := millrace.Change{Ref: millrace.Ref{URL: a.page.URL, Version: a.page.Version}, Page: a.page.Clone(), New: true, Time: a.page.Modified}
		if since == a.site.At(a.site.Seq) || yield(put, nil) {
			yield(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: a.site.At(a.site.Seq), Complete: since == ""}}, nil)
		}
	}
}

// firstArtifact is a [millrace.ArtifactSet] that keeps only the first artifact.
type firstArtifact struct {
	path string
	body prefixBuffer
}

// Existing implements [millrace.ArtifactSet].
func (s *firstArtifact) Existing() []millrace.Artifact { return nil }

// Keep implements [millrace.ArtifactSet].
func (s *firstArtifact) Keep(millrace.Artifact) {}

// Withdraw implements [millrace.ArtifactSet].
func (s *firstArtifact) Withdraw(millrace.Artifact, time.Time) {}

// Withdrawn implements [millrace.ArtifactSet].
func (s *firstArtifact) Withdrawn() []json.RawMessage { return nil }

// Create implements [millrace.ArtifactSet].
func (s *firstArtifact) Create() (millrace.ArtifactWriter, error) {
	return &artifactWriter{set: s}, nil
}

// Put implements [millrace.ArtifactSet].
func (s *firstArtifact) Put(context.Context, *millrace.Document) error { return nil }

type artifactWriter struct {
	set  *firstArtifact
	body prefixBuffer
}

// Write implements [io.Writer].
func (d *artifactWriter) Write(b []byte) (int, error) { return d.body.Write(b) }

// Finish implements [millrace.ArtifactWriter].
func (d *artifactWriter) Finish(_ context.Context, head []byte, f millrace.Artifact, codings []string, name func(coding, sum string) string) ([]millrace.Artifact, error) {
	var body prefixBuffer
	for _, b := range [][]byte{head, d.body.start.Bytes()} {
		_, _ = body.Write(b)
	}
	body.size = d.body.size + int64(len(head))
	var out []millrace.Artifact
	for _, coding := range codings {
		f.Coding, f.Size, f.Sum = coding, body.size, noSum
		f.Path = name(coding, f.Sum)
		out = append(out, f)
	}
	if d.set.path == "" && len(out) > 0 {
		d.set.path, d.set.body = out[0].Path, body
	}
	return out, nil
}

// Discard implements [millrace.ArtifactWriter].
func (d *artifactWriter) Discard() {}

// noSum is the placeholder for a hash that was not computed.
const noSum = "0000000000000000000000000000000000000000000000000000000000000000"

var zeros = regexp.MustCompile(`0{8,}`)

// prefixBuffer stores the start of the data written to it, and counts all bytes.
type prefixBuffer struct {
	start bytes.Buffer
	size  int64
}

// Write implements [io.Writer].
func (l *prefixBuffer) Write(b []byte) (int, error) {
	l.size += int64(len(b))
	l.start.Write(b[:min(len(b), max(0, maxBodyShown-l.start.Len()))])
	return len(b), nil
}

// artifactBuilder is a protocol that builds artifacts.
type artifactBuilder interface {
	Deferred(ctx context.Context, v millrace.View, now time.Time, s millrace.ArtifactSet) error
}

// documents returns the paths, under the endpoint base, of the documents that a protocol builds
// from this page alone. If there are none, it returns the page's part of a document of many pages.
func (a *singlePageView) documents(ctx context.Context, proto millrace.Publisher, now time.Time) (paths []string, part *formBody, err error) {
	pagePath := canon.Relative(a.site.Base, a.page.URL)
	var large *millrace.Document
	for doc, err := range proto.All(ctx, a) {
		switch {
		case err != nil:
			return nil, nil, err
		case doc.Page == pagePath && doc.Variant == "":
			paths = append(paths, doc.Path)
		case doc.Large && large == nil:
			large = doc
		}
	}
	if len(paths) > 0 {
		return paths, nil, nil
	}
	if f, ok := proto.(artifactBuilder); ok {
		s := new(firstArtifact)
		if err := f.Deferred(ctx, a, now, s); err != nil {
			return nil, nil, err
		}
		if s.path != "" {
			return nil, newFormBody(zeros.ReplaceAllString(s.path, "…"), http.Header{"Content-Type": {"application/jsonl"}}, &s.body), nil
		}
	}
	if large == nil {
		return nil, nil, nil
	}
	var body prefixBuffer
	if err := large.Write(ctx, &body); err != nil || body.size == 0 {
		return nil, nil, err
	}
	return nil, newFormBody(large.Path, large.Header, &body), nil
}
