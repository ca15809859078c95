package arc

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol/protocoltest"
)

var site = millrace.Site{Base: "https://example.com/", EndpointBase: "https://example.com/"}

func heading(level int, text string) millrace.Block {
	return millrace.Block{Type: millrace.HeadingBlock, Level: level, Text: text}
}

func paragraph(text string) millrace.Block {
	return millrace.Block{Type: millrace.TextBlock, Text: text}
}

func guide() *millrace.Page {
	return &millrace.Page{
		URL: "https://example.com/guide/", Title: "How to water", Kind: millrace.Article,
		Modified: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Tags: []string{" water ", "plants", "water"},
		Schema: []json.RawMessage{json.RawMessage(`{"@type":"BreadcrumbList"}`), json.RawMessage(`{"@graph":[{"@type":"WebPage"},{"@type":["schema:HowTo","Article"]}]}`)},
		Blocks: []millrace.Block{
			heading(1, "How to water"),
			paragraph("Water in the evening. The ground keeps it then. At noon it is gone."),
			heading(2, "How much?"), heading(3, "In summer"), paragraph("Ten liters a week."),
			heading(2, "How much?"),
			{Type: millrace.CodeBlock, Text: "water(10)"},
			paragraph("See Dr. Green. It depends."),
			heading(2, "***"), heading(2, "Empty"), heading(1, "More"), paragraph("not of a section"),
		},
		Known: millrace.AllFields, Detail: millrace.DetailBlocks,
	}
}

func TestSnapshotOfPlainPage(t *testing.T) {
	const want = `{"page":"article","sections":[` +
		`{"name":"how-much","summary":"Ten liters a week.","title":"How much?"},` +
		`{"name":"how-much-2","summary":"See Dr. Green. It depends.","title":"How much?"},` +
		`{"name":"section","title":"***"},{"name":"empty","title":"Empty"}],` +
		`"summary":"Water in the evening. The ground keeps it then.","title":"How to water","type":"HowTo"}`
	got := Snapshot(guide())
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c := canonicalObject(got); !bytes.Equal(c, got) {
		t.Errorf("the canonical form is %s", c)
	}
}

func TestSnapshotNames(t *testing.T) {
	p := &millrace.Page{URL: "https://example.com/", Known: millrace.AllFields}
	for _, h := range []string{"A", "a", "a 2", "A!", "a-2", "Ä 文"} {
		p.Blocks = append(p.Blocks, heading(2, h))
	}
	var got struct {
		Page     string
		Sections []struct{ Name string }
	}
	if err := json.Unmarshal(Snapshot(p), &got); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, s := range got.Sections {
		if seen[s.Name] {
			t.Errorf("two sections have the name %s", s.Name)
		}
		seen[s.Name] = true
	}
	if !seen["ä-文"] || !seen["a"] || len(seen) != 6 || got.Page != "home" {
		t.Errorf("the snapshot is %+v", got)
	}
	for path, want := range map[string]string{"/a/Sign-Up.html": "sign-up", "/%C3%A9t%C3%A9/": "été", "/--": "page", "/?x=1": "home"} {
		if name := nameOf(&millrace.Page{URL: "https://example.com" + path}); name != want {
			t.Errorf("%s: %q, want %q", path, name, want)
		}
	}
}

// If a page has attributes, its snapshot is built from them.
func TestStoredSnapshot(t *testing.T) {
	p := guide()
	p.Extra = map[string]json.RawMessage{Name: json.RawMessage(`{"summary":"Of the\n attributes","page":"guide","sections":[
		{"name":"s","title":"One","content":"Text of it","state":"open","groups":[{"name":"g","heading":"Two","texts":[{"attr":"content","key":"x","text":"More"}]}]}]}`)}
	e := entryOf(p)
	const want = `{"page":"guide","sections":[{"content":"Text of it","groups":[{"heading":"Two","name":"g","texts":[{"attr":"content","key":"x","text":"More"}]}],` +
		`"name":"s","state":"open","title":"One"}],"summary":"Of the\n attributes","title":"How to water"}`
	if diff := cmp.Diff(want, string(e.Snapshot)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got := carry(site, p)
	wantPage := &millrace.Page{
		URL: p.URL, Title: "How to water", Summary: "Of the attributes", Tags: []string{"water", "plants", "HowTo"}, Modified: p.Modified,
		Extra:  map[string]json.RawMessage{Name: json.RawMessage(want)},
		Blocks: []millrace.Block{heading(2, "One"), paragraph("Text of it"), heading(3, "Two"), paragraph("More")},
		Known: millrace.FieldTitle | millrace.FieldSummary | millrace.FieldTags | millrace.FieldModified | millrace.FieldAccess |
			millrace.FieldExtra | millrace.FieldContent,
	}
	if diff := cmp.Diff(wantPage, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("carried (-want +got):\n%s", diff)
	}
	p.Extra[Name] = json.RawMessage(`{"fields":[{"field":"q","type":"search"}],"title":null}`)
	const fields = `{"fields":[{"field":"q","type":"search"}],"page":"article","sections":[`
	if got := string(Snapshot(p)); !strings.HasPrefix(got, fields) || !strings.HasSuffix(got, `"title":null,"type":"HowTo"}`) {
		t.Errorf("the snapshot of a page with a form: %s", got)
	}
	for _, broken := range []string{`{`, `[]`, `"x"`, `{"a":"\ud800"}`, `{"a":1e999}`, strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60)} {
		p.Extra[Name] = json.RawMessage(broken)
		plain := guide()
		if got, want := Snapshot(p), Snapshot(plain); !bytes.Equal(got, want) {
			t.Errorf("after the invalid original %.20s, the snapshot is %s", broken, got)
		}
	}
}

func TestSensitive(t *testing.T) {
	for snapshot, want := range map[string][]string{
		`{"page":"x","ai_context":"sensitive"}`:                                              {"sensitive"},
		`{"page":"x","ai_context":["personal","other"]}`:                                     {"personal"},
		`{"page":"x","sections":[{"groups":[{"fields":[{"context":"Personal, public"}]}]}]}`: {"personal"},
		`{"page":"x","sections":[{"context":"sensitive"},{"context":"personal"}]}`:           {"personal", "sensitive"},
		`{"page":"x","context":"insensitive","title":"sensitive"}`:                           nil,
	} {
		p := guide()
		p.Tags, p.Schema = nil, nil
		p.Extra = map[string]json.RawMessage{Name: json.RawMessage(snapshot)}
		if diff := cmp.Diff(want, entryOf(p).Tags, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("tags of %s (-want +got):\n%s", snapshot, diff)
		}
		value, err := tag(site, p)
		if err != nil {
			t.Fatal(err)
		}
		if public := strings.Contains(value, "ai_snapshot"); public != (want == nil) {
			t.Errorf("the public form of %s contains %s", snapshot, value)
		}
		if !bytes.Contains(carry(site, p).Extra[Name], []byte(`"page":"x"`)) {
			t.Errorf("the snapshot %s is not carried", snapshot)
		}
	}
}

// Carry is idempotent and does not modify its page. A page read from a list equals the page
// that Carry returns.
func TestCarry(t *testing.T) {
	for seed := range uint64(40) {
		for i, p := range protocoltest.Pages(seed) {
			p.URL = canon.Absolute(site.Base, p.URL)
			switch i % 4 {
			case 1:
				p.Extra = map[string]json.RawMessage{Name: json.RawMessage(`{"page":"article","title":"\u0000 ","sections":[{"title":"` + "\u2028" + `"}]}`)}
			case 3:
				p.Extra = map[string]json.RawMessage{Name: json.RawMessage(`{"fields":[{"field":"q"}],"texts":[{"attr":"summary","text":" s "}]}`)}
			case 2:
				p.Title = strings.Repeat("x\xff", 2*maxTitle)
			}
			once := carry(site, p)
			if once == nil {
				continue
			}
			if twice := carry(site, once); !bytes.Equal(once.Canonical(), twice.Canonical()) {
				t.Fatalf("%s (-once +twice):\n%s", p.URL, cmp.Diff(once, twice))
			}
			e, nulls, err := decodeEntry(entryOf(p).append(nil))
			if err != nil || nulls != nil {
				t.Fatalf("%s: %v, %q", p.URL, err, nulls)
			}
			if read := e.page(); !bytes.Equal(once.Canonical(), read.Canonical()) {
				t.Fatalf("%s (-carried +read):\n%s", p.URL, cmp.Diff(once, read))
			}
		}
	}
}

func TestSentences(t *testing.T) {
	long := strings.Repeat("word ", 100)
	for in, want := range map[string]string{
		"":                                "",
		"One. Two three. Four five. Six.": "One. Two three.",
		"Is it? Yes! No.":                 "Is it? Yes!",
		"Version 1.2 of it is out now":    "Version 1.2 of it is out now",
		"这是一句。这是二句。这是三句。": "这是一句。这是二句。",
		"a  b\n\nc":              "a b c",
		long:                     strings.TrimSpace(long[:294]) + "…",
		strings.Repeat("é", 400): strings.Repeat("é", 299) + "…",
	} {
		if got := sentences(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
