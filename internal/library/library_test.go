package library

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/store"
	stores "github.com/millrace/millrace/store/all"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func open(t *testing.T, file string, readOnly bool) store.Store {
	t.Helper()
	st, err := stores.Open(t.Context(), file, &store.Options{ReadOnly: readOnly})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

const mill = "https://mill.example/"

// fill adds a page to a site.
func fill(t *testing.T, s store.Store, path string) {
	t.Helper()
	site, err := s.Site(t.Context(), mill, mill)
	if err == nil {
		_, err = site.Apply(t.Context(), "test", []millrace.Change{{Ref: millrace.Ref{URL: path}, Page: &millrace.Page{
			URL: path, Title: "Gate", Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: "A gate."}},
			Known: millrace.FieldTitle | millrace.FieldContent,
		}}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A library works with a writable and a read-only store.
func TestLibrary(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.db")
	s := open(t, file, false)
	fill(t, s, "/a")
	for i, lib := range []*Library{New(s, file, nil), New(open(t, file, true), file, nil)} {
		defer lib.Close()
		pages := func() int {
			site, err := lib.Site(t.Context(), mill)
			if err != nil {
				t.Fatal(err)
			}
			return site.View.Site().Pages
		}
		before := pages()
		fill(t, s, fmt.Sprint("/b", i))
		if after := pages(); after != before+1 {
			t.Errorf("library %d: %d pages, then %d", i, before, after)
		}
		if err := lib.Index(t.Context(), mill, nil); err != nil {
			t.Errorf("library %d: index: %v", i, err)
		}
	}
}

// If no index can be written next to a read-only store, the index is in a temporary folder.
func TestSearchReadOnly(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.db")
	fill(t, open(t, file, false), "/a")
	if err := os.WriteFile(file+".index", []byte("a file is at the path of the folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	lib := New(open(t, file, true), file, nil)
	defer lib.Close()
	r, err := lib.Search(t.Context(), []string{mill}, millrace.Query{Text: "gate", Limit: 10})
	if err != nil || len(r.Hits) != 1 {
		t.Errorf("%+v: %v", r, err)
	}
}
