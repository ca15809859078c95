package export

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store/memory"
)

// Run exports a site of a store: all pages, then the changes since its cursor.
func TestRun(t *testing.T) {
	t.Parallel()
	const name = "https://mill.example/"
	st := memory.New(nil)
	site, err := st.Site(t.Context(), name, name)
	if err != nil {
		t.Fatal(err)
	}
	put := func(path string) {
		t.Helper()
		page := &millrace.Page{URL: name + path, Title: path, Known: millrace.FieldTitle}
		if _, err := site.Apply(t.Context(), "test", []millrace.Change{{Ref: millrace.Ref{URL: page.URL}, Page: page}}); err != nil {
			t.Fatal(err)
		}
	}
	put("wheel")
	var out bytes.Buffer
	q := &Request{Sites: []string{name}, All: []string{name}, Format: "jsonl", Stdout: &out, Logger: slog.New(slog.DiscardHandler)}
	r, err := Run(t.Context(), st, q)
	if err != nil || r.Pages != 1 || len(r.Sites) != 1 || !strings.Contains(out.String(), `"title":"wheel"`) {
		t.Fatalf("%+v, %v: %s", r, err, &out)
	}
	put("gate")
	out.Reset()
	q.Since = r.Sites[0].Cursor
	if r, err = Run(t.Context(), st, q); err != nil || strings.Contains(out.String(), "wheel") || !strings.Contains(out.String(), `"title":"gate"`) {
		t.Errorf("%+v, %v: %s", r, err, &out)
	}
	q.Sites = []string{name, name}
	if _, err := Run(t.Context(), st, q); !errors.Is(err, millrace.ErrInvalid) {
		t.Error(err)
	}
	for format, file := range map[string]string{"csv": "", "markdown": "*/gate.md", "parquet": "pages.parquet"} {
		q = &Request{Sites: []string{name}, All: []string{name}, Format: format, Out: filepath.Join(t.TempDir(), "out"), Logger: q.Logger}
		if r, err := Run(t.Context(), st, q); err != nil || r.Pages != 2 || r.Format != format {
			t.Errorf("%s: %+v, %v", format, r, err)
		}
		if found, err := filepath.Glob(filepath.Join(q.Out, file)); len(found) != 1 {
			t.Errorf("%s: %v, %v", format, found, err)
		}
	}
}
