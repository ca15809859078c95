package arch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// importRows returns the packages of this module that each package imports. Imports of
// tests alone have a prefix.
func importRows(t *tree) map[string][]string {
	rows := map[string][]string{}
	for _, p := range t.sorted() {
		code, tests := map[string]bool{}, map[string]bool{}
		for _, f := range p.files {
			for _, i := range f.imports {
				switch {
				case i.local == "" || i.local == p.path || i.local == kit && (f.test || strings.HasSuffix(p.path, "test")): // every test may import it
				case f.test:
					tests[i.local] = true
				default:
					code[i.local] = true
				}
			}
		}
		rows[p.path] = slices.Sorted(maps.Keys(code))
		for _, name := range slices.Sorted(maps.Keys(tests)) {
			if !code[name] {
				rows[p.path] = append(rows[p.path], "test:"+name)
			}
		}
	}
	return rows
}

// costRows returns the outside modules that each public package depends on.
func costRows(t *tree) map[string][]string {
	rows := map[string][]string{}
	for _, p := range t.sorted() {
		if isPublic(p.path) && p.name != "" {
			inner, outer := map[string]bool{}, map[string]bool{}
			t.pull(p.path, inner, outer)
			rows[p.path] = slices.Sorted(maps.Keys(outer))
		}
	}
	return rows
}

// pull adds a package and the packages and outside modules that it depends on.
func (t *tree) pull(p string, inner, outer map[string]bool) {
	if inner[p] || t.packages[p] == nil {
		return
	}
	inner[p] = true
	for _, f := range t.packages[p].files {
		if f.test {
			continue
		}
		for _, i := range f.imports {
			switch {
			case i.local != "":
				t.pull(i.local, inner, outer)
			case i.outside():
				outer[moduleOf(i.path, t.required)] = true
			}
		}
	}
}

// modulesFile lists the modules that this module requires. The owner "tests" means all tests.
const modulesFile = tables + "modules.txt"

// owners returns the packages that may import each outside module.
func owners(t *tree) (map[string][]string, []string) {
	var problems []string
	out := readRows(t.text[modulesFile])
	for _, m := range slices.Sorted(maps.Keys(out)) {
		words := out[m]
		n := slices.Index(append(words, "#"), "#")
		if n >= len(words)-1 {
			problems = append(problems, fmt.Sprintf("%s: %s has no reason", modulesFile, m))
		}
		out[m] = words[:n]
	}
	return out, problems
}

// checkModules compares outside imports with modulesFile and go.mod.
func checkModules(t *tree) []string {
	table, problems := owners(t)
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
					problems = append(problems, t.at(i.pos, "%s belongs to no module of %s", i.path, modulesFile))
					continue
				}
				used[m][p.path] = true
				if !slices.Contains(table[m], p.path) && (!f.test || !slices.Contains(table[m], "tests")) {
					problems = append(problems, t.at(i.pos, "%s does not own %s", p.path, m))
				}
			}
		}
	}
	for _, m := range modules {
		for _, p := range table[m] {
			if p != "tests" && !used[m][p] {
				problems = append(problems, fmt.Sprintf("%s: %s does not import %s", modulesFile, p, m))
			}
		}
		if len(used[m]) == 0 {
			problems = append(problems, fmt.Sprintf("%s: nothing imports %s", modulesFile, m))
		}
		if !slices.Contains(t.direct, m) {
			problems = append(problems, fmt.Sprintf("go.mod: %s is in %s but not required directly", m, modulesFile))
		}
	}
	for _, m := range t.direct {
		if _, ok := table[m]; !ok {
			problems = append(problems, fmt.Sprintf("%s: no line for %s, which go.mod requires", modulesFile, m))
		}
	}
	return problems
}

// checkDirections enforces the import directions that no table can allow.
func checkDirections(t *tree) []string {
	var problems []string
	for _, p := range t.sorted() {
		for _, f := range p.files {
			for _, i := range f.imports {
				switch {
				case isProtocol(p.path) && isProtocol(i.local) && i.local != p.path:
					problems = append(problems, t.at(i.pos, "protocol %s imports protocol %s", p.path, i.local))
				case strings.HasPrefix(i.local, "cmd/") && p.path != i.local:
					problems = append(problems, t.at(i.pos, "%s imports %s", p.path, i.local))
				case i.local == "store/sqlite" && p.path != i.local && p.path != "store/all",
					i.local == "store/memory" && !f.test && p.path != "store/all" && !strings.HasSuffix(p.path, "test"):
					problems = append(problems, t.at(i.pos, "%s imports an engine; open stores with store/all", p.path))
				case p.path == "internal/edition" && !f.test && (i.path == "os" || i.path == "path/filepath"):
					problems = append(problems, t.at(i.pos, "%s imports %s: files belong in an artifact.Store", p.path, i.path))
				case (p.path == "." || p.path == "check") && !f.test && (i.local != "" || i.outside()):
					problems = append(problems, t.at(i.pos, "%s imports more than the standard library", p.path))
				}
			}
		}
	}
	return problems
}

// linkSQLite are the packages whose tests link SQLite, which is slow: the engine, the
// index and the packages that use it.
var linkSQLite = []string{
	"cmd/millrace", "docs/site", "internal/index", "internal/library", "internal/serving", "internal/simulation", "internal/sqlitefile", "internal/verify", "publish", "store/all", "store/sqlite",
}

// checkSQLite finds other packages whose tests link SQLite.
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
			problems = append(problems, p.path+": its tests link SQLite; use store/memory")
		}
	}
	return problems
}
