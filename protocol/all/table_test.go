package all_test

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/all"
)

var update = flag.Bool("update", false, "rewrite docs/explanation/protocols.md and docs/reference/rules.md")

const (
	document = "../../docs/explanation/protocols.md"
	from     = "<!-- table -->\n"
	to       = "<!-- end -->\n"
)

// fields are the fields of a page that a protocol can carry, each with its flag in Page.Known.
var fields = []struct {
	name string
	flag millrace.Fields
}{
	{"URL", 0},
	{"Title", millrace.FieldTitle},
	{"Description", millrace.FieldDescription},
	{"Summary", millrace.FieldSummary},
	{"Author", millrace.FieldAuthor},
	{"Published", millrace.FieldPublished},
	{"Modified", millrace.FieldModified},
	{"Language", millrace.FieldLanguage},
	{"Section", millrace.FieldSection},
	{"Tags", millrace.FieldTags},
	{"Kind", millrace.FieldKind},
	{"Schema", millrace.FieldSchema},
	{"Extra", millrace.FieldExtra},
	{"Unconfirmed", millrace.FieldContent},
}

// elsewhere are the other fields: Blocks have rows of their own, a View shows no page with
// Access, and Known, Detail, Version, Original and HTMLSize describe the source.
var elsewhere = []string{"Blocks", "Access", "Known", "Detail", "Version", "Original", "HTMLSize"}

// mill is the site of the test page.
var mill = millrace.Site{Base: "https://mill.example/"}

// full returns a page with every field that a View can show.
func full(p protocol.Protocol) *millrace.Page {
	return &millrace.Page{
		URL:         "https://mill.example/gate/",
		Title:       "The gate",
		Description: "About the gate.",
		Summary:     "A gate holds the water back.",
		Author:      "Ada Miller",
		Published:   time.Date(2025, 3, 1, 8, 0, 0, 0, time.UTC),
		Modified:    time.Date(2025, 3, 2, 9, 30, 0, 0, time.UTC),
		Language:    "en-GB",
		Section:     "handbook",
		Tags:        []string{"gate", "water"},
		Kind:        millrace.Documentation,
		Schema:      []json.RawMessage{json.RawMessage(`{"@type":"TechArticle","name":"The gate"}`)},
		Extra:       map[string]json.RawMessage{p.Name: json.RawMessage(`{"own":true}`)},
		Blocks:      blocks(),
		Known:       millrace.AllFields,
		Detail:      millrace.DetailBlocks,
		Unconfirmed: true,
	}
}

// blocks returns one block of every type, each with its own text.
func blocks() []millrace.Block {
	inside := []millrace.Block{{Type: millrace.TextBlock, Text: "Water is patient."}}
	return []millrace.Block{
		{Type: millrace.HeadingBlock, Level: 2, Text: "Opening", Anchor: "opening"},
		{Type: millrace.TextBlock, Text: "Lift the paddle."},
		{Type: millrace.ListBlock, Ordered: true, Items: []millrace.Item{{Text: "Lift."}, {Text: "Wait."}}},
		{Type: millrace.DefinitionsBlock, Items: []millrace.Item{{Term: "Leat", Text: "A channel."}}},
		{Type: millrace.CodeBlock, Language: "go", Text: "gate.Open()\n"},
		{Type: millrace.TableBlock, Rows: [][]millrace.Cell{{{Text: "Gate", Header: true}}, {{Text: "main"}}}},
		{Type: millrace.QuoteBlock, Blocks: inside, Cite: "A miller"},
		{Type: millrace.CalloutBlock, Kind: "warning", Title: "Mind the wheel", Blocks: inside},
		{Type: millrace.ImageBlock, URL: "https://mill.example/w.png", Alt: "A wheel", Caption: "The wheel"},
		{Type: millrace.VideoBlock, URL: "https://mill.example/w.mp4", Caption: "It turns"},
		{Type: millrace.AudioBlock, URL: "https://mill.example/w.ogg", Caption: "It creaks"},
		{Type: millrace.EmbedBlock, URL: "https://mill.example/map", Kind: "map", Title: "The way"},
		{Type: millrace.FootnoteBlock, Anchor: "n1", Text: "1", Blocks: inside},
		{Type: millrace.MathBlock, Language: "tex", Text: `P = \rho g Q h`},
		{Type: millrace.LinkBlock, URL: "https://mill.example/next/", Text: "Next"},
	}
}

// spans returns one paragraph for every type of span.
func spans() []millrace.Block {
	var out []millrace.Block
	for _, t := range []millrace.SpanType{
		millrace.LinkSpan, millrace.CodeSpan, millrace.EmphasisSpan,
		millrace.StrongSpan, millrace.MathSpan, millrace.FootnoteSpan, millrace.SubscriptSpan, millrace.SuperscriptSpan,
	} {
		s := millrace.Span{Type: t, Start: 5, End: 8}
		switch t {
		case millrace.LinkSpan:
			s.URL = "https://mill.example/paddle/"
		case millrace.FootnoteSpan:
			s.URL = "#n1"
		}
		out = append(out, millrace.Block{Type: millrace.TextBlock, Text: "Lift the paddle.", Spans: []millrace.Span{s}})
	}
	return out
}

var kinds = []millrace.PageKind{
	millrace.Article, millrace.Documentation, millrace.Service, millrace.Forum,
	millrace.Product, millrace.Listing, millrace.Collection, millrace.Archive,
}

// table returns a table of how each protocol carries each part of a page.
func table(protocols []protocol.Protocol) string {
	var out strings.Builder
	row := func(name string, cell func(p protocol.Protocol) string) {
		out.WriteString("| " + name + " |")
		for _, p := range protocols {
			out.WriteString(" " + cell(p) + " |")
		}
		out.WriteByte('\n')
	}
	row("part of a page", func(p protocol.Protocol) string { return "`" + p.Name + "`" })
	row("---", func(protocol.Protocol) string { return "---" })
	for _, f := range fields {
		row(strings.ToLower(f.name), func(p protocol.Protocol) string { return field(p, f.name, f.flag) })
	}
	for _, b := range blocks() {
		row(string(b.Type)+" block", func(p protocol.Protocol) string { return content(p, b) })
	}
	for _, b := range spans() {
		row(string(b.Spans[0].Type)+" in text", func(p protocol.Protocol) string { return content(p, b) })
	}
	for _, k := range kinds {
		row("page of kind "+string(k), func(p protocol.Protocol) string {
			page := full(p)
			page.Kind = k
			if p.Carry(mill, page) == nil {
				return "no document"
			}
			return "has a document"
		})
	}
	return out.String()
}

func field(p protocol.Protocol, name string, flag millrace.Fields) string {
	in := full(p)
	out := p.Carry(mill, in)
	if out == nil {
		return "no document"
	}
	want, got := reflect.ValueOf(in).Elem().FieldByName(name), reflect.ValueOf(out).Elem().FieldByName(name)
	switch {
	case got.IsZero() || got.Kind() == reflect.Slice && got.Len() == 0 || !out.Known.Has(flag):
		return "lost"
	case cmp.Equal(want.Interface(), got.Interface()):
		return "carried"
	}
	return "changed"
}

func content(p protocol.Protocol, b millrace.Block) string {
	in := full(p)
	in.Blocks = []millrace.Block{b}
	out := p.Carry(mill, in)
	switch {
	case out == nil:
		return "no document"
	case cmp.Equal(in.Blocks, out.Blocks, cmpopts.EquateEmpty()):
		return "carried"
	case len(out.Blocks) == 0:
		return "lost"
	case b.Spans == nil && slices.ContainsFunc(out.Blocks, func(o millrace.Block) bool { return o.Type == b.Type }):
		return "in part"
	case out.Text() == in.Text():
		return "as text"
	}
	return "changed"
}

func TestTable(t *testing.T) {
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), from)
	_, after, closed := strings.Cut(rest, to)
	if !ok || !closed {
		t.Fatalf("%s: want %q and %q", document, from, to)
	}
	want := before + from + table(all.Protocols()) + to + after
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("%s is stale; see what changed, then: go test ./protocol/all -run Table -update (-want +got):\n%s", document, diff)
	}
}

// TestTableIsComplete checks that the table has every part of a page.
func TestTableIsComplete(t *testing.T) {
	page := reflect.ValueOf(full(protocol.Protocol{Name: "x"})).Elem()
	for i := range page.NumField() {
		name := page.Type().Field(i).Name
		row := false
		for _, f := range fields {
			row = row || f.name == name
		}
		if row && page.Field(i).IsZero() {
			t.Errorf("the full page has no value in %s", name)
		}
		if row == slices.Contains(elsewhere, name) {
			t.Errorf("Page.%s has no row or several rows", name)
		}
	}
	var blockTypes, spanTypes, pageKinds []string
	for _, b := range blocks() {
		blockTypes = append(blockTypes, string(b.Type))
	}
	for _, b := range spans() {
		spanTypes = append(spanTypes, string(b.Spans[0].Type))
	}
	for _, k := range kinds {
		pageKinds = append(pageKinds, string(k))
	}
	for typ, got := range map[string][]string{"BlockType": blockTypes, "SpanType": spanTypes, "PageKind": pageKinds} {
		if diff := cmp.Diff(constants(t, typ), got); diff != "" {
			t.Errorf("the values of %s (-want +got):\n%s", typ, diff)
		}
	}
}

// constants returns the values of the constants of a type of the root package, in the order of
// its source.
func constants(t *testing.T, typ string) []string {
	t.Helper()
	var out []string
	for _, name := range []string{"../../block.go", "../../page.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if id, ok := s.Type.(*ast.Ident); ok && id.Name == typ && len(s.Values) == 1 {
				v, err := strconv.Unquote(s.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, v)
			}
			return true
		})
	}
	return out
}

// TestTableTells checks each word of the table with protocols made for the test.
func TestTableTells(t *testing.T) {
	complete := protocol.Protocol{Name: "whole", Carry: func(_ millrace.Site, p *millrace.Page) *millrace.Page { return p.Clone() }}
	less := protocol.Protocol{Name: "less", Carry: func(_ millrace.Site, p *millrace.Page) *millrace.Page {
		p = p.Clone()
		for i := range p.Blocks {
			p.Blocks[i].Anchor = ""
		}
		return p
	}}
	none := protocol.Protocol{Name: "none", Carry: func(millrace.Site, *millrace.Page) *millrace.Page { return nil }}
	text := protocol.Protocol{Name: "text", Carry: func(_ millrace.Site, p *millrace.Page) *millrace.Page {
		return &millrace.Page{
			URL: p.URL, Title: p.Title + "!", Author: p.Author, Blocks: millrace.TextBlocks(p.Text()),
			Known: millrace.FieldTitle | millrace.FieldContent, Detail: millrace.DetailText,
		}
	}}
	rows := table([]protocol.Protocol{complete, less, none, text})
	for _, want := range []string{
		"| url | carried | carried | no document | carried |",
		"| title | carried | carried | no document | changed |",
		"| author | carried | carried | no document | lost |", // carried, but not in Known
		"| tags | carried | carried | no document | lost |",
		"| heading block | carried | in part | no document | as text |",
		"| table block | carried | carried | no document | as text |",
		"| page of kind archive | has a document | has a document | no document | has a document |",
	} {
		if !strings.Contains(rows, want+"\n") {
			t.Errorf("no row %s in\n%s", want, rows)
		}
	}
}
