package ingest_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/origin"
	"github.com/millrace/millrace/store/memory"
)

// onceSkipped is a live site. Each scan reports the pages that it skips for the first time, and
// yields those that are read.
type onceSkipped struct {
	base        string
	skips, read []string
}

func (s *onceSkipped) Changes(context.Context, millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		for _, name := range s.skips {
			if !yield(millrace.Change{}, &millrace.SkipError{URL: s.base + name, Err: fmt.Errorf("%w: password required", millrace.ErrForbidden)}) {
				return
			}
		}
		for _, name := range s.read {
			ref := millrace.Ref{URL: s.base + name, Version: "1"}
			p := &millrace.Page{URL: ref.URL, Version: ref.Version, Title: name, Known: millrace.FieldTitle}
			if !yield(millrace.Change{Kind: millrace.Put, Ref: ref, Page: p}, nil) {
				return
			}
		}
		yield(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: "1"}}, nil)
	}
}

func (s *onceSkipped) Page(context.Context, millrace.Ref) (*millrace.Page, error) {
	return nil, millrace.ErrNotFound
}

// A skipped page stays skipped, even in another process, until it is read or no scan has reported
// it for a month.
func TestSkipsPersist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, site := memory.New(nil), &onceSkipped{base: "https://skips.test/"}
		last := 0
		scan := func() (skipped int) {
			t.Helper()
			o := &ingest.Origin{Store: st, Name: site.base, From: site.base + " test", Base: site.base, Logger: slog.New(slog.DiscardHandler)}
			o.Use(origin.Origin{Name: "test"}, &origin.Source{Source: site})
			stored, err := st.Site(t.Context(), o.Name, o.Base)
			if err != nil {
				t.Fatal(err)
			}
			before, n, err := o.Skipped(t.Context())
			if err != nil || n != last || len(before) != n {
				t.Errorf("before the scan: %d pages skipped, %v; want %d", n, err, last)
			}
			r, err := o.Sync(t.Context(), stored)
			if err != nil || len(r.Skipped) != r.SkippedN {
				t.Fatalf("%+v, %v", r, err)
			}
			last = r.SkippedN
			return r.SkippedN
		}
		for i, step := range []struct {
			skips, read []string
			after       time.Duration
			want        int
		}{
			{skips: []string{"a", "b", "c"}, read: []string{"d"}, want: 3},
			{want: 3},
			{skips: []string{"b"}, after: 20 * 24 * time.Hour, want: 3},
			{read: []string{"a"}, want: 2},
			{after: 11 * 24 * time.Hour, want: 1},
			{read: []string{"b"}, want: 0},
		} {
			time.Sleep(step.after)
			site.skips, site.read = step.skips, step.read
			if got := scan(); got != step.want {
				t.Errorf("scan %d: %d pages skipped, want %d", i, got, step.want)
			}
		}
	})
}
