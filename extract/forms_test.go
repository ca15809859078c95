package extract

import (
	"encoding/json"
	"hash/crc32"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/millrace/millrace"
)

// TestForms reads the archives in testdata/forms. Each archive contains the HTML that common
// generators write for one construct, NAME.html, and the expected blocks, NAME.json, one per line.
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

// TestFormsRenamed reads the same archives with invented class names, except those of languages,
// and counts the code blocks that are still exact.
func TestFormsRenamed(t *testing.T) {
	class := regexp.MustCompile(`class="([^"]*)"`)
	all, exact := 0, 0
	for _, name := range []string{"code", "highlighters"} {
		a, err := txtar.ParseFile(filepath.Join("testdata", "forms", name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(a.Files); i += 2 {
			doc := class.ReplaceAllStringFunc(string(a.Files[i].Data), func(s string) string {
				names := strings.Fields(s[len(`class="`) : len(s)-1])
				for i, n := range names {
					if !languages[n] && !strings.Contains(n, "language-") && !strings.Contains(n, "brush") {
						names[i] = "z" + strings.Map(func(r rune) rune { return 'a' + r%16 }, strconv.Itoa(int(crc32.ChecksumIEEE([]byte(n)))))
					}
				}
				return `class="` + strings.Join(names, " ") + `"`
			})
			got := map[string]bool{}
			for _, b := range flattenBlocks(fragmentOf(t, doc)) {
				if b.Type == millrace.CodeBlock {
					got[strings.TrimSuffix(b.Text, "\n")] = true
				}
			}
			for line := range strings.Lines(string(a.Files[i+1].Data)) {
				var want block
				if err := json.Unmarshal([]byte(line), &want); err == nil && want.Type == millrace.CodeBlock {
					all++
					if got[strings.TrimSuffix(want.Text, "\n")] {
						exact++
					} else {
						t.Logf("%s/%s: %q is not among the blocks", name, a.Files[i].Name, want.Text)
					}
				}
			}
		}
	}
	if t.Logf("%d of %d code blocks", exact, all); exact < 112 {
		t.Errorf("%d code blocks, the floor is 112", exact)
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
