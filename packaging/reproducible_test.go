package packaging

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/testkit"
)

// testReproducible builds the source again in another folder. The binary, both packages and the
// image are equal. At full length, everything is compiled again.
func testReproducible(t *testing.T, first string) {
	second := t.TempDir()
	if err := os.CopyFS(second, source{os.DirFS("..")}); err != nil {
		t.Fatal(err)
	}
	if testkit.Soaking() {
		t.Setenv("GOCACHE", t.TempDir())
	}
	dist := release(t, second, "1.0.0")
	image(t, second, dist)
	var builds []map[string][]byte
	for _, dist := range []string{first, dist} {
		files := map[string][]byte{}
		err := fs.WalkDir(os.DirFS(dist), ".", func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && name != "nfpm.yaml" { // it names the folder
				files[name], err = os.ReadFile(filepath.Join(dist, name))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		builds = append(builds, files)
	}
	if len(builds[0]) < 9 || len(builds[0]) != len(builds[1]) {
		t.Errorf("%d and %d files", len(builds[0]), len(builds[1]))
	}
	for name, data := range builds[0] {
		if !bytes.Equal(data, builds[1][name]) {
			t.Errorf("%s: %d and %d bytes differ", name, len(data), len(builds[1][name]))
		}
	}
}

// source leaves out what is not part of the source.
type source struct{ fs.FS }

func (s source) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(s.FS, name)
	kept := list[:0]
	for _, d := range list {
		if !strings.HasPrefix(d.Name(), ".git") && d.Name() != "dist" && d.Type()&fs.ModeSymlink == 0 {
			kept = append(kept, d)
		}
	}
	return kept, err
}
