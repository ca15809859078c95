package arch

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// maxBody is the maximum number of lines of an Example of a public package, without its
// output.
const maxBody = 6

// example is one runnable Example of a package.
type example struct {
	decl   *ast.FuncDecl
	lines  []string // of the body, without comments, indented as in the file less one tab
	output string
}

func (t *tree) examples(p *folder) map[string]example {
	out := map[string]example{}
	for _, f := range p.files {
		if !f.test {
			continue
		}
		source := strings.Split(t.text[f.path], "\n")
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Example") {
				continue
			}
			e := example{decl: fn}
			last := fn.Body.Rbrace
			for _, c := range f.Comments {
				if c.Pos() > fn.Body.Lbrace && c.End() < fn.Body.Rbrace {
					text, found := output(c.Text())
					if found {
						e.output, last = text, c.Pos()
					}
				}
			}
			first := t.fset.Position(fn.Body.Lbrace).Line
			for _, line := range source[first : t.fset.Position(last).Line-1] {
				e.lines = append(e.lines, strings.TrimPrefix(line, "\t"))
			}
			out[fn.Name.Name] = e
		}
	}
	return out
}

// output returns the output of an Example from its comment.
func output(comment string) (string, bool) {
	head, rest, ok := strings.Cut(comment, "utput:")
	if !ok || !slices.Contains([]string{"O", "Unordered o"}, head) {
		return "", false
	}
	return strings.Trim(rest, " \n"), true
}

// wantsExample reports whether a package needs an Example. Suites and the two contracts
// show their use in comments.
func wantsExample(p *folder) bool {
	return isPublic(p.path) && p.name != "" &&
		!slices.Contains([]string{"artifact/artifacttest", "origin/origintest", "protocol", "protocol/protocoltest", "store", "store/storetest"}, p.path)
}

// checkExamples finds public packages without a runnable Example, and Examples that are
// too long.
func checkExamples(t *tree) []string {
	var problems []string
	for _, p := range t.sorted() {
		if !wantsExample(p) {
			continue
		}
		found := false
		for name, e := range t.examples(p) {
			found = found || e.output != ""
			n := 0
			for _, line := range e.lines {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
					n++
				}
			}
			if n > maxBody {
				problems = append(problems, t.at(e.decl.Pos(), "%s has %d lines, want at most %d", name, n, maxBody))
			}
		}
		if !found {
			problems = append(problems, fmt.Sprintf("%s: no Example with its output", p.path))
		}
	}
	slices.Sort(problems)
	return problems
}

// checkCorpora finds fuzz targets without a committed corpus.
func checkCorpora(t *tree) []string {
	var problems []string
	for _, p := range t.sorted() {
		for _, f := range p.files {
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || !f.test || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Fuzz") {
					continue
				}
				dir := path.Join(p.path, "testdata/fuzz", fn.Name.Name) + "/"
				if !t.hasData(dir) {
					problems = append(problems, t.at(fn.Pos(), "%s has no file in %s", fn.Name.Name, dir))
				}
			}
		}
	}
	return problems
}

func (t *tree) hasData(dir string) bool {
	for p := range t.data {
		if strings.HasPrefix(p, dir) {
			return true
		}
	}
	return false
}

// guides is the folder of the pages whose Go code comes from Examples.
const guides = "docs/guides/"

// checkGuides finds parts of the guides that differ from the Examples.
func checkGuides(t *tree) []string {
	var problems []string
	for name, text := range t.texts() {
		if !strings.HasPrefix(name, guides) {
			continue
		}
		want, err := t.regenerateGuide(text)
		if err != nil {
			problems = append(problems, name+": "+err.Error())
			continue
		}
		if rest, _ := regenerate(text, func(string, string) (string, error) { return "", nil }); strings.Contains(rest, "```go") {
			problems = append(problems, name+": Go code that is not from an Example")
		}
		problems = append(problems, stale(name, text, want, "go test ./internal/arch -run Guides -update")...)
	}
	return problems
}

func (t *tree) regenerateGuide(text string) (string, error) {
	return regenerate(text, func(kind, argument string) (string, error) {
		if kind != "example" {
			return "", fmt.Errorf("part %q not found", kind)
		}
		dir, name, ok := strings.Cut(argument, ".")
		if !ok {
			return "", fmt.Errorf("want PACKAGE.Example")
		}
		if dir == path.Base(t.module) {
			dir = "."
		}
		p := t.packages[dir]
		if p == nil {
			return "", fmt.Errorf("package %s not found", dir)
		}
		e, ok := t.examples(p)[name]
		if !ok || e.output == "" {
			return "", fmt.Errorf("%s has no %s with output", dir, name)
		}
		return "\n```go\n" + strings.Trim(strings.Join(e.lines, "\n"), "\n") + "\n```\n\n```text\n" + e.output + "\n```\n\n", nil
	})
}

// commands lists the two commands that README must contain.
var commands = []string{"go run ./cmd/millrace serve testdata/sites/", "go test ./..."}

// checkReadme finds commands of README that are missing, and folders that do not exist.
func checkReadme(t *tree) []string {
	text, ok := t.text["README.md"]
	if !ok {
		return []string{"no README.md"}
	}
	var problems []string
	for _, c := range commands {
		if !strings.Contains(text, c) {
			problems = append(problems, fmt.Sprintf("README.md: the command %q is missing", c))
		}
	}
	for word := range strings.FieldsSeq(text) {
		word = strings.Trim(word, "`.,:;()")
		if strings.HasPrefix(word, "testdata/sites/") && !t.hasData(strings.TrimSuffix(word, "/")+"/") {
			problems = append(problems, fmt.Sprintf("README.md: %s does not exist", word))
		}
	}
	return problems
}
