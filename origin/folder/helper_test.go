package folder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

// write creates the files of a site. A name that ends in "/" is a directory.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if name[len(name)-1] == '/' {
			must(t, os.MkdirAll(p, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		must(t, os.WriteFile(p, []byte(text), 0o644))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// html returns a page with a title and, if canonical is not "", a canonical link.
func html(title, canonical string) string {
	if canonical != "" {
		canonical = `<link rel="canonical" href="` + canonical + `">`
	}
	return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>` + title + `</title>` + canonical + `</head>
<body><main><h1>` + title + `</h1><p>The wheel at ` + title + ` turns six times a minute when the river is well.</p></main></body></html>`
}

// opened is a folder that records which files it reads. Its clock is an hour ahead.
type opened struct {
	*Folder
	mu    sync.Mutex
	files []string
}

func open(t testing.TB, dir string, o *Options) *opened {
	t.Helper()
	f, err := New(dir, o)
	must(t, err)
	w := &opened{Folder: f}
	f.now = func() time.Time { return time.Now().Add(time.Hour) }
	f.open = func(file string) {
		w.mu.Lock()
		w.files = append(w.files, file)
		w.mu.Unlock()
	}
	_, err = f.refresh(context.Background()) // New read the files too early to give them a version
	must(t, err)
	w.files = nil
	t.Cleanup(func() { f.Close() })
	return w
}

func site(t testing.TB, files map[string]string) (*opened, string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, files)
	return open(t, dir, nil), dir
}

// walked is the result of one walk.
type walked struct {
	urls     []string
	versions map[string]string
	skipped  map[string]error
	mark     millrace.Checkpoint
}

func walk(t testing.TB, f millrace.Source) walked {
	t.Helper()
	w := walked{versions: map[string]string{}, skipped: map[string]error{}}
	marks := 0
	for c, err := range f.Changes(context.Background(), "") {
		var skip *millrace.SkipError
		switch {
		case errors.As(err, &skip):
			w.skipped[skip.URL] = skip.Err
		case err != nil:
			t.Fatal(err)
		case c.Kind == millrace.KindCheckpoint:
			w.mark, marks = *c.Checkpoint, marks+1
		default:
			if marks > 0 {
				t.Error("a page after the mark: " + c.URL)
			}
			w.urls = append(w.urls, c.URL)
			w.versions[c.URL] = c.Version
		}
	}
	if marks != 1 {
		t.Errorf("%d marks, want 1", marks)
	}
	if !slices.IsSorted(w.urls) {
		t.Errorf("not in the order of the URLs: %q", w.urls)
	}
	return w
}

func page(t testing.TB, f millrace.Source, url string) *millrace.Page {
	t.Helper()
	p, err := f.Page(context.Background(), millrace.Ref{URL: url})
	must(t, err)
	return p
}
