package arch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// tables is the folder of the tables of the module.
const tables = "internal/arch/testdata/"

// table is a generated file. Each line has a key, a colon and words.
type table struct {
	name  string // of its file
	about string
	rows  func(*tree) map[string][]string
}

// generated are the tables. Only -update rewrites the files, and a person reviews the
// difference.
var generated = []table{
	{"imports", "What each package imports of this module; test: marks what only its tests import.", importRows},
	{"costs", "The outside modules that each public package depends on.", costRows},
	{"tiers", "Tests over real programs (real), at full length only (soak), and longer at full length (longer).", tierRows},
	{"logkeys", "The keys of log attributes. One key means one thing everywhere.", logKeyRows},
}

func (b table) file() string { return tables + b.name + ".txt" }

func (b table) text(t *tree) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n# To accept a change: go test ./internal/arch -run Tables -update\n", b.about)
	rows := b.rows(t)
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		out.WriteString(strings.Join(append([]string{key + ":"}, rows[key]...), " ") + "\n")
	}
	return out.String()
}

// check finds outdated lines.
func (b table) check(t *tree) []string {
	var problems []string
	got, want := readRows(t.text[b.file()]), b.rows(t)
	all := maps.Clone(got)
	maps.Copy(all, want)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		_, listed := got[key]
		_, exists := want[key]
		switch {
		case !listed:
			problems = append(problems, fmt.Sprintf("%s: no line for %s", b.file(), key))
		case !exists:
			problems = append(problems, fmt.Sprintf("%s: %s should have no line", b.file(), key))
		default:
			for _, word := range want[key] {
				if !slices.Contains(got[key], word) {
					problems = append(problems, fmt.Sprintf("%s: %s does not list %s", b.file(), key, word))
				}
			}
			for _, word := range got[key] {
				if !slices.Contains(want[key], word) {
					problems = append(problems, fmt.Sprintf("%s: %s lists %s wrongly", b.file(), key, word))
				}
			}
		}
	}
	return problems
}

// readRows returns the words of each line by its key.
func readRows(text string) map[string][]string {
	rows := map[string][]string{}
	for line := range strings.Lines(text) {
		if key, words, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") {
			rows[key] = strings.Fields(words)
		}
	}
	return rows
}

func TestTables(t *testing.T) {
	root, tr := readModule(t)
	for _, b := range generated {
		t.Run(b.name, func(t *testing.T) {
			if *update {
				write(t, root, b.file(), b.text(tr))
				return
			}
			for _, p := range b.check(tr) {
				t.Errorf("%s; if you want this change: go test ./internal/arch -run Tables -update", p)
			}
		})
	}
}
