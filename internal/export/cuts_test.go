package export

import (
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/replace"
	"github.com/millrace/millrace/internal/testkit"
	"github.com/millrace/millrace/internal/testkit/powercut"
)

// After a power cut, the next export repairs the files.
func TestRealPowerCuts(t *testing.T) {
	export := func(t *testing.T, dir string, titles map[string]string) {
		t.Helper()
		sites := mdSite(titles)
		_, err := Markdown(t.Context(), tree(dir, sites), sites, nil)
		if err != nil {
			t.Error(err)
		}
	}
	first := map[string]string{"/": "home", "/a/": "a", "/a/b": "b", "/c/d/e": "e", "/f": "f", "/g": "g"}
	second := map[string]string{
		"/": "home", "/a/b": "B", "/h": strings.Repeat("long ", 2000), "/f/g": "below", "/c": "c", "/i": "i", "/j": "j", "/k": "k", "/l": "l",
	}
	// Names of temporary files of a program that was killed.
	left := regexp.MustCompile(`^\..*\.new-|^\.millrace/export.(journal|lock|new)`)
	for name, w := range map[string]powercut.Writer{
		"markdown":       {Write: func(t *testing.T, dir string) { export(t, dir, second) }},
		"markdown again": {Before: func(t *testing.T, dir string) { export(t, dir, first) }, Write: func(t *testing.T, dir string) { export(t, dir, second) }},
		"parquet": {Write: func(t *testing.T, dir string) {
			if _, err := Parquet(t.Context(), dir, mill(), nil); err != nil {
				t.Error(err)
			}
		}},
		"lines": {
			Before: func(t *testing.T, dir string) {
				if err := replace.New(filepath.Join(dir, "pages.jsonl"), []byte("before"), 0o600); err != nil {
					t.Error(err)
				}
			},
			Write: func(t *testing.T, dir string) {
				if err := replace.File(filepath.Join(dir, "pages.jsonl"), func(out io.Writer) error {
					_, err := Lines(t.Context(), out, mdSite(second), nil)
					return err
				}); err != nil {
					t.Error(err)
				}
			},
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			w.Ignore = left
			powercut.Run(t, testkit.Size(40, 40, 100), w)
		})
	}
}
