package extract

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

func TestRepaired(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1}`:                           `{"a":1}`,
		"{\"a\":\"one\ntwo\tthree\r\x01\"}": `{"a":"one\ntwo\tthree"}`,
		`{"a":[1,2,],}`:                     `{"a":[1,2]}`,
		`{"a":"x" "b":2}`:                   "", // ambiguous
		`{"a":"he said "no""}`:              "",
		`{'a':1}`:                           "",
		`{"a":1`:                            "",
		``:                                  "",
		`x`:                                 "",
	} {
		if got := string(repaired(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzRepaired(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"a":[1,],}`, "{\"a\":\"\n\\", `{"a":1},{"b":2}`, `{&quot;a&quot;:1}`, `/*`, `"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if out := repaired(s); out != nil && !json.Valid(out) {
			t.Fatalf("%q became %q", s, out)
		}
	})
}

// TestSchemaElements checks which elements can contain the data.
func TestSchemaElements(t *testing.T) {
	const data = `{"@type":"Article","headline":"Corn","author":"Ann Bee"}`
	for name, doc := range map[string]string{
		"a script":               `<script type="application/ld+json">` + data + `</script>`,
		"a script in the body":   `<body><p>x</p><script type="application/ld+json; charset=utf-8"><!--` + data + `--></script>`,
		"a graph":                `<script type="application/ld+json">{"@context":"https://schema.org","@graph":[` + data + `,{"@type":"Person","name":"Ann Bee"}]}</script>`,
		"a meta element":         `<meta name="script:ld+json" content='` + data + `'>`,
		"broken beside the good": `<script type="application/ld+json">{"@type":</script><script type="application/ld+json">` + data + `</script>`,
	} {
		res := extractPage(t, "https://example.com/a", doc+`<h1>Corn</h1>`+text)
		if p := res.Page; p.Author != "Ann Bee" || p.Kind != millrace.Article || len(p.Schema) == 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestProduct extracts a page whose JSON-LD alone has the facts of its product.
func TestProduct(t *testing.T) {
	res := extractPage(t, "https://example.com/p/mill", `<title>Hand mill | The Mill</title><script type="application/ld+json">{"@context":"https://schema.org","@type":"Product",
"name":"Hand mill","description":"<p>Grinds corn</p><ul><li>and rye</li></ul>","sku":"M1","brand":{"name":"Mill"},"offers":{"price":"9.00","priceCurrency":"EUR"},
"review":{"@type":"Review","author":"Ann Bee","datePublished":"2020-03-05"}}</script><div id=app></div>`)
	p := res.Page
	if p.Title != "Hand mill" || p.Description != "Grinds corn and rye" || p.Kind != millrace.Product || len(p.Schema) != 1 || p.Author != "" || !p.Published.IsZero() {
		t.Errorf("%+v", p)
	}
	want := []block{{Type: "text", Text: "Grinds corn and rye"}, {Type: "definitions", Items: []item{{Term: "brand", Text: "Mill"}, {Term: "sku", Text: "M1"}}}}
	want[1].Items = want[1].Items[1:] // the page's title contains the name
	if d := cmp.Diff(want, p.Blocks); d != "" || res.Reason != nil || res.Sources["blocks"] != "json-ld Product" {
		t.Errorf("reason %v\n%s", res.Reason, d)
	}
}

// TestProductFacts checks that only facts that the text lacks are added.
func TestProductFacts(t *testing.T) {
	const visible = `<h1>Hand mill</h1><p>This mill grinds corn, rye and oats. It is made of beech and of two stones from the quarry behind the house.</p>`
	for _, c := range []struct{ name, data, body, want string }{
		{"all is shown", `"description":"This mill grinds corn, rye and oats.","brand":"Leat","offers":{"price":"1299.00","priceCurrency":"EUR","availability":"https://schema.org/InStock"}`, visible + `<p>By Leat. Only 1.299,00 €, in stock.</p>`, ""},
		{"a brand and a number", `"brand":{"@type":"Brand","name":"Leat"},"gtin13":"4006381333931"`, visible, "brand: Leat, gtin13: 4006381333931"},
		{"a template", `"sku":"{{ sku }}"`, visible, ""},
		{"most of a description", `"description":"The mill grinds corn, rye and oats."`, visible, ""},
		{"another description", `"description":"<p>Turns by hand or by water, day and night.</p>"`, visible, "Turns by hand or by water, day and night."},
	} {
		doc := `<script type="application/ld+json">{"@type":"Product","name":"Hand mill",` + c.data + `}</script><main>` + c.body + `</main>`
		var got []string
		for _, b := range extractPage(t, "https://example.com/p/mill", doc).Page.Blocks {
			if b.Type == "text" && !strings.Contains(c.body, b.Text) {
				got = append(got, b.Text)
			}
			for _, it := range b.Items {
				got = append(got, it.Term+": "+it.Text)
			}
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
	}
	two := `<script type="application/ld+json">[{"@type":"Product","name":"Hand mill","sku":"A7"},{"@type":"Product","name":"Sieve","sku":"B7"}]</script>` + visible
	if p := extractPage(t, "https://example.com/p/mill", two).Page; strings.Contains(p.Text(), "7") {
		t.Errorf("of two: %+v", p.Blocks)
	}
}

// TestDeclaredList extracts a page that declares the items of a list. The fields of the items are
// not those of the page, unless the page is one of them.
func TestDeclaredList(t *testing.T) {
	doc := `<title>Grain</title><script type="application/ld+json">[`
	for i, name := range []string{"Corn and more", "Rye and more", "Oats and more", "Wheat and more"} {
		if i > 0 {
			doc += ","
		}
		doc += `{"@type":"Article","headline":"` + name + `","description":"Of ` + name + `","author":"Ann Bee","datePublished":"2020-03-05"}`
	}
	doc += `]</script>`
	if p := extractPage(t, "https://example.com/a", doc+`<h1>Grain</h1>`+text).Page; p.Author != "" || !p.Published.IsZero() || p.Description != "" {
		t.Errorf("%+v", p)
	}
	want := time.Date(2020, 3, 5, 0, 0, 0, 0, time.UTC)
	if p := extractPage(t, "https://example.com/a", `<meta property=og:title content="Oats and more">`+doc+text).Page; p.Author != "Ann Bee" || !p.Published.Equal(want) || p.Description != "Of Oats and more" {
		t.Errorf("%+v", p)
	}
}

func TestLanguage(t *testing.T) {
	german := "<p>Das Wasser treibt das Rad der alten Mühle, und das Rad dreht den schweren Stein, der das Korn zu Mehl mahlt. Früher brachten die Bauern aus den Dörfern ringsum ihr Getreide hierher und warteten, bis der Müller fertig war.</p>"
	for _, c := range []struct{ name, doc, want, source string }{
		{"declared", `<html lang=de_at>` + text, "de-AT", "html lang"},
		{"declared for a part", `<meta http-equiv=content-language content="de, en">` + text, "de", "meta content-language"},
		{"no tag", `<html lang="">` + german + german, "de", "detected"},
		{"English", text, "en", "detected"},
		{"short", `<p>Das Wasser treibt das Rad.</p>`, "", ""},
		{"code", `<pre>` + german + german + `</pre>`, "", ""},
	} {
		res := extractPage(t, "https://example.com/a", c.doc)
		if got := res.Page.Language; got != c.want || res.Sources["language"] != c.source {
			t.Errorf("%s: %q from %q, want %q from %q", c.name, got, res.Sources["language"], c.want, c.source)
		}
	}
}
