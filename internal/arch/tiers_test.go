package arch

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// kit is the package whose functions assign a test to a tier.
const kit = "internal/testkit"

// calls maps each function of the module, as folder and name, to the functions that it calls.
// Methods are identified only by their names.
func (t *tree) calls() map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, p := range t.sorted() {
		for _, f := range p.files {
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Body == nil || p.path == kit {
					continue
				}
				key := p.path + "." + fn.Name.Name
				if out[key] == nil {
					out[key] = map[string]bool{}
				}
				ast.Inspect(fn.Body, func(n ast.Node) bool {
					switch n := n.(type) {
					case *ast.SelectorExpr:
						if from, _ := f.selected(n); from != "" {
							i := slices.IndexFunc(f.imports, func(i imported) bool { return i.path == from })
							out[key][f.imports[i].local+"."+n.Sel.Name] = true
							return false // only the other package declares the name
						}
					case *ast.Ident:
						out[key][p.path+"."+n.Name] = true
					}
					return true
				})
			}
		}
	}
	return out
}

// reaching returns the functions that call one of the given functions, directly or
// through other functions of test files and suites.
func reaching(calls map[string]map[string]bool, names ...string) map[string]bool {
	found := map[string]bool{}
	for _, n := range names {
		found[kit+"."+n] = true
	}
	for grown := true; grown; {
		grown = false
		for caller, callees := range calls {
			if found[caller] {
				continue
			}
			for c := range callees {
				if found[c] {
					found[caller], grown = true, true
					break
				}
			}
		}
	}
	return found
}

// tierRows returns the tests that the fast tier skips or shortens: over real programs,
// at full length only, and longer at full length.
func tierRows(t *tree) map[string][]string {
	calls := t.calls()
	tiers := []struct {
		name  string
		tests map[string]bool
	}{{"real:", reaching(calls, "Real")}, {"soak:", reaching(calls, "Soak")}, {"longer:", reaching(calls, "Size", "Soaking")}}
	rows := map[string][]string{}
	for _, p := range t.sorted() {
		for _, name := range p.tests() {
			for _, tier := range tiers {
				if tier.tests[p.path+"."+name] && p.path != kit {
					rows[p.path] = append(rows[p.path], tier.name+strings.TrimPrefix(name, "Test"))
					break // a test belongs to its first tier
				}
			}
		}
	}
	return rows
}

// tests returns the names of the tests of a package, sorted.
func (p *folder) tests() []string {
	var out []string
	for _, f := range p.files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.test && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain" {
				out = append(out, fn.Name.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// checkTiers finds tests with real programs that -run Real does not select, and packages without a
// Main that cleans up their files and processes.
func checkTiers(t *tree) []string {
	var problems []string
	calls := t.calls()
	overReal, overMain := reaching(calls, "Real"), reaching(calls, "Main")
	for _, p := range t.sorted() {
		if p.path == kit {
			continue
		}
		for _, name := range p.tests() {
			if isReal := strings.HasPrefix(name, "TestReal"); isReal != overReal[p.path+"."+name] {
				problems = append(problems, fmt.Sprintf("%s: %s: the name of a test that calls testkit.Real starts with TestReal, and no other", p.path, name))
			}
		}
		writes := slices.ContainsFunc(p.files, func(f *goFile) bool {
			return f.test && (strings.Contains(t.text[f.path], ".TempDir"+"()") || slices.ContainsFunc(f.imports, func(i imported) bool { return i.path == "os/exec" }))
		})
		if writes && !overMain[p.path+".TestMain"] {
			problems = append(problems, fmt.Sprintf("%s: tests that use files or processes need a TestMain that calls testkit.Main", p.path))
		}
	}
	return problems
}
