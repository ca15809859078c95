package arch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkImports compares what packages import of this module with the table.
func checkImports(t *tree) []string {
	table, problems := permissions(t.text[page])
	for _, p := range t.sorted() {
		row, ok := table[p.path]
		if !ok {
			problems = append(problems, fmt.Sprintf("%s: package %s has no row", page, p.path))
			continue
		}
		code, tests := map[string]bool{}, map[string]bool{}
		for _, f := range p.files {
			for _, i := range f.imports {
				switch {
				case i.local == "" || i.local == p.path || i.local == kit && (f.test || strings.HasSuffix(p.path, "test")): // every test may
				case f.test:
					tests[i.local] = true
					if !slices.Contains(row.imports, i.local) && !slices.Contains(row.testOnly, i.local) {
						problems = append(problems, t.at(i.pos, "the tests of %s may not import %s", p.path, i.local))
					}
				default:
					code[i.local] = true
					if !slices.Contains(row.imports, i.local) {
						problems = append(problems, t.at(i.pos, "%s may not import %s", p.path, i.local))
					}
				}
			}
		}
		for _, name := range row.imports {
			if !code[name] {
				problems = append(problems, fmt.Sprintf("%s: %s does not import %s", page, p.path, name))
			}
		}
		for _, name := range row.testOnly {
			if !tests[name] || code[name] {
				problems = append(problems, fmt.Sprintf("%s: %s is not what only the tests of %s import", page, name, p.path))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if t.packages[name] == nil {
			problems = append(problems, fmt.Sprintf("%s: there is no package %s", page, name))
		}
	}
	return problems
}

// checkModules compares what comes from outside with its table and go.mod.
func checkModules(t *tree) []string {
	table, problems := owners(t.text[page])
	modules := slices.Sorted(maps.Keys(table))
	used := map[string]map[string]bool{} // module -> packages
	for _, m := range modules {
		used[m] = map[string]bool{}
	}
	for _, p := range t.sorted() {
		for _, f := range p.files {
			for _, i := range f.imports {
				if !i.outside() {
					continue
				}
				m := moduleOf(i.path, modules)
				if m == "" {
					problems = append(problems, t.at(i.pos, "%s is of no module in %s", i.path, page))
					continue
				}
				used[m][p.path] = true
				if !slices.Contains(table[m].packages, p.path) && (!f.test || !table[m].tests) {
					problems = append(problems, t.at(i.pos, "%s does not own %s", p.path, m))
				}
			}
		}
	}
	for _, m := range modules {
		for _, p := range table[m].packages {
			if !used[m][p] {
				problems = append(problems, fmt.Sprintf("%s: %s does not import %s", page, p, m))
			}
		}
		if len(used[m]) == 0 && len(table[m].packages) == 0 {
			problems = append(problems, fmt.Sprintf("%s: nothing imports %s", page, m))
		}
		if !slices.Contains(t.direct, m) {
			problems = append(problems, fmt.Sprintf("go.mod: %s is no direct requirement, but has a row in %s", m, page))
		}
	}
	for _, m := range t.direct {
		if _, ok := table[m]; !ok {
			problems = append(problems, fmt.Sprintf("%s: no row for %s, which go.mod requires", page, m))
		}
	}
	return problems
}

// checkDirections keeps the arrows that no table may bend.
func checkDirections(t *tree) []string {
	var problems []string
	for _, p := range t.sorted() {
		for _, f := range p.files {
			for _, i := range f.imports {
				switch {
				case isRoom(p.path) && isRoom(i.local) && i.local != p.path:
					problems = append(problems, t.at(i.pos, "room %s imports room %s", p.path, i.local))
				case strings.HasPrefix(i.local, "cmd/") && p.path != i.local:
					problems = append(problems, t.at(i.pos, "%s imports %s", p.path, i.local))
				case i.local == "store/sqlite" && p.path != i.local && p.path != "store/all",
					i.local == "store/memory" && !f.test && p.path != "store/all" && !strings.HasSuffix(p.path, "test"):
					problems = append(problems, t.at(i.pos, "%s imports an engine: open a store by store/all", p.path))
				case p.path == "internal/edition" && !f.test && (i.path == "os" || i.path == "path/filepath"):
					problems = append(problems, t.at(i.pos, "%s imports %s: what it keeps is in an artifact.Store", p.path, i.path))
				case (p.path == "." || p.path == "check") && !f.test && (i.local != "" || i.outside()):
					problems = append(problems, t.at(i.pos, "%s imports more than the standard library", p.path))
				}
			}
		}
	}
	return problems
}

// linkSQLite are the packages whose tests link SQLite, which takes long: the
// engine, the index and what publishes with it.
var linkSQLite = []string{
	"cmd/millrace", "internal/index", "internal/library", "internal/serving", "internal/simulation", "internal/sqlitefile", "publish", "store/all", "store/sqlite",
}

// checkSQLite finds other packages whose tests link it.
func checkSQLite(t *tree) []string {
	var problems []string
	for _, p := range t.sorted() {
		inner, outer := map[string]bool{}, map[string]bool{}
		t.pull(p.path, inner, outer)
		for _, f := range p.files {
			for _, i := range f.imports {
				t.pull(i.local, inner, outer)
				outer[i.path] = true
			}
		}
		if outer["modernc.org/sqlite"] && !slices.Contains(linkSQLite, p.path) {
			problems = append(problems, p.path+": its tests link SQLite: use store/memory")
		}
	}
	return problems
}
