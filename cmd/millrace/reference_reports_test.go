package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/check"
	"github.com/millrace/millrace/internal/access"
	"github.com/millrace/millrace/internal/config"
	"github.com/millrace/millrace/internal/export"
	"github.com/millrace/millrace/internal/ingest"
	"github.com/millrace/millrace/internal/library"
	"github.com/millrace/millrace/internal/report"
	"github.com/millrace/millrace/internal/serving"
	"github.com/millrace/millrace/internal/setup"
	"github.com/millrace/millrace/internal/setup/apply"
	"github.com/millrace/millrace/internal/sitelist"
	"github.com/millrace/millrace/internal/snapshot"
	"github.com/millrace/millrace/internal/verify"
	"github.com/millrace/millrace/protocol/scp"
)

// reportType describes the JSON report of a command.
type reportType struct {
	command string
	of      reflect.Type
	note    string
}

var reports = []reportType{
	{"serve", reflect.TypeFor[serveReport](), "Printed when the first edition is published."},
	{"ready", reflect.TypeFor[readyReport](), ""},
	{"build", reflect.TypeFor[serving.BuildReport](), ""},
	{"pull", reflect.TypeFor[agent.Report](), "A list of these, if several sites are named."},
	{"watch", reflect.TypeFor[agent.Change](), "One per line, without `--json`."},
	{"watch --webhook", reflect.TypeFor[agent.Message](), "The body of a request to the webhook."},
	{"sites add", reflect.TypeFor[sitelist.Report](), "The same for `sites remove`, `sites pause` and `sites resume`."},
	{"sites list", reflect.TypeFor[sitelist.Listing](), ""},
	{"discover", reflect.TypeFor[agent.Discovery](), ""},
	{"check", reflect.TypeFor[check.Report](), ""},
	{"extract", reflect.TypeFor[ingest.ExtractReport](), ""},
	{"read", reflect.TypeFor[readReport](), ""},
	{"search", reflect.TypeFor[library.Report](), ""},
	{"verify", reflect.TypeFor[verify.Report](), ""},
	{"export", reflect.TypeFor[export.Report](), ""},
	{"report", reflect.TypeFor[report.Report](), ""},
	{"mcp", reflect.TypeFor[mcpReport](), "Printed with `--listen`."},
	{"keys add", reflect.TypeFor[access.KeyReport](), ""},
	{"keys list", reflect.TypeFor[[]access.KeyReport](), "A list of the members of `keys add`, without `key`."},
	{"keys revoke", reflect.TypeFor[revokeReport](), ""},
	{"keys sign", reflect.TypeFor[signKeyReport](), ""},
	{"keys password", reflect.TypeFor[passwordReport](), ""},
	{"keys directory", reflect.TypeFor[directoryReport](), ""},
	{"scp inspect", reflect.TypeFor[scp.Inspection](), ""},
	{"scp verify", reflect.TypeFor[scp.FileReport](), "A list of these, if several files are named."},
	{"scp cat", reflect.TypeFor[millrace.Page](), "One page per line, without `--json`. The members are those of `extract`."},
	{"arc lint", reflect.TypeFor[snapshot.LintReport](), "A list of these, if several pages are named."},
	{"arc annotate", reflect.TypeFor[arcAdditions](), ""},
	{"snippet", reflect.TypeFor[map[string]string](), "The members `for`, the name of the program, and `text`, its configuration."},
	{"init", reflect.TypeFor[setup.Report](), ""},
	{"up", reflect.TypeFor[apply.Report](), "It is printed when the site is served and the changes of `--apply` are made."},
	{"config", reflect.TypeFor[config.Report](), ""},
	{"version", reflect.TypeFor[versionReport](), ""},
}

// member is one member of a report: its path, such as findings[].url.
type member struct{ path, kind, meaning string }

// objects collects the types that several members share. The page lists each of them once.
type objects struct {
	uses  map[reflect.Type]int
	names []reflect.Type
}

// isObject reports whether a type has members of its own.
func isObject(typ reflect.Type) bool {
	return typ.Kind() == reflect.Struct && typ != reflect.TypeFor[time.Time]()
}

// count counts the uses of the types that are objects.
func (o *objects) count(typ reflect.Type) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	if !isObject(typ) {
		return
	}
	if o.uses[typ]++; o.uses[typ] > 1 {
		if o.uses[typ] == 2 && typ.Name() != "" {
			o.names = append(o.names, typ)
		}
		return
	}
	for i := range typ.NumField() {
		if name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ","); name != "-" {
			o.count(typ.Field(i).Type)
		}
	}
}

// members lists the members of a type below a path.
func (o *objects) members(t *testing.T, typ reflect.Type, below string) (out []member) {
	t.Helper()
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner, suffix := f.Type, ""
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map {
			suffix += map[reflect.Kind]string{reflect.Slice: "[]", reflect.Map: ".*"}[inner.Kind()]
			inner = inner.Elem()
		}
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "" && slices.Contains(o.names, inner):
			out = append(out, member{strings.TrimPrefix(below+".…", "."), o.link(inner), "The members of this object."})
			continue
		case f.Anonymous && name == "":
			out = append(out, o.members(t, inner, below)...)
			continue
		}
		at := strings.TrimPrefix(below+"."+cmp.Or(name, f.Name), ".")
		kind := jsonKind(f.Type)
		shared := slices.Contains(o.names, inner)
		if shared {
			kind = strings.Replace(kind, "object", o.link(inner), 1)
		}
		if options != "" {
			kind += ", optional"
		}
		out = append(out, member{at, kind, cmp.Or(commentOf(t, typ, f.Name), usual[name])})
		if isObject(inner) && !shared {
			out = append(out, o.members(t, inner, at+suffix)...)
		}
	}
	return out
}

// name returns the name of a type on the page. If another type has the same name, it is
// prefixed with the package name.
func (o *objects) name(t reflect.Type) string {
	name := strings.ToLower(t.Name())
	for _, other := range o.names {
		if other != t && strings.EqualFold(other.Name(), name) {
			return path.Base(t.PkgPath()) + "-" + name
		}
	}
	return name
}

func (o *objects) link(t reflect.Type) string {
	return "[" + o.name(t) + "](report-objects.md#" + o.name(t) + ")"
}

// usual contains the meanings of members that have the same meaning in every report.
var usual = map[string]string{
	"bot":      "Name of the bot.",
	"code":     "Code of the error or reason.",
	"error":    "Reason for the failure.",
	"family":   "Operator of the bot.",
	"file":     "Name of the file.",
	"page":     "Name of the page, as given.",
	"pages":    "Number of pages.",
	"protocol": "Name of the protocol.",
	"reason":   "Reason in words.",
	"requests": "Number of requests.",
	"seconds":  "Duration in seconds.",
	"site":     "Root URL of the site.",
	"title":    "Title of the page.",
	"url":      "URL of the page or document.",
}

// jsonKind returns the type of a value in JSON.
func jsonKind(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time](), t == reflect.TypeFor[*time.Time]():
		return "time"
	case t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Interface:
		return "any"
	case t.Kind() == reflect.Pointer:
		return jsonKind(t.Elem())
	case t.Kind() == reflect.Slice:
		return "list of " + strings.TrimPrefix(jsonKind(t.Elem()), "list of ")
	case t.Kind() == reflect.Map:
		return "map of " + jsonKind(t.Elem())
	case t.Kind() == reflect.Struct:
		return "object"
	case t.Kind() == reflect.String:
		return "string"
	case t.Kind() == reflect.Bool:
		return "bool"
	}
	return "number"
}

// comments contains the comments of the fields of a package's types, by Type.Field.
var comments sync.Map

// commentOf returns the comment of a field, in one line.
func commentOf(t *testing.T, typ reflect.Type, field string) string {
	t.Helper()
	const module = "github.com/millrace/millrace"
	dir := filepath.Join("..", "..", strings.TrimPrefix(strings.TrimPrefix(typ.PkgPath(), module), "/"))
	if typ.PkgPath() == "main" || strings.HasSuffix(typ.PkgPath(), "/cmd/millrace") {
		dir = "."
	}
	found, ok := comments.Load(dir)
	if !ok {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]string{}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				if s, ok := spec.Type.(*ast.StructType); ok {
					for _, f := range s.Fields.List {
						for _, n := range f.Names {
							m[spec.Name.Name+"."+n.Name] = strings.Join(strings.Fields(cmp.Or(f.Doc.Text(), f.Comment.Text())), " ")
						}
					}
				}
				return true
			})
		}
		found, _ = comments.LoadOrStore(dir, m)
	}
	text, _, _ := strings.Cut(found.(map[string]string)[typ.Name()+"."+field], ". ")
	for _, verb := range []string{" is ", " are ", " counts ", " reports ", ": "} {
		text = strings.TrimPrefix(text, field+verb)
	}
	if text = strings.TrimSuffix(text, "."); text != "" {
		text = strings.ToUpper(text[:1]) + text[1:] + "."
	}
	return text
}

func TestReferenceReports(t *testing.T) {
	t.Parallel()
	if n := reportCalls(t); n != len(reports)-4 { // watch, scp cat and sites list print while they read, and a webhook is posted
		t.Errorf("commands print %d reports, the page has %d", n, len(reports)-4)
	}
	o := objects{uses: map[reflect.Type]int{}}
	for _, r := range reports {
		o.count(r.of)
	}
	slices.SortFunc(o.names, func(a, b reflect.Type) int { return strings.Compare(o.name(a), o.name(b)) })
	o.names = slices.DeleteFunc(o.names, func(typ reflect.Type) bool { // the first use of a report is its own section
		return slices.ContainsFunc(reports, func(r reportType) bool { return r.of == typ })
	})
	var b strings.Builder
	b.WriteString(`# Reports

With ` + "`--json`" + `, a command prints one of these objects. An optional member is omitted if it has no value. A time is in RFC 3339.
A command that fails before its report prints ` + "`{\"error\": …, \"code\": …}`" + `; [errors.md](errors.md) lists the codes.
`)
	table := func(typ reflect.Type) {
		b.WriteString("\n| member | type | meaning |\n|---|---|---|\n")
		for _, m := range o.members(t, typ, "") {
			if m.meaning == "" {
				t.Errorf("%s: the field of %s has no comment", typ, m.path)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.path, m.kind, strings.ReplaceAll(m.meaning, "|", `\|`))
		}
	}
	for _, r := range reports {
		fmt.Fprintf(&b, "\n## millrace %s\n", r.command)
		if r.note != "" {
			b.WriteString("\n" + r.note + "\n")
		}
		if r.of.Kind() == reflect.Struct && r.command != "scp cat" {
			table(r.of)
		}
	}
	checkReference(t, "reports.md", b.String())
	b.Reset()
	b.WriteString("# Objects of reports\n\nThese objects are members of several [reports](reports.md).\n")
	for _, typ := range o.names {
		fmt.Fprintf(&b, "\n## %s\n", o.name(typ))
		table(typ)
	}
	checkReference(t, "report-objects.md", b.String())
}

// reportCalls counts the places where commands print reports.
func reportCalls(t *testing.T) (n int) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if text, err := os.ReadFile(name); err != nil {
			t.Fatal(err)
		} else if !strings.HasSuffix(name, "_test.go") {
			n += strings.Count(string(text), "p.report(")
		}
	}
	return n
}

// checkReport fails the test if the JSON output of a command has members that the page does
// not list.
func checkReport(t *testing.T, args []string, stdout string) {
	t.Helper()
	for _, r := range reports {
		words := strings.Fields(r.command)
		if r.of.Kind() == reflect.Map || len(args) < len(words) || !slices.Equal(args[:len(words)], words) || !slices.Contains(args, "--json") {
			continue
		}
		var value any
		if json.Unmarshal([]byte(stdout), &value) != nil {
			return // not a report
		}
		listed := map[string]bool{"error": true, "code": true} // members of a failure
		var open []string                                      // members whose own members may have any name
		listPaths(r.of, "", nil, func(path string, isOpen bool) {
			if listed[path] = true; isOpen {
				open = append(open, path+".")
			}
		})
		unlisted(value, "", func(path string) {
			if !listed[path] && !slices.ContainsFunc(open, func(o string) bool { return strings.HasPrefix(path, o) }) {
				t.Errorf("millrace %s prints the member %s, which docs/reference/reports.md does not list", r.command, path)
			}
		})
	}
}

// listPaths calls f with the paths of the members of a type. A member whose type contains itself
// is open: its own members are not listed.
func listPaths(typ reflect.Type, below string, inside []reflect.Type, f func(path string, open bool)) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		if typ.Kind() == reflect.Slice && below != "" && !strings.HasSuffix(below, "[]") {
			below += "[]"
		}
		typ = typ.Elem()
	}
	if !isObject(typ) {
		return
	}
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() && !field.Anonymous {
			continue
		}
		at := below
		if name != "" || !field.Anonymous {
			at = strings.TrimPrefix(below+"."+cmp.Or(name, field.Name), ".")
		}
		inner, list := field.Type, ""
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Kind() == reflect.Slice {
				list = "[]"
			}
			inner = inner.Elem()
		}
		open := inner.Kind() == reflect.Map || inner.Kind() == reflect.Interface || inner == reflect.TypeFor[byte]() || slices.Contains(inside, inner)
		f(at, false)
		f(at+list, open)
		if !open {
			listPaths(field.Type, at, append(slices.Clone(inside), typ), f)
		}
	}
}

// unlisted calls f with the path of each member of a value.
func unlisted(v any, path string, f func(path string)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if path != "" && !strings.HasSuffix(path, "[]") {
				path += "[]"
			}
			unlisted(e, path, f)
		}
	case map[string]any:
		for k, e := range v {
			at := strings.TrimPrefix(path+"."+k, ".")
			f(at)
			unlisted(e, at, f)
		}
	}
}
