package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// For every time since the horizon there is a sequence number from which Changes continues, even if
// Compact has deleted entries before it. The last entry of this site is a deletion.
func TestSinceAfterCompact(t *testing.T) {
	ctx := t.Context()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s, err := Open(ctx, filepath.Join(t.TempDir(), "x.db"), &store.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	site, err := s.Site(ctx, "https://mill.example/", "https://mill.example/")
	if err != nil {
		t.Fatal(err)
	}
	put := func(url string) millrace.Change {
		return millrace.Change{Ref: millrace.Ref{URL: url}, Page: &millrace.Page{URL: url, Title: url, Known: millrace.FieldTitle}}
	}
	for _, c := range []millrace.Change{
		put("/wheel/"),
		put("/gate/"),
		{Kind: millrace.Delete, Ref: millrace.Ref{URL: "/gate/"}},
	} {
		now = now.Add(time.Hour)
		if _, err := site.Apply(ctx, "me", []millrace.Change{c}); err != nil {
			t.Fatal(err)
		}
	}
	last := now
	now = now.Add(60 * 24 * time.Hour)
	if err := site.Compact(ctx, time.Hour, 30*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	v, err := site.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Time{last, now.Add(-24 * time.Hour), now} {
		seq, err := v.SeqAt(ctx, at)
		if err != nil {
			t.Fatal(err)
		}
		for c, err := range v.Changes(ctx, v.Site().At(seq)) {
			if err != nil {
				t.Errorf("since %s, number %d of %d: %v", at, seq, v.Site().Seq, err)
			} else if c.Kind != millrace.KindCheckpoint {
				t.Errorf("since %s: %+v", at, c)
			}
		}
	}
}
