package markdown

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/origin/folder"
)

// TestRealGenerators builds sites with the real generators. It compares the URLs and texts of
// their pages with those that the package reads without a build.
func TestRealGenerators(t *testing.T) {
	for _, g := range []struct {
		site    string
		command []string
		more    []string // generated pages without a file
		less    []string // pages without content, which are not pages in HTML
	}{
		{"md-hugo", []string{"hugo", "--quiet", "-d", "OUT"}, []string{"/docs/", "/de/", "/en/"}, []string{"/posts/"}},
		{"md-jekyll", []string{"jekyll", "build", "-q", "-d", "OUT"}, nil, nil},
		// MkDocs before 1.5 excludes no files.
		{"md-mkdocs", []string{"mkdocs", "build", "-q", "-d", "OUT"}, []string{"/attic/a/", "/guide/x.old/"}, nil},
	} {
		t.Run(g.site, func(t *testing.T) {
			testkit.Real(t, g.command[0])
			src, out := t.TempDir(), t.TempDir()
			must(t, os.CopyFS(src, os.DirFS(filepath.Join(sites, g.site))))
			if g.site == "md-hugo" { // Hugo before 0.110 uses this name
				must(t, os.Rename(filepath.Join(src, "hugo.toml"), filepath.Join(src, "config.toml")))
			}
			for i, a := range g.command {
				if a == "OUT" {
					g.command[i] = out
				}
			}
			cmd := exec.CommandContext(t.Context(), g.command[0], g.command[1:]...)
			cmd.Dir, cmd.Env = src, append(os.Environ(), "LANG=C.UTF-8")
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			f := open(t, src, nil)
			built, err := folder.New(out, &folder.Options{Base: f.Base()})
			must(t, err)
			want, got := pagesOf(t, built), pagesOf(t, f)
			for _, u := range g.more {
				delete(want, u)
			}
			for _, u := range g.less {
				if got[u] == nil || len(got[u].Blocks) > 0 {
					t.Errorf("%s is not a page without content", u)
				}
				delete(got, u)
				delete(want, u)
			}
			if d := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); d != "" {
				t.Error("URLs (-built +read):\n" + d)
			}
			for u, w := range want {
				g := got[u]
				if g == nil {
					continue
				}
				if f1 := similar(w.Text(), g.Text()); f1 < 0.97 {
					t.Errorf("%s: the texts are alike by %.3f\n--- built\n%s\n--- read\n%s", u, f1, w.Text(), g.Text())
				}
				if w.Title != g.Title || w.Description != g.Description && f.Kind() != MkDocs || w.Language != g.Language && g.Language != "en-GB" {
					t.Errorf("%s: built %q %q %q, read %q %q %q", u, w.Title, w.Description, w.Language, g.Title, g.Description, g.Language)
				}
				if d := cmp.Diff(types(w.Blocks), types(g.Blocks)); d != "" {
					t.Logf("%s: types (-built +read):\n%s", u, d)
				}
				if d := cmp.Diff(links(w.Blocks), links(g.Blocks)); d != "" {
					t.Errorf("%s: links (-built +read):\n%s", u, d)
				}
			}
		})
	}
}

// pagesOf returns the pages of a source that have content of their own.
func pagesOf(t *testing.T, src millrace.Source) map[string]*millrace.Page {
	t.Helper()
	out := map[string]*millrace.Page{}
	for c, err := range src.Changes(context.Background(), "") {
		if err != nil || c.Kind != millrace.Put {
			continue
		}
		if p, err := src.Page(context.Background(), millrace.Ref{URL: c.URL}); err == nil && p.Known != 0 {
			out[p.URL] = p
		}
	}
	return out
}

func types(blocks []millrace.Block) []millrace.BlockType {
	var out []millrace.BlockType
	for _, b := range blocks {
		out = append(out, b.Type)
	}
	return out
}

// links returns the targets of all links.
func links(blocks []millrace.Block) []string {
	var out []string
	spans := func(list []millrace.Span) {
		for _, s := range list {
			if s.Type == millrace.LinkSpan {
				out = append(out, s.URL)
			}
		}
	}
	for _, b := range blocks {
		if b.Type == millrace.LinkBlock {
			out = append(out, b.URL)
		}
		spans(b.Spans)
		out = append(out, links(b.Blocks)...)
		for _, it := range b.Items {
			spans(it.Spans)
			out = append(out, links(it.Blocks)...)
		}
		for _, row := range b.Rows {
			for _, c := range row {
				spans(c.Spans)
			}
		}
	}
	return out
}

// similar returns the F1 score of the words of two texts.
func similar(a, b string) float64 {
	words := func(s string) map[string]int {
		out := map[string]int{}
		s = strings.NewReplacer("’", "'", "‘", "'", "“", `"`, "”", `"`, "…", "...", "–", "--").Replace(s)
		for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			out[w]++
		}
		return out
	}
	wa, wb := words(a), words(b)
	common, na, nb := 0, 0, 0
	for w, n := range wa {
		common += min(n, wb[w])
		na += n
	}
	for _, n := range wb {
		nb += n
	}
	if na+nb == 0 {
		return 1
	}
	return 2 * float64(common) / float64(na+nb)
}
