package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
	"github.com/millrace/millrace/internal/jsonio"
)

var update = flag.Bool("update", false, "write the golden files")

const address = "https://mill.example/join/us.html"

// extracted returns the snapshot that extraction adds to a page.
func extracted(t testing.TB, source, pageURL string) json.RawMessage {
	t.Helper()
	rules, err := extract.NewRules(&extract.RulesOptions{Extra: Extra()})
	if err != nil {
		t.Fatal(err)
	}
	res, err := extract.HTML(t.Context(), []byte(source), pageURL, &extract.Options{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	if !res.Page.Known.Has(millrace.FieldExtra) {
		t.Errorf("the snapshot has members other than fields")
	}
	return res.Page.Extra[ExtraKey]
}

func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			page := a.Files[0].Data
			raw := extracted(t, string(page), address)
			var indented bytes.Buffer
			if raw != nil {
				if err := json.Indent(&indented, raw, "", "\t"); err != nil {
					t.Fatal(err)
				}
				indented.WriteByte('\n')
				again, err := jsonio.Canonical(raw, nil)
				if err != nil || !bytes.Equal(again, raw) {
					t.Errorf("the snapshot is not canonical (%v): %s", err, raw)
				}
			}
			if bytes.Contains(raw, []byte("secret")) {
				t.Errorf("the snapshot contains hidden content: %s", raw)
			}
			findings, err := Lint(t.Context(), page, address)
			if err != nil {
				t.Fatal(err)
			}
			var lint strings.Builder
			for _, f := range findings {
				fmt.Fprintf(&lint, "%d:%d %s %s\n", f.Line, f.Column, f.Rule, f.Path)
			}
			want := map[string]string{"snapshot.json": indented.String(), "lint": lint.String()}
			for i := range a.Files[1:] {
				f := &a.Files[i+1]
				if diff := cmp.Diff(string(f.Data), want[f.Name]); diff != "" && !*update {
					t.Errorf("%s (-golden +is):\n%s", f.Name, diff)
				}
				f.Data = []byte(want[f.Name])
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(a), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestPageName(t *testing.T) {
	const body = `<body><section data-ai-section="s"></section>`
	for _, c := range []struct{ head, url, want string }{
		{`<meta property="og:type" content="product">`, address, "product"},
		{`<script type="application/ld+json">{"@type":"BreadcrumbList"}</script><script type="application/ld+json">{"@type":"schema:Recipe"}</script>`, address, "Recipe"},
		{"", address, "us"},
		{"", "https://mill.example/", "home"},
		{"", "https://mill.example/join/", "join"},
		{"", "https://mill.example/.html", ".html"},
	} {
		raw := extracted(t, "<!DOCTYPE html><head>"+c.head+"</head>"+body, c.url)
		var s struct{ Page string }
		if err := json.Unmarshal(raw, &s); err != nil || s.Page != c.want {
			t.Errorf("%s %s: the page is %q, want %q (%v)", c.head, c.url, s.Page, c.want, err)
		}
	}
}

// TestNone checks which documents have no snapshot, and that the case of attribute names does
// not matter.
func TestNone(t *testing.T) {
	for source, want := range map[string]string{
		"<p>Plain.</p>": "",
		"<p>Talks of data-ai-page in its text, which is no attribute.</p>": "",
		"<p data-ai-nothing=x>There is no such attribute.</p>":             "",
		"<template><p data-ai-page=x></p></template>":                      "",
		`<p DATA-AI-PAGE="x">Upper case.</p>`:                              `{"page":"x"}`,
		`<p Data-Ai-Page="x" data-ai-page="y">Twice.</p>`:                  `{"page":"x"}`,
	} {
		if raw := string(extracted(t, source, address)); raw != want {
			t.Errorf("%s: %q, want %q", source, raw, want)
		}
	}
}

// TestRedacted checks that content marked as hidden or sensitive is in no field of a page, and
// that all other content stays.
func TestRedacted(t *testing.T) {
	a, err := txtar.ParseFile("testdata/sensitive.txtar")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := extract.NewRules(&extract.RulesOptions{Extra: Extra()})
	if err != nil {
		t.Fatal(err)
	}
	source := strings.Replace(string(a.Files[0].Data), "<p data-ai-content=\"address\"", `<script type="application/ld+json" data-ai-context="sensitive">{"@type":"Thing","name":"secret"}</script><p data-ai-content="address"`, 1)
	source += "<p>The mill has stood at the ford for three hundred years, and still grinds.</p>"
	res, err := extract.HTML(t.Context(), []byte(source), address, &extract.Options{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	page := string(res.Page.Canonical())
	if strings.Contains(page, "secret") || !strings.Contains(page, "Shown, and this.") || !strings.Contains(page, "three hundred years") {
		t.Errorf("%s", page)
	}
	if len(res.Links) != 1 || res.Links[0].URL != "https://mill.example/secret" {
		t.Errorf("links: %+v", res.Links)
	}
	content, err := extract.Content(t.Context(), []byte(source), address, &extract.Options{Rules: rules})
	if err != nil || strings.Contains(string(content.Canonical()), "secret") || !strings.Contains(content.Text(), "three hundred years") {
		t.Errorf("%s, %v", content.Canonical(), err)
	}
}

// TestRulesDrop checks that elements that the owner drops are not in the snapshot.
func TestRulesDrop(t *testing.T) {
	rules, err := extract.NewRules(&extract.RulesOptions{Extra: Extra(), Drop: []string{".gone"}})
	if err != nil {
		t.Fatal(err)
	}
	const source = `<main data-ai-page="p"><p>One two three four five six seven eight nine ten.</p><p class="gone" data-ai-content="x">secret</p></main>`
	res, err := extract.HTML(t.Context(), []byte(source), address, &extract.Options{Rules: rules})
	if err != nil || string(res.Page.Extra[ExtraKey]) != `{"page":"p"}` {
		t.Errorf("%s, %v", res.Page.Extra[ExtraKey], err)
	}
}

// TestBounds checks that a document beyond a limit has no snapshot instead of a truncated one,
// and takes no longer than others.
func TestBounds(t *testing.T) {
	nested := strings.Repeat(`<div data-ai-content="c">`, 400) + strings.Repeat("word ", 100_000)
	for name, source := range map[string]string{
		"parts":     strings.Repeat(`<p data-ai-ref="x">`, 20_000),
		"text":      `<p data-ai-content="x">` + strings.Repeat("word ", 100_000),
		"names":     `<p data-ai-page="` + strings.Repeat("x", 300_000) + `">`,
		"escapes":   "<p>" + strings.Repeat("plain ", 20_000) + `<p data-ai-content="x">` + strings.Repeat("\x01", 200_000),
		"in itself": nested,
		"blank":     strings.Repeat(`<div data-ai-content="c">`, 400) + strings.Repeat(" ", 1_000_000),
	} {
		rules, _ := extract.NewRules(&extract.RulesOptions{Extra: Extra()})
		res, err := extract.HTML(t.Context(), []byte(source), address, &extract.Options{Rules: rules})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if raw := res.Page.Extra[ExtraKey]; raw != nil || !errors.Is(res.Failed[ExtraKey], millrace.ErrTooLarge) {
			t.Errorf("%s: a snapshot of %d bytes; %s", name, len(raw), res.Failed[ExtraKey])
		}
		findings, err := Lint(t.Context(), []byte(source), address)
		if err != nil {
			t.Fatal(err)
		}
		shaped := false
		for _, f := range findings {
			shaped = shaped || f.Rule == OutputShape
		}
		if !shaped && len(findings) < maxFindings {
			t.Errorf("%s: no finding reports the invalid snapshot: %v", name, findings)
		}
	}
	deep := strings.Repeat(`<div data-ai-section="s">`, 100_000) + "end"
	if raw := extracted(t, deep, address); raw == nil || len(Validate(raw)) > 0 {
		t.Errorf("deep: %.100s", raw)
	}
	doc := must(t, "<p data-ai-page=x><p data-ai-content=a>aaa</p><p data-ai-content=b>bbb</p>")
	if _, err := Of(doc.Tree, &Options{MaxNodes: 1}); !errors.Is(err, millrace.ErrTooLarge) {
		t.Errorf("more parts than are allowed: %v", err)
	}
	if _, err := Of(doc.Tree, &Options{MaxBytes: 5}); !errors.Is(err, millrace.ErrTooLarge) {
		t.Errorf("more bytes than are allowed: %v", err)
	}
}

func must(t testing.TB, source string) *document {
	t.Helper()
	d, err := read(t.Context(), []byte(source), address)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAttributes(t *testing.T) {
	n := 0
	for _, c := range classes {
		n += len(c.names)
	}
	if n != 32 {
		t.Errorf("%d attributes", n)
	}
}

func TestValidate(t *testing.T) {
	for source, want := range map[string]string{
		`{"page":"x"}`: "",
		`{"page":"signup","title":"Create Your Account","sections":[{"name":"registration_form","fields":["email","password"],"intent":"register_user"}]}`: "",
		`{"page":"x","more":[1,{"a":true}]}`:        "",
		`{}`:                                        ": page is missing",
		`{"page":""}`:                               "/page: page is empty",
		`{"page":1}`:                                "/page: got a number, want a string",
		`{"page":"x","title":null}`:                 "/title: null; omit an absent member",
		`{"page":"x","sections":{}}`:                "/sections: got an object, want an array",
		`{"page":"x","sections":["a"]}`:             "/sections/0: got a string, want an object",
		`{"page":"x","sections":[{"groups":[{}]}]}`: "/sections/0: name is missing",
		`{"page":"x","sections":[{"name":"s","groups":[3]}]}`: "/sections/0/groups/0: got a number, want an object",
		`{"page":"x","actions":[{}]}`:                         "/actions/0: an action is empty",
		`{"page":"x","fields":[{"label":"L"}]}`:               "/fields/0: field is missing",
		`{"page":"x","ai_tags":"a"}`:                          "/ai_tags: got a string, want an array of strings",
		`{"page":"x","ai_context":["a",1]}`:                   "/ai_context/1: got a number, want a string",
		`[]`:                                                  ": a snapshot is an object, not an array",
		`{"page":"x",}`:                                       `: JSON at line 1, byte 12: invalid character '}' at start of string (expecting '"')`,
		`{"page":"x","page":"y"}`:                             ": JSON at line 1, byte 12 (/page): duplicate name",
	} {
		got := ""
		if f := Validate([]byte(source)); len(f) > 0 {
			got = f[0].Pointer + ": " + f[0].Message
		}
		if got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}
