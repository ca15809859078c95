package main

import (
	"context"
	"iter"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/origin/folder"
)

// twice is a source that names each page twice, like a crawl that finds a page by its
// sitemap and by a link.
type twice struct{ millrace.Source }

func (s twice) Changes(ctx context.Context, since millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		for c, err := range s.Source.Changes(ctx, since) {
			if !yield(c, err) || err == nil && c.Page != nil && !yield(c, nil) {
				return
			}
		}
	}
}

// A scan counts each page once, even if the source names it twice.
func TestSyncCountsOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const base = "https://www.example.com/"
	f, err := folder.New(copySite(t, "handbook"), &folder.Options{Base: base})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	db := openStore(t, filepath.Join(t.TempDir(), "x.db"), false)
	site, err := db.Site(ctx, "folder", base)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{stderr: terminal.New(&buffer{}, environment(nil)), commonFlags: &commonFlags{Quiet: true}, log: slog.New(slog.DiscardHandler)}
	o := p.newSource("folder", base, ingest.Rules{})
	o.Name, o.From, o.Store, o.Source = "folder", "folder", db, twice{f}
	var pages int
	for i, known := range []bool{false, true} {
		r, err := o.Sync(ctx, site)
		if err != nil {
			t.Fatal(err)
		}
		if !known {
			pages = r.Added
		}
		if got, want := r.Counts, (map[bool]millrace.Counts{false: {Added: pages}, true: {Unchanged: pages}})[known]; pages == 0 || got != want {
			t.Errorf("scan %d: %+v, want %+v", i, got, want)
		}
	}
}
