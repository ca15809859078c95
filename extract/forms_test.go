package extract

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/millrace/millrace"
)

// TestForms reads the archives in testdata/forms. Each holds the HTML that common generators
// write for one construct, NAME.html, and the expected blocks, NAME.json, one per line.
func TestForms(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "forms", "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatal("no archives: ", err)
	}
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Files)%2 != 0 {
			t.Fatalf("%s: %d files", name, len(a.Files))
		}
		for i := 0; i < len(a.Files); i += 2 {
			page, ok := strings.CutSuffix(a.Files[i].Name, ".html")
			if want := a.Files[i+1].Name; !ok || want != page+".json" {
				t.Fatalf("%s: %q, then %q", name, a.Files[i].Name, want)
			}
			t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar")+"/"+page, func(t *testing.T) {
				got := fragmentOf(t, string(a.Files[i].Data))
				var want []block
				for line := range strings.SplitSeq(strings.TrimSpace(string(a.Files[i+1].Data)), "\n") {
					var b block
					if line == "" {
						continue
					}
					if err := json.Unmarshal([]byte(line), &b); err != nil {
						t.Fatalf("%s: %v", line, err)
					}
					want = append(want, b)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("(-want +got)\n%s\n%s", d, lines(t, got))
				}
			})
		}
	}
}

// lines returns blocks in the format of the archives.
func lines(t *testing.T, blocks []millrace.Block) string {
	var w strings.Builder
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	for i := range blocks {
		if err := e.Encode(&blocks[i]); err != nil {
			t.Fatal(err)
		}
	}
	return w.String()
}
