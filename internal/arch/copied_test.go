package arch

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
)

// wordRuns matches three or more words that are separated only by spaces, commas, colons and
// semicolons.
var wordRuns = regexp.MustCompile(`[A-Za-z']+(?:[,:;]? [A-Za-z']+){2,}`)

// keywords matches syntax in capitals, such as SQL and lists of methods.
var keywords = regexp.MustCompile(`\b[A-Z]{2,},? ?[A-Z]{2,}`)

// phrases returns every three consecutive words of a text, in lower case.
func phrases(text string) (out []string) {
	for _, run := range wordRuns.FindAllString(text, -1) {
		if keywords.MatchString(run) {
			continue
		}
		w := strings.Fields(strings.NewReplacer(",", "", ":", "", ";", "").Replace(strings.ToLower(run)))
		for i := range len(w) - 2 {
			out = append(out, strings.Join(w[i:i+3], " "))
		}
	}
	return out
}

// checkCopied finds tests that search for or compare with a phrase of a package under test.
// That is their own package, the packages that it imports, and those that the test imports.
func checkCopied(t *tree) []string {
	of := map[string]map[string]bool{} // phrases of each package and its templates
	for _, p := range t.sorted() {
		of[p.path] = map[string]bool{}
		for _, f := range p.files {
			if f.test {
				continue
			}
			for _, s := range literals(f.File) {
				for _, x := range phrases(s.text) {
					of[p.path][x] = true
				}
			}
		}
	}
	for name, text := range t.texts() {
		dir := path.Dir(name)
		for of[dir] == nil && dir != "." { // a folder of templates
			dir = path.Dir(dir)
		}
		if path.Ext(name) == ".html" && of[dir] != nil {
			for _, x := range phrases(text) {
				of[dir][x] = true
			}
		}
	}
	var problems []string
	for _, p := range t.sorted() {
		own := map[string]bool{p.path: true}
		for _, f := range p.files {
			for _, i := range f.imports {
				own[i.local] = own[i.local] || !f.test
			}
		}
		for _, f := range p.files {
			if !f.test {
				continue
			}
			for _, s := range compared(f.File) {
				for _, x := range phrases(s.text) {
					found := ""
					for dir := range of {
						if of[dir][x] && (own[dir] || imports(f, dir)) && (found == "" || dir < found) {
							found = dir
						}
					}
					if found != "" {
						problems = append(problems, t.at(s.pos, "the test requires %q of %s; compare a code or a value", x, found))
						break
					}
				}
			}
		}
	}
	return problems
}

// stringLit is a string literal of a file.
type stringLit struct {
	pos  token.Pos
	text string
}

// literals returns the string literals below a node, without the paths of imports.
func literals(n ast.Node) (out []stringLit) {
	ast.Inspect(n, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			if s, ok := literal(e); ok {
				out = append(out, stringLit{e.Pos(), s})
			}
		}
		_, isImport := n.(*ast.ImportSpec)
		return !isImport
	})
	return out
}

// compared returns the string literals that a file searches for or compares with.
func compared(f *ast.File) (out []stringLit) {
	add := func(sides ...ast.Expr) {
		for _, e := range sides {
			if s, ok := literal(e); ok {
				out = append(out, stringLit{e.Pos(), s})
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				add(n.X, n.Y)
			}
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && root(s.X) == "regexp" {
				add(n.Args...)
			}
			add(searched(n, "Contains", "HasPrefix", "HasSuffix", "Index", "Count", "Cut")...)
		}
		return true
	})
	return out
}

// imports reports whether a file imports a folder.
func imports(f *goFile, dir string) bool {
	for _, i := range f.imports {
		if i.local == dir {
			return true
		}
	}
	return false
}
