package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// checkSkips finds tests that skip for a reason other than a missing MILLRACE_TEST_ variable,
// -short or another system. A fuzz target may skip an input.
func checkSkips(t *tree) []string {
	var problems []string
	for _, p := range t.sorted() {
		for _, f := range p.files {
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || !f.test || otherSystem(f) {
					continue
				}
				reason, hands := mentionsReason(fn), testingNames(f, fn)
				ast.Inspect(fn, func(n ast.Node) bool {
					if _, ok := n.(*ast.FuncLit); ok && strings.HasPrefix(fn.Name.Name, "Fuzz") {
						return false
					}
					s, ok := n.(*ast.SelectorExpr)
					if ok && !reason && hands[root(s.X)] && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, s.Sel.Name) {
						problems = append(problems, t.at(s.Pos(), "%s skips for a reason that is neither a MILLRACE_TEST_ variable nor -short nor the system", fn.Name.Name))
					}
					return true
				})
			}
		}
	}
	return problems
}

func mentionsReason(fn *ast.FuncDecl) bool {
	found := false
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			found = found || strings.Contains(n.Value, "MILLRACE_TEST_")
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			found = found || ok && (x.Name == "testing" && n.Sel.Name == "Short" || x.Name == "runtime" && n.Sel.Name == "GOOS")
		}
		return !found
	})
	return found
}

// otherSystem reports whether a file is built only on some systems.
func otherSystem(f *goFile) bool {
	for _, g := range f.Comments {
		for _, c := range g.List {
			if c.Pos() < f.Package && strings.HasPrefix(c.Text, "//go:build ") {
				return true
			}
		}
	}
	return false
}

// testingNames returns the parameters of type testing.T, B, F or TB, of a function and
// of those inside it.
func testingNames(f *goFile, fn *ast.FuncDecl) map[string]bool {
	out := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		field, ok := n.(*ast.Field)
		if !ok {
			return true
		}
		typ := field.Type
		if p, ok := typ.(*ast.StarExpr); ok {
			typ = p.X
		}
		if s, ok := typ.(*ast.SelectorExpr); ok {
			if from, _ := f.selected(s); from == "testing" {
				for _, name := range field.Names {
					out[name.Name] = true
				}
			}
		}
		return true
	})
	return out
}
