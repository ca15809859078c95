package arch

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// banned lists calls and variables, by import path, that only some packages may use
// outside of tests.
var banned = []struct {
	path   string
	names  []string
	except func(folder string) bool
	why    string
}{
	{
		"net/http",
		[]string{"DefaultClient", "DefaultServeMux", "Get", "Head", "Post", "PostForm", "Handle", "HandleFunc"},
		func(p string) bool { return strings.HasSuffix(p, "test") }, // suites
		"is shared by the whole process; use a client of internal/fetch",
	},
	{
		"os",
		[]string{"Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv"},
		func(p string) bool { return strings.HasPrefix(p, "cmd/") || strings.HasPrefix(p, kit) },
		"reads the environment, which only the command may do",
	},
	{
		"os",
		[]string{"Rename"},
		func(p string) bool { return p == "internal/replace" },
		"may lose the file in a power cut; use internal/replace, which syncs files",
	},
	{
		"time",
		[]string{"Sleep"},
		func(p string) bool { return p == "internal/fetch" },
		"waits without a context",
	},
}

// checkHabits finds code that packages must not have: state, work in init, panics without the
// package's name, and use of the process's resources.
func checkHabits(t *tree) []string {
	var problems []string
	for _, p := range t.sorted() {
		var vars []string
		for _, f := range p.files {
			if !f.test {
				vars = append(vars, packageVars(f.File)...)
			}
		}
		for _, f := range p.files {
			if f.test {
				continue
			}
			problems = append(problems, t.state(f)...)
			problems = append(problems, t.uses(p, f)...)
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok {
					if fn.Recv == nil && fn.Name.Name == "init" {
						problems = append(problems, t.at(fn.Pos(), "func init"))
					}
					problems = append(problems, t.writes(fn, vars)...)
				}
			}
		}
	}
	return problems
}

func packageVars(f *ast.File) []string {
	var out []string
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, s := range g.Specs {
				for _, n := range s.(*ast.ValueSpec).Names {
					out = append(out, n.Name)
				}
			}
		}
	}
	return out
}

// state finds package variables with a mutable type or value.
func (t *tree) state(f *goFile) []string {
	var problems []string
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		ast.Inspect(g, func(n ast.Node) bool {
			if _, ok := n.(*ast.FuncLit); ok {
				return false
			}
			if s, ok := n.(*ast.SelectorExpr); ok {
				from, name := f.selected(s)
				if from == "sync" || from == "sync/atomic" || from == "net/http" && name == "Client" ||
					from == "database/sql" && !strings.HasPrefix(name, "Err") {
					problems = append(problems, t.at(s.Pos(), "a package variable contains a %s.%s", path.Base(from), name))
				}
			}
			return true
		})
	}
	return problems
}

// selected returns the import and the name of a selector on a package, "" for other
// selectors.
func (f *goFile) selected(s *ast.SelectorExpr) (from, name string) {
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	for _, i := range f.imports {
		if x.Name == i.name || i.name == "" && x.Name == path.Base(i.path) {
			return i.path, s.Sel.Name
		}
	}
	return "", ""
}

// writes finds assignments of a function to variables of its package. It ignores names
// that the function declares itself anywhere.
func (t *tree) writes(fn *ast.FuncDecl, vars []string) []string {
	own := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, name := range n.Names {
				own[name.Name] = true
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				own[name.Name] = true
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				own[root(n.Key)], own[root(n.Value)] = true, true
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, l := range n.Lhs {
					own[root(l)] = true
				}
			}
		}
		return true
	})
	var problems []string
	target := func(e ast.Expr) {
		if name := root(e); name != "_" && !own[name] && slices.Contains(vars, name) {
			problems = append(problems, t.at(e.Pos(), "%s, a package variable, is changed", name))
		}
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, l := range n.Lhs {
					target(l)
				}
			}
		case *ast.IncDecStmt:
			target(n.X)
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear") && len(n.Args) > 0 {
				target(n.Args[0])
			}
		}
		return true
	})
	return problems
}

// root returns the variable at the root of an assignable expression.
func root(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x.Name
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return ""
		}
	}
}

// uses finds banned calls and variables, and panics without the package's name.
func (t *tree) uses(p *folder, f *goFile) []string {
	var problems []string
	ast.Inspect(f.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			from, name := f.selected(n)
			for _, b := range banned {
				if from == b.path && slices.Contains(b.names, name) && !b.except(p.path) {
					problems = append(problems, t.at(n.Pos(), "%s.%s %s", path.Base(from), name, b.why))
				}
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "panic" && len(n.Args) == 1 {
				name := p.name
				if name == "main" {
					name = path.Base(p.path)
				}
				if text, ok := leading(n.Args[0]); ok && !strings.HasPrefix(text, name+": ") {
					problems = append(problems, t.at(n.Pos(), "the panic %q does not start with %q", text, name+": "))
				}
			}
		}
		return true
	})
	return problems
}

// leading returns the string at the start of a message: a literal, a concatenation, or a call
// such as fmt.Sprintf.
func leading(e ast.Expr) (string, bool) {
	for {
		switch x := e.(type) {
		case *ast.BasicLit:
			s, err := strconv.Unquote(x.Value)
			return s, err == nil && x.Kind == token.STRING
		case *ast.BinaryExpr:
			e = x.X
		case *ast.CallExpr:
			if len(x.Args) == 0 {
				return "", false
			}
			e = x.Args[0]
		default:
			return "", false
		}
	}
}
