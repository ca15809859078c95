package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// prose matches literals with two words, in contrast to plain values such as a code, a
// URL or an attribute of a log.
var prose = regexp.MustCompile(`[A-Za-z]{2,}[,:;]? [A-Za-z]{2,}`)

// worded are the names of texts for people: errors, logs and reasons.
var worded = []string{"err", "errs", "stderr", "log", "logs", "Error", "Reason", "Note", "Why", "Basis"}

// checkWording finds tests that require a certain wording of an error or a log message. Tests may
// require that words are absent.
func checkWording(t *tree) []string {
	var problems []string
	for name, text := range t.sources() {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(t.fset, name, text, parser.SkipObjectResolution) // also parses the files of nested modules
		if err != nil {
			continue // the compiler reports it
		}
		ast.Inspect(f, func(n ast.Node) bool {
			var sides []ast.Expr
			switch n := n.(type) {
			case *ast.UnaryExpr:
				if n.Op == token.NOT {
					sides = searched(n.X, "Contains", "HasPrefix", "HasSuffix")
				}
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					sides = append(searched(n.X, "Contains", "HasPrefix", "HasSuffix", "Count"), n.X, n.Y)
				}
			}
			for i := 0; i+1 < len(sides); i += 2 {
				if x, y := sides[i], sides[i+1]; isWorded(x) && isProse(y) || isProse(x) && isWorded(y) {
					problems = append(problems, t.at(n.Pos(), "the test requires a wording; compare a code or a value"))
				}
			}
			return true
		})
	}
	return problems
}

// searched returns the arguments of a call of a function of strings, or nil.
func searched(e ast.Expr, names ...string) []ast.Expr {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return nil
	}
	if s, ok := call.Fun.(*ast.SelectorExpr); ok && root(s.X) == "strings" && slices.Contains(names, s.Sel.Name) {
		return call.Args
	}
	return nil
}

// isWorded reports whether an expression has the text of an error or a log.
func isWorded(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && slices.Contains(worded, id.Name)
		return !found
	})
	return found
}

func isProse(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING && prose.MatchString(lit.Value)
}
