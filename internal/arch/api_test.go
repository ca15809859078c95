package arch

import (
	"bufio"
	"cmp"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// apiFile lists what programs can import: a symbol, and its declaration.
const apiFile = tables + "api.txt"

const apiHead = "# The API of the public packages.\n" +
	"# To accept a change: go test ./internal/arch -run API -update\n"

// TestAPI compares the public packages with the list. Programs that use the packages compile as
// long as no line of the list changes. They can name every type in the list.
func TestAPI(t *testing.T) {
	root, tr := readModule(t)
	got := readAPI(t, root, tr)
	if *update {
		out := apiHead
		for _, symbol := range slices.Sorted(maps.Keys(got)) {
			out += symbol + " " + got[symbol] + "\n"
		}
		write(t, root, apiFile, out)
		return
	}
	for _, problem := range compareAPI(parseAPI(tr.text[apiFile]), got) {
		t.Error(problem)
	}
}

func TestAPIComparison(t *testing.T) {
	old := parseAPI(apiHead + "a.F func(int)\na.G func()\na.I interface\na.S field *internal/b.S\na.T struct\n")
	got := parseAPI("a.F func(string)\na.H func()\na.I interface\na.I.M interface method()\na.S field *internal/b.S\na.T struct\n")
	want := []string{
		"a.F is func(string) and was func(int): this breaks importers",
		"a.G was removed: this breaks importers",
		"a.H is new",
		"a.I.M is new: this breaks types that implement the interface",
		"a.S has internal/b.S, which importers cannot name: give it a public name, or remove it from the API",
	}
	problems := compareAPI(old, got)
	if len(problems) != len(want) {
		t.Fatalf("%q", problems)
	}
	for i, p := range problems {
		if !strings.HasPrefix(p, want[i]) {
			t.Errorf("%q, want %q", p, want[i])
		}
	}
	delete(old, "a.S")
	if problems := compareAPI(old, old); problems != nil {
		t.Errorf("%q without a change", problems)
	}
}

func parseAPI(text string) map[string]string {
	api := make(map[string]string)
	for line := range strings.Lines(text) {
		if symbol, declaration, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok && symbol != "#" {
			api[symbol] = declaration
		}
	}
	return api
}

func compareAPI(old, got map[string]string) []string {
	all := maps.Clone(old)
	maps.Copy(all, got)
	var problems []string
	for _, symbol := range slices.Sorted(maps.Keys(all)) {
		was, existed := old[symbol]
		is, exists := got[symbol]
		if name := internalType.FindString(is); name != "" {
			problems = append(problems, symbol+" has "+name+", which importers cannot name: give it a public name, or remove it from the API")
			continue
		}
		var problem string
		switch {
		case !exists:
			problem = "was removed: this breaks importers"
		case existed && was != is:
			problem = fmt.Sprintf("is %s and was %s: this breaks importers", is, was)
		case !existed && strings.HasPrefix(is, "interface method"):
			problem = "is new: this breaks types that implement the interface"
		case !existed:
			problem = "is new"
		default:
			continue
		}
		problems = append(problems, symbol+" "+problem+"; go test ./internal/arch -run API -update accepts it")
	}
	return problems
}

// readAPI returns the exported symbols of the public packages with their declarations, as
// compiled.
func readAPI(t *testing.T, root string, tr *tree) map[string]string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./...")
	c.Dir, c.Stderr = root, os.Stderr
	list, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := parseAPI(string(list))
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		f, err := os.Open(files[path])
		return struct {
			io.Reader
			io.Closer
		}{bufio.NewReader(f), f}, err
	})
	a := &api{tr.module, make(map[string]string), make(map[string]string)}
	var packages []*types.Package
	for _, p := range tr.sorted() {
		if !isPublic(p.path) || files[filepath.ToSlash(filepath.Join(tr.module, p.path))] == "" {
			continue
		}
		in, err := compiled.Import(filepath.ToSlash(filepath.Join(tr.module, p.path)))
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, in)
		for _, name := range in.Scope().Names() {
			if o, ok := in.Scope().Lookup(name).(*types.TypeName); ok && o.Exported() && o.IsAlias() {
				a.names[types.TypeString(types.Unalias(o.Type()), a.qualify)] = a.qualify(in) + "." + name
			}
		}
	}
	for _, p := range packages {
		for _, name := range p.Scope().Names() {
			if o := p.Scope().Lookup(name); o.Exported() {
				a.add(a.qualify(p)+"."+name, o)
			}
		}
	}
	return a.symbols
}

// api collects symbols.
type api struct {
	module  string
	symbols map[string]string
	names   map[string]string // public names of internal types, by their own
}

// qualify shortens the paths of packages of the module.
func (a *api) qualify(p *types.Package) string {
	if p.Path() == a.module {
		return p.Name()
	}
	return strings.TrimPrefix(p.Path(), a.module+"/")
}

// internalType matches a type of an internal package.
var internalType = regexp.MustCompile(`internal/[\w/]+\.\w+`)

// text returns a type as a program would name it.
func (a *api) text(t types.Type) string {
	return internalType.ReplaceAllStringFunc(types.TypeString(unnamed(t), a.qualify), func(name string) string { return cmp.Or(a.names[name], name) })
}

// parameters returns a list of type parameters with their constraints.
func (a *api) parameters(of *types.TypeParamList) string {
	var list []string
	for p := range of.TypeParams() {
		list = append(list, p.Obj().Name()+" "+a.text(p.Constraint()))
	}
	if list == nil {
		return ""
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func (a *api) add(symbol string, o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		a.symbols[symbol] = fmt.Sprintf("const %s = %s", a.text(o.Type()), o.Val().ExactString())
	case *types.Var:
		a.symbols[symbol] = "var " + a.text(o.Type())
	case *types.Func:
		a.symbols[symbol] = "func" + a.parameters(o.Signature().TypeParams()) + strings.TrimPrefix(a.text(o.Type()), "func")
	case *types.TypeName:
		a.addType(symbol, o)
	}
}

func (a *api) addType(symbol string, o *types.TypeName) {
	if o.IsAlias() {
		named, ok := types.Unalias(o.Type()).(*types.Named)
		if !ok || !strings.Contains(a.qualify(named.Obj().Pkg()), "internal/") {
			a.symbols[symbol] = "= " + a.text(types.Unalias(o.Type()))
			return
		}
		o = named.Obj() // importers know the type by its alias
	}
	parameters := a.parameters(o.Type().(*types.Named).TypeParams())
	if parameters != "" {
		parameters += " "
	}
	switch under := o.Type().Underlying().(type) {
	case *types.Struct:
		a.symbols[symbol] = parameters + "struct"
		for f := range under.Fields() {
			if f.Exported() {
				a.symbols[symbol+"."+f.Name()] = "field " + a.text(f.Type())
			}
		}
	case *types.Interface:
		a.symbols[symbol] = parameters + "interface"
		for m := range under.Methods() {
			if !m.Exported() {
				a.symbols[symbol] = parameters + "interface with unexported methods"
				continue
			}
			a.symbols[symbol+"."+m.Name()] = "interface method" + strings.TrimPrefix(a.text(m.Type()), "func")
		}
		return
	default:
		a.symbols[symbol] = parameters + a.text(under)
	}
	values := types.NewMethodSet(o.Type())
	for m := range types.NewMethodSet(types.NewPointer(o.Type())).Methods() {
		if f := m.Obj(); f.Exported() {
			receiver := "method"
			if values.Lookup(nil, f.Name()) == nil {
				receiver = "pointer method"
			}
			a.symbols[symbol+"."+f.Name()] = receiver + strings.TrimPrefix(a.text(m.Type()), "func")
		}
	}
}

// unnamed returns a type without the names of parameters, and without type parameters.
func unnamed(t types.Type) types.Type {
	tuple := func(of *types.Tuple) *types.Tuple {
		var out []*types.Var
		for v := range of.Variables() {
			out = append(out, types.NewParam(token.NoPos, nil, "", unnamed(v.Type())))
		}
		return types.NewTuple(out...)
	}
	switch t := t.(type) {
	case *types.Signature:
		return types.NewSignatureType(nil, nil, nil, tuple(t.Params()), tuple(t.Results()), t.Variadic())
	case *types.Pointer:
		return types.NewPointer(unnamed(t.Elem()))
	case *types.Slice:
		return types.NewSlice(unnamed(t.Elem()))
	case *types.Map:
		return types.NewMap(unnamed(t.Key()), unnamed(t.Elem()))
	}
	return t
}
