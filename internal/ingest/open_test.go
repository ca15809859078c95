package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/origin"
	"github.com/millrace/millrace/origin/all"
	"github.com/millrace/millrace/store/memory"
)

// onePage is a source of one page. It completes its list when end is closed; nil =
// at once.
type onePage struct {
	url string
	end <-chan bool
}

func (s onePage) Changes(ctx context.Context, _ millrace.Cursor) iter.Seq2[millrace.Change, error] {
	return func(yield func(millrace.Change, error) bool) {
		p, err := s.Page(ctx, millrace.Ref{})
		if !yield(millrace.Change{Ref: millrace.Ref{URL: s.url}, Page: p}, err) {
			return
		}
		if s.end != nil {
			<-s.end
		}
		yield(millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: "listed", Complete: true}}, nil)
	}
}

func (s onePage) Page(context.Context, millrace.Ref) (*millrace.Page, error) {
	return &millrace.Page{URL: s.url, Title: "A", Known: millrace.FieldTitle}, nil
}

// toy returns an origin of one page, as a new package below origin would define it.
func toy() origin.Origin {
	return origin.Origin{
		Name: "toy", Title: "a toy",
		Detect: func(_ context.Context, _ *http.Client, source string) (string, error) {
			if source != "https://toy.test/" {
				return "", fmt.Errorf("%s: %w", source, millrace.ErrNotFound)
			}
			return source, nil
		},
		Open: func(source string, _ *origin.Options) (*origin.Source, error) {
			return &origin.Source{Source: onePage{url: source + "a"}}, nil
		},
	}
}

// ChooseFolder returns the first origin that can read the folder, else the last one.
func TestChooseFolder(t *testing.T) {
	t.Parallel()
	toys := toy()
	toys.Folder = true
	for source, want := range map[string]string{"https://toy.test/": "toy", t.TempDir(): "folder"} {
		if way, dir := ingest.ChooseFolder(t.Context(), append([]origin.Origin{toys}, all.Origins(true)...), source); way.Name != want || dir != source {
			t.Errorf("%s: %s, want %s", dir, way.Name, want)
		}
	}
}

// Choose returns the first origin that can read the site, else the last one.
func TestChoose(t *testing.T) {
	origins := []origin.Origin{toy(), *all.ByName("crawl")}
	st := memory.New(nil)
	for name, want := range map[string]string{"https://toy.test/": "toy", "https://other.test/": "crawl"} {
		site, err := st.Site(t.Context(), name, name)
		if err != nil {
			t.Fatal(err)
		}
		way, err := ingest.Choose(t.Context(), origins, nil, site, name, slog.New(slog.DiscardHandler))
		if err != nil || way.Name != want {
			t.Errorf("%s: %s, %v", name, way.Name, err)
		}
		if want != "toy" {
			continue
		}
		src, err := way.Open(name, ingest.ResumeOptions(site, name+" toy"))
		if err != nil {
			t.Fatal(err)
		}
		o := &ingest.Origin{Store: st, Name: name, From: name + " toy", Base: name, Logger: slog.New(slog.DiscardHandler)}
		o.Use(way, src)
		if r, err := o.Sync(t.Context(), site); err != nil || r.Added != 1 || !o.Live() {
			t.Errorf("%+v, %v", r, err)
		}
		// If the site is down, Choose returns the origin that read it before.
		down := toy()
		down.Detect = func(context.Context, *http.Client, string) (string, error) { return "", millrace.ErrUnavailable }
		if way, err := ingest.Choose(t.Context(), []origin.Origin{down, origins[1]}, nil, site, name, slog.New(slog.DiscardHandler)); err != nil || way.Name != "toy" {
			t.Errorf("%s, %v", way.Name, err)
		}
	}
}

func TestDetect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page, store := filepath.Join(dir, "index.html"), filepath.Join(dir, "m.db")
	for _, name := range []string{page, store} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		source, as, kind string
		err              error
	}{
		{"https://example.com/", "", ingest.Live, nil},
		{"https://example.com/", "crawl", "crawl", nil},
		{"https://example.com/", "folder", "", millrace.ErrInvalid},
		{dir, "", "folder", nil},
		{dir, "markdown", "markdown", nil},
		{dir, "wordpress", "", millrace.ErrInvalid},
		{dir, ingest.Mirror, "", millrace.ErrInvalid},
		{store, "", ingest.Mirror, nil},
		{store, ingest.Mirror, ingest.Mirror, nil},
		{store, "folder", "", millrace.ErrInvalid},
		{page, "", "", millrace.ErrInvalid},
		{filepath.Join(dir, "absent"), "", "", fs.ErrNotExist},
	} {
		kind, found, err := ingest.Detect(t.Context(), c.source, c.as)
		if kind != c.kind || !errors.Is(err, c.err) || err == nil && found != c.source {
			t.Errorf("%s as %q: %q, %q, %v", c.source, c.as, kind, found, err)
		}
	}
}
