package markdown

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

const sites = "../../testdata/sites"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write creates the files of a site. A name that ends in "/" is a directory.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(p, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		must(t, os.WriteFile(p, []byte(text), 0o644))
	}
}

// open opens a folder. Its clock is an hour ahead.
func open(t testing.TB, dir string, o *Options) *Folder {
	t.Helper()
	f, err := New(dir, o)
	must(t, err)
	f.now = func() time.Time { return time.Now().Add(time.Hour) }
	t.Cleanup(func() { f.Close() })
	return f
}

// made creates files and opens their folder.
func made(t testing.TB, files map[string]string) (*Folder, string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, files)
	return open(t, dir, nil), dir
}

// walked is the result of one walk.
type walked struct {
	names    []string
	versions map[string]string
	skipped  map[string]error
	absent   map[string]bool
	mark     millrace.Checkpoint
}

func walkAll(t testing.TB, f millrace.Source) walked {
	t.Helper()
	w := walked{versions: map[string]string{}, skipped: map[string]error{}, absent: map[string]bool{}}
	marks := 0
	for c, err := range f.Changes(context.Background(), "") {
		var skip *millrace.SkipError
		switch {
		case errors.As(err, &skip):
			w.skipped[skip.URL], w.absent[skip.URL] = skip.Err, skip.Absent
		case err != nil:
			t.Fatal(err)
		case c.Kind == millrace.KindCheckpoint:
			w.mark, marks = *c.Checkpoint, marks+1
		default:
			w.names = append(w.names, c.URL)
			w.versions[c.URL] = c.Version
		}
	}
	if marks != 1 {
		t.Errorf("%d marks, want 1", marks)
	}
	if !slices.IsSorted(w.names) {
		t.Errorf("not in the order of the names: %q", w.names)
	}
	return w
}

func page(t testing.TB, f millrace.Source, name string) *millrace.Page {
	t.Helper()
	p, err := f.Page(context.Background(), millrace.Ref{URL: name})
	must(t, err)
	return p
}

// urls returns the URLs of a folder's pages, by name.
func urls(t testing.TB, f *Folder) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range walkAll(t, f).names {
		out[name] = page(t, f, name).URL
	}
	return out
}

// convert returns the blocks of a text in a plain folder.
func convert(t testing.TB, text string) []millrace.Block {
	t.Helper()
	f, _ := made(t, map[string]string{"a.md": "---\ntitle: T\n---\n" + text, "b.md": "# B", "dir/c.md": "---\nslug: other\n---\n"})
	return page(t, f, "/a.md").Blocks
}
