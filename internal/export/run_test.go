package export

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
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
	q.Since = &Since{Text: r.Sites[0].Cursor}
	if r, err = Run(t.Context(), st, q); err != nil || strings.Contains(out.String(), "wheel") || !strings.Contains(out.String(), `"title":"gate"`) {
		t.Errorf("%+v, %v: %s", r, err, &out)
	}
	for format, file := range map[string]string{"csv": "", "markdown": "*/gate.md", "atom": "*/feed.atom", "parquet": "pages.parquet"} {
		q = &Request{Sites: []string{name}, All: []string{name}, Format: format, Out: filepath.Join(t.TempDir(), "out"), Logger: q.Logger}
		if r, err := Run(t.Context(), st, q); err != nil || r.Pages != 2 || r.Format != format {
			t.Errorf("%s: %+v, %v", format, r, err)
		}
		if found, err := filepath.Glob(filepath.Join(q.Out, file)); len(found) != 1 {
			t.Errorf("%s: %v, %v", format, found, err)
		}
	}
}

// An export of many sites has the changes since the report of an earlier export. A new site has
// all of its pages.
func TestSinceReport(t *testing.T) {
	t.Parallel()
	st := memory.New(nil)
	put := func(name, path string) {
		t.Helper()
		site, err := st.Site(t.Context(), name, name)
		if err != nil {
			t.Fatal(err)
		}
		page := &millrace.Page{URL: name + path, Title: path, Known: millrace.FieldTitle}
		if _, err := site.Apply(t.Context(), "test", []millrace.Change{{Ref: millrace.Ref{URL: page.URL}, Page: page}}); err != nil {
			t.Fatal(err)
		}
	}
	const a, b, c = "https://a.example/", "https://b.example/", "https://c.example/"
	for _, name := range []string{a, b} {
		put(name, "wheel")
		put(name, "race")
	}
	var out bytes.Buffer
	q := &Request{Sites: []string{a, b}, All: []string{a, b}, Format: "jsonl", Stdout: &out, Logger: slog.New(slog.DiscardHandler)}
	r, err := Run(t.Context(), st, q)
	if err != nil || r.Pages != 4 {
		t.Fatalf("%+v, %v", r, err)
	}
	file := filepath.Join(t.TempDir(), "last.json")
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	put(b, "gate")
	put(c, "weir")
	put(c, "dam")
	out.Reset()
	if q.Since, err = ReadSince(file); err != nil {
		t.Fatal(err)
	}
	q.Sites, q.All = []string{a, b, c}, []string{a, b, c}
	r, err = Run(t.Context(), st, q)
	if got := strings.Count(out.String(), "\n"); err != nil || r.Pages != 3 || got != 3 || strings.Contains(out.String(), "wheel") || len(r.Sites) != 3 {
		t.Errorf("%+v, %v: %s", r, err, &out)
	}
	for _, text := range []string{"", "{}", "[1]"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := ReadSince(file); err == nil {
			t.Errorf("%q: %+v", text, s)
		}
	}
}
