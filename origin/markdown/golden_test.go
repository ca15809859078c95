package markdown

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

var update = flag.Bool("update", false, "write what the golden files want")

// TestSites compares all fields of all pages of the sites in testdata with golden files.
func TestSites(t *testing.T) {
	for name, kind := range map[string]Kind{
		"md-hugo": Hugo, "md-jekyll": Jekyll, "md-mkdocs": MkDocs, "md-docusaurus": Docusaurus, "md-plain": Plain,
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, filepath.Join(sites, name), nil)
			if f.Kind() != kind || !Is(filepath.Join(sites, name)) {
				t.Errorf("kind %s, want %s", f.Kind(), kind)
			}
			w := walkAll(t, f)
			var got bytes.Buffer
			for _, n := range w.names {
				p, err := f.Page(t.Context(), millrace.Ref{URL: n})
				if err != nil {
					fmt.Fprintf(&got, "%s\n\t%v\n\n", n, err)
					continue
				}
				if p.Version == "" || p.Version != w.versions[n] {
					t.Errorf("%s: version %q, in the walk %q", n, p.Version, w.versions[n])
				}
				if !p.Known.Has(millrace.FieldModified) {
					p.Modified = time.Time{}
				}
				e := json.NewEncoder(&got)
				e.SetEscapeHTML(false)
				e.SetIndent("", "\t")
				fmt.Fprintln(&got, n)
				must(t, e.Encode(p))
				fmt.Fprintln(&got)
			}
			skipped := make([]string, 0, len(w.skipped))
			for n, err := range w.skipped {
				skipped = append(skipped, fmt.Sprintf("skipped %s (absent %v): %v\n", n, w.absent[n], err))
			}
			slices.Sort(skipped)
			for _, s := range skipped {
				got.WriteString(s)
			}
			file := filepath.Join("testdata", "golden", name+".txt")
			if *update {
				must(t, os.MkdirAll(filepath.Dir(file), 0o755))
				must(t, os.WriteFile(file, got.Bytes(), 0o644))
			}
			want, err := os.ReadFile(file)
			must(t, err)
			if d := cmp.Diff(string(want), got.String()); d != "" {
				t.Error("(-want +got):\n" + d)
			}
		})
	}
}
