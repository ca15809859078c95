package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"time"

	"github.com/millrace/millrace"
	artifactdir "github.com/millrace/millrace/artifact/dir"
	"github.com/millrace/millrace/internal/edition"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/scp"
	"github.com/millrace/millrace/store"
)

var (
	snapshotURL = regexp.MustCompile(`<scp:collection [^>]*url="([^"]+\.zst)"`)
	deltaPages  = regexp.MustCompile(`<scp:delta [^>]*url="[^"]+\.zst"[^>]* pages="(\d+)"`)
)

// timedFiler records the processor time from the creation of the first file to the end of the last
// file.
type timedFiler struct {
	millrace.ArtifactPublisher
	start, seconds float64
	rests          bool // create no more snapshots
}

// Deferred implements [millrace.ArtifactPublisher].
func (f *timedFiler) Deferred(ctx context.Context, v millrace.View, now time.Time, s millrace.ArtifactSet) error {
	if f.rests {
		return nil
	}
	return f.ArtifactPublisher.Deferred(ctx, v, now, s)
}

// Artifacts implements [millrace.ArtifactPublisher].
func (f *timedFiler) Artifacts(ctx context.Context, v millrace.View, now time.Time, s millrace.ArtifactSet) (time.Time, error) {
	f.start, f.seconds = 0, 0
	return f.ArtifactPublisher.Artifacts(ctx, v, now, &timedSet{s, f})
}

type timedSet struct {
	millrace.ArtifactSet
	f *timedFiler
}

// Create implements [millrace.ArtifactSet].
func (s *timedSet) Create() (millrace.ArtifactWriter, error) {
	if s.f.start == 0 {
		s.f.start = processorTime()
	}
	d, err := s.ArtifactSet.Create()
	return &timedWriter{d, s.f}, err
}

type timedWriter struct {
	millrace.ArtifactWriter
	f *timedFiler
}

// Finish implements [millrace.ArtifactWriter].
func (d *timedWriter) Finish(ctx context.Context, head []byte, f millrace.Artifact, codings []string, name func(coding, sum string) string) ([]millrace.Artifact, error) {
	files, err := d.ArtifactWriter.Finish(ctx, head, f, codings, name)
	d.f.seconds = processorTime() - d.f.start
	return files, err
}

// scpDeltas measures whether the processor time to build a delta is proportional to the number of
// changed pages. It changes several shares of n pages, and builds the editions in all codings.
func (b *bench) scpDeltas(ctx context.Context, a *author, n int) error {
	now := scpTime
	from, stop, err := scpStore(ctx, filepath.Join(b.dir, "scp-deltas.db"), a, n, &store.Options{Now: func() time.Time { return now }})
	if err != nil {
		return err
	}
	defer stop()
	filer, ok := scp.NewPublisher(&protocol.PublisherOptions{Own: []any{&scp.PublisherOptions{Sections: []string{}}}}).(millrace.ArtifactPublisher)
	if !ok {
		return errNoFiler
	}
	timed := &timedFiler{ArtifactPublisher: filer}
	proto := edition.Protocol{Name: scp.Name, Publisher: timed}
	artifacts, err := artifactdir.Open(filepath.Join(b.dir, "scp-files"))
	if err != nil {
		return err
	}
	defer func() { _ = artifacts.Close() }()
	server := edition.NewServer(from, []edition.Protocol{proto}, artifacts,
		&edition.Options{Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)})
	publish := func() (seconds float64, pages string, err error) {
		seconds, _, err = measure(func() error {
			_, err := server.Publish(ctx)
			return err
		})
		if err != nil {
			return 0, "", err
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/sitemap.xml", nil)
		if done, err := server.Serve(w, r); err != nil || !done {
			return 0, "", fmt.Errorf("serve the sitemap: %w", cmp.Or(err, millrace.ErrNotFound))
		}
		text := w.Body.String()
		if !snapshotURL.MatchString(text) {
			return 0, "", fmt.Errorf("serve the sitemap: it lists no snapshot")
		}
		if d := deltaPages.FindStringSubmatch(text); d != nil {
			pages = d[1]
		}
		return seconds, pages, nil
	}
	first, _, err := publish()
	if err != nil {
		return err
	}
	timed.rests = true
	now = now.AddDate(0, 0, 1)
	parts := []int{1, n / 1000, n / 100, n / 10}
	var each []float64
	for i, changed := range parts {
		now = now.Add(time.Second)
		if err := put(ctx, from.Site, a, changed, i+1); err != nil {
			return err
		}
		now = now.Add(time.Second)
		seconds, pages, err := publish()
		if err != nil {
			return err
		}
		if pages != fmt.Sprint(changed) {
			return fmt.Errorf("the delta has %s pages, want %d", pages, changed)
		}
		each = append(each, timed.seconds/float64(changed))
		if i == 0 {
			continue // no previous delta to compare with
		}
		r := row{
			what:  fmt.Sprintf("delta after %d of %d pages changed, in three codings", changed, n),
			limit: fmt.Sprintf("%.1f s (the edition with a snapshot)", first),
			ours:  fmt.Sprintf("%.2f s of an edition of %.2f s, %.2f ms for each page", timed.seconds, seconds, each[i]*1e3),
			ratio: fmt.Sprintf("%.3f", timed.seconds/first),
		}
		if i > 1 { // proportional: ten times as many changes take ten times as long
			r.limit = fmt.Sprintf("%.2f ms for each of %d", each[i-1]*1e3, parts[i-1])
			r.ratio = fmt.Sprintf("%.2f", each[i]/each[i-1])
			r.reach, r.good = "at most 1.5", each[i] < 1.5*each[i-1]
		}
		b.add(r)
	}
	return nil
}
