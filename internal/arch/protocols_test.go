package arch

import (
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strings"
)

// draftFile matches the role of files that belong to one draft of a protocol.
var draftFile = regexp.MustCompile(`^draft\d\d$`)

// checkProtocols compares the files of every protocol package with the table of
// roles, and the packages with the list of package all.
func checkProtocols(t *tree) []string {
	var roles, problems []string
	for _, r := range tableRows(t.text[page], "file", "role") {
		roles = append(roles, names(r[0])...)
	}
	if len(roles) == 0 {
		return []string{page + ": table of files not found"}
	}
	var listed []string
	if all := t.packages["protocol/all"]; all != nil {
		for _, f := range all.files {
			for _, i := range f.imports {
				if !f.test {
					listed = append(listed, i.local)
				}
			}
		}
	}
	for _, p := range t.sorted() {
		if !isProtocol(p.path) {
			continue
		}
		if !slices.Contains(listed, p.path) {
			problems = append(problems, fmt.Sprintf("protocol/all does not list %s", p.path))
		}
		found := map[string]bool{}
		for _, f := range p.files {
			base := path.Base(f.path)
			found[base] = true
			role, topic, _ := strings.Cut(strings.TrimSuffix(base, ".go"), "_")
			if draftFile.MatchString(role) {
				continue
			}
			if !f.test && (!slices.Contains(roles, role+".go") || topic == "" && strings.Contains(base, "_")) {
				problems = append(problems, fmt.Sprintf("%s: no role in the table has this name", f.path))
			}
		}
		for _, r := range roles {
			if !found[r] {
				problems = append(problems, fmt.Sprintf("%s: no %s", p.path, r))
			}
		}
	}
	return problems
}

// checkSymmetry finds differences between the protocols. discover.go must define discover and
// its offers. NewReader must return a millrace.Source. The tests must run the fault suite of
// protocoltest.
func checkSymmetry(t *tree) []string {
	var problems []string
	for _, p := range t.sorted() {
		if !isProtocol(p.path) {
			continue
		}
		found, faults := false, false
		for _, f := range p.files {
			role, _, _ := strings.Cut(strings.TrimSuffix(path.Base(f.path), ".go"), "_")
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || f.test {
					continue
				}
				results := resultsOf(fn)
				finds := fn.Name.Name == "discover" || slices.Contains(results, "*protocol.Offer")
				switch {
				case finds && role != "discover":
					problems = append(problems, t.at(fn.Pos(), "%s finds the site; move it to discover.go", fn.Name.Name))
				case fn.Name.Name == "NewReader" && !slices.Equal(results, []string{"millrace.Source"}):
					problems = append(problems, t.at(fn.Pos(), "NewReader must return millrace.Source"))
				}
				found = found || fn.Name.Name == "discover"
			}
			ast.Inspect(f.File, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				faults = faults || ok && f.test && types.ExprString(s.X) == "protocoltest" && (s.Sel.Name == "Faults" || s.Sel.Name == "FaultsOf")
				return true
			})
		}
		if !found {
			problems = append(problems, fmt.Sprintf("%s: function discover not found", p.path))
		}
		if !faults {
			problems = append(problems, fmt.Sprintf("%s: its tests do not call protocoltest.Faults", p.path))
		}
	}
	return problems
}

// resultsOf returns the types that a function returns.
func resultsOf(fn *ast.FuncDecl) (out []string) {
	if fn.Type.Results != nil {
		for _, r := range fn.Type.Results.List {
			out = append(out, types.ExprString(r.Type))
		}
	}
	return out
}
