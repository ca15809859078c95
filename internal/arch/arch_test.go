package arch

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the generated parts of pages")

// check finds problems in a tree and returns one line for each.
type check struct {
	name string
	find func(*tree) []string
}

// rewritable are the checks that -update can satisfy. They have their own tests.
var rewritable = []check{{"Guides", checkGuides}, {"Imports", generated[0].check}, {"Costs", generated[1].check}, {"TierTable", generated[2].check}, {"LogKeys", generated[3].check}}

// checks are all other checks.
var checks = []check{
	{"Broken", func(t *tree) []string { return t.broken }},
	{"Page", checkPage},
	{"Modules", checkModules},
	{"Tiers", checkTiers},
	{"Directions", checkDirections},
	{"SQLite", checkSQLite},
	{"Protocols", checkProtocols},
	{"Symmetry", checkSymmetry},
	{"Comments", checkComments},
	{"Sizes", checkSizes},
	{"Words", checkWords},
	{"Habits", checkHabits},
	{"Skips", checkSkips},
	{"Examples", checkExamples},
	{"Corpora", checkCorpora},
	{"Readme", checkReadme},
	{"Codes", checkCodes},
	{"Wording", checkWording},
	{"Logs", checkLogs},
	{"Copied", checkCopied},
	{"OldWords", checkOldWords},
	{"Sentences", checkSentences},
	{"Links", checkLinks},
	{"Limits", checkLimits},
}

func readModule(t *testing.T) (string, *tree) {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	tr, err := readTree(root)
	if err != nil {
		t.Fatal(err)
	}
	return root, tr
}

func TestTree(t *testing.T) {
	_, tr := readModule(t)
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			for _, p := range c.find(tr) {
				t.Error(p)
			}
		})
	}
	for name, text := range tr.sources() {
		if n := strings.Count(text, "\n"); n > aimedFor {
			t.Logf("%s: %d lines, preferably at most %d", name, n, aimedFor)
		}
	}
}

func TestGuides(t *testing.T) {
	root, tr := readModule(t)
	if *update {
		for name, text := range tr.texts() {
			if want, err := tr.regenerateGuide(text); strings.HasPrefix(name, guides) {
				if err != nil {
					t.Fatal(name, err)
				}
				write(t, root, name, want)
			}
		}
		return
	}
	for _, p := range checkGuides(tr) {
		t.Error(p)
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestChecksCanFail runs every check on a small module without problems. It then overlays the
// files of each archive of testdata/fail; an empty file deletes one. The comment of the
// archive must equal the output of all checks together.
func TestChecksCanFail(t *testing.T) {
	base, err := txtar.ParseFile("testdata/base.txtar")
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("testdata/fail/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]bool{}
	find := func(changed *txtar.Archive) []string {
		files := map[string]string{}
		for _, f := range slices.Concat(base.Files, changed.Files) {
			files[f.Name] = string(f.Data)
			if len(f.Data) == 0 && !isData(f.Name) {
				delete(files, f.Name)
			}
		}
		tr := newTree(files)
		found := []string{}
		for _, c := range slices.Concat(checks, rewritable) {
			for _, p := range c.find(tr) {
				found = append(found, c.name+": "+p)
				failed[c.name] = true
			}
		}
		return found
	}
	if diff := cmp.Diff([]string{}, find(&txtar.Archive{})); diff != "" {
		t.Fatalf("the module without problems has some (-want +got):\n%s", diff)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Split(strings.TrimSpace(string(a.Comment)), "\n")
			if diff := cmp.Diff(want, find(a)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
	for _, c := range slices.Concat(checks, rewritable) {
		if !failed[c.name] {
			t.Errorf("no archive of testdata/fail makes %s fail", c.name)
		}
	}
}
