package arch

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tree contains the files of the module for the checks. Paths are slash-separated and relative to
// its root. A package is named by its folder, and the root by ".".
type tree struct {
	fset     *token.FileSet
	module   string             // module path
	direct   []string           // modules that go.mod requires directly, sorted
	required []string           // all modules that go.mod requires
	text     map[string]string  // every text file outside testdata, and the tables
	data     map[string]bool    // every file under a testdata folder
	packages map[string]*folder // of this module, without modules inside it
	broken   []string           // files that do not parse
}

// folder is one package with its tests.
type folder struct {
	path  string
	name  string // package name
	files []*goFile
}

type goFile struct {
	path    string
	test    bool
	imports []imported
	*ast.File
}

// textual are the extensions of the files to read.
var textual = []string{".go", ".html", ".md", ".mod", ".yml", ".yaml", ".txt", ".sh"}

func isText(p string) bool {
	return slices.Contains(textual, path.Ext(p)) || path.Base(p) == "Makefile" || strings.HasPrefix(p, ".ci/")
}

// isData reports whether a file is test data, except for the tables of the checks.
func isData(p string) bool {
	return slices.Contains(strings.Split(p, "/"), "testdata") && (path.Dir(p)+"/" != tables || path.Ext(p) != ".txt")
}

// moduleRoot returns the nearest parent folder that contains go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("arch: no go.mod above the working directory")
		}
		dir = up
	}
}

// readTree reads the module. It reads plain files, so that the test cache detects changes.
func readTree(root string) (*tree, error) {
	files := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		p := filepath.ToSlash(rel)
		switch {
		case d.IsDir() && p == ".git":
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		case isData(p):
			files[p] = ""
		case isText(p):
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			files[p] = string(b)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return newTree(files), nil
}

var (
	moduleLine  = regexp.MustCompile(`(?m)^module\s+(\S+)`)
	requireLine = regexp.MustCompile(`(?m)^(?:require)?\s+(\S+\.\S+)\s+v\S+[ \t]*(// indirect)?`)
)

// newTree returns a tree of files by path.
func newTree(files map[string]string) *tree {
	t := &tree{fset: token.NewFileSet(), text: map[string]string{}, data: map[string]bool{}, packages: map[string]*folder{}}
	var inner []string // modules inside this one
	for p := range files {
		if dir := path.Dir(p); path.Base(p) == "go.mod" && dir != "." {
			inner = append(inner, dir+"/")
		}
	}
	if m := moduleLine.FindStringSubmatch(files["go.mod"]); m != nil {
		t.module = m[1]
	}
	for _, m := range requireLine.FindAllStringSubmatch(files["go.mod"], -1) {
		t.required = append(t.required, m[1])
		if m[2] == "" {
			t.direct = append(t.direct, m[1])
		}
	}
	slices.Sort(t.direct)
	for _, p := range slices.Sorted(maps.Keys(files)) {
		if isData(p) {
			t.data[p] = true
			continue
		}
		t.text[p] = files[p]
		if path.Ext(p) != ".go" || slices.ContainsFunc(inner, func(dir string) bool { return strings.HasPrefix(p, dir) }) {
			continue
		}
		f, err := parser.ParseFile(t.fset, p, files[p], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.broken = append(t.broken, err.Error())
			continue
		}
		dir := path.Dir(p)
		if t.packages[dir] == nil {
			t.packages[dir] = &folder{path: dir}
		}
		g := &goFile{path: p, test: strings.HasSuffix(p, "_test.go"), imports: t.imports(f), File: f}
		t.packages[dir].files = append(t.packages[dir].files, g)
		if !g.test {
			t.packages[dir].name = f.Name.Name
		}
	}
	return t
}

// sorted returns the packages in order of their paths.
func (t *tree) sorted() []*folder {
	out := slices.Collect(maps.Values(t.packages))
	slices.SortFunc(out, func(a, b *folder) int { return strings.Compare(a.path, b.path) })
	return out
}

// at returns a problem with its position.
func (t *tree) at(pos token.Pos, format string, args ...any) string {
	p := t.fset.Position(pos)
	return fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, fmt.Sprintf(format, args...))
}

// imported is one import of a file.
type imported struct {
	local string // folder in this module; "" = outside
	path  string
	name  string // in the file; "" = the last element of the path
	pos   token.Pos
}

// outside reports whether the import is neither std nor this module's.
func (i imported) outside() bool {
	first, _, _ := strings.Cut(i.path, "/")
	return i.local == "" && strings.Contains(first, ".")
}

func (t *tree) imports(f *ast.File) []imported {
	var out []imported
	for _, s := range f.Imports {
		p, err := strconv.Unquote(s.Path.Value)
		if err != nil {
			continue // the parser accepts it, but the compiler does not
		}
		i := imported{path: p, pos: s.Pos()}
		if p == t.module {
			i.local = "."
		} else if rest, ok := strings.CutPrefix(p, t.module+"/"); ok {
			i.local = rest
		}
		if s.Name != nil {
			i.name = s.Name.Name
		}
		out = append(out, i)
	}
	return out
}

// isProtocol reports whether a folder is a protocol package.
func isProtocol(p string) bool {
	return path.Dir(p) == "protocol" && p != "protocol/all" && p != "protocol/protocoltest"
}

// isPublic reports whether other modules can import the package in a folder.
func isPublic(p string) bool {
	parts := strings.Split(p, "/")
	return !slices.Contains(parts, "internal") && parts[0] != "cmd" && parts[0] != "docs"
}

// moduleOf returns the module of an outside import: the longest of modules that is a prefix of
// p, or "" if none is.
func moduleOf(p string, modules []string) string {
	best := ""
	for _, m := range modules {
		if len(m) > len(best) && (p == m || strings.HasPrefix(p, m+"/")) {
			best = m
		}
	}
	return best
}

// texts yields the text files in order of their paths.
func (t *tree) texts() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, name := range slices.Sorted(maps.Keys(t.text)) {
			if !yield(name, t.text[name]) {
				return
			}
		}
	}
}

// sources yields the Go files in order of their paths.
func (t *tree) sources() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for name, text := range t.texts() {
			if path.Ext(name) == ".go" && !yield(name, text) {
				return
			}
		}
	}
}
