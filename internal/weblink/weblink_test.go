package weblink_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/weblink"
)

const json = "application/json"

func parse(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// targets returns the targets of the links with a relation and a media type.
func targets(links []weblink.Link, rel, typ string) []string {
	var out []string
	for _, l := range links {
		if l.Is(rel, typ) {
			out = append(out, l.URL)
		}
	}
	return out
}

func TestHeader(t *testing.T) {
	at := parse(t, "https://example.com/en/")
	for _, c := range []struct {
		name   string
		fields []string
		want   []string // targets of index links of JSON
	}{
		{"plain", []string{`</list.json>; rel="index"; type="application/json"`}, []string{"https://example.com/list.json"}},
		{"several in one field", []string{`<a>; rel=index; type=application/json, <b>;rel="index";type="application/json"`}, []string{"https://example.com/en/a", "https://example.com/en/b"}},
		{"several fields", []string{`<a>; rel=index; type=application/json`, `</b>; rel=index; type=application/json`}, []string{"https://example.com/en/a", "https://example.com/b"}},
		{"any order, any case, any space", []string{`<a> ;TYPE = "Application/JSON; charset=utf-8" ; Rel = Index`}, []string{"https://example.com/en/a"}},
		{"several relations", []string{`<a>; rel="start INDEX up"; type="application/json"`}, []string{"https://example.com/en/a"}},
		{"commas and semicolons inside", []string{`<a,b;c>; title="x, <y>; rel=z"; rel="index"; type="application/json", <d>; rel=index; type=application/json`}, []string{"https://example.com/en/a,b;c", "https://example.com/en/d"}},
		{"escapes in quotes", []string{`<a>; title="\"; rel=\"no"; rel=index; type=application/json`}, []string{"https://example.com/en/a"}},
		{"the first of several parameters counts", []string{`<a>; rel=index; rel=next; type=application/json`, `<b>; rel=next; rel=index; type=application/json`}, []string{"https://example.com/en/a"}},
		{"a parameter without a value", []string{`<a>; crossorigin; rel=index; type=application/json`}, []string{"https://example.com/en/a"}},
		{"empty elements", []string{`, ,<a>; rel=index; type=application/json,,`}, []string{"https://example.com/en/a"}},
		{"another context", []string{`<a>; rel=index; type=application/json; anchor="/x"`}, nil},
		{"another type", []string{`<a>; rel=index; type="text/html"`, `<b>; rel=index`}, nil},
		{"another relation", []string{`<a>; rel="indexes"; type="application/json"`}, nil},
		{"no brackets", []string{`https://example.com/a; rel=index; type=application/json`}, nil},
		{"open bracket", []string{`<a; rel=index; type=application/json`}, nil},
		{"open quote", []string{`<a>; type=application/json; rel="index`}, []string{"https://example.com/en/a"}},
		{"a syntax error after the first link", []string{`<a>; rel=index; type=application/json, b <c>; rel=index; type=application/json`}, []string{"https://example.com/en/a"}},
		{"another scheme", []string{`<javascript:x>; rel=index; type=application/json`, `<ftp://x/>; rel=index; type=application/json`}, nil},
		{"another host", []string{`<//other.example/l>; rel=index; type=application/json`}, []string{"https://other.example/l"}},
		{"empty target", []string{`<>; rel=index; type=application/json`}, []string{"https://example.com/en/"}},
	} {
		got := targets(weblink.Header(http.Header{"Link": c.fields}, at), "index", json)
		if !cmp.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestHeaderWithoutBase(t *testing.T) {
	got := targets(weblink.Header(http.Header{"Link": {`</a>; rel=up, <https://example.com/b>; rel=up`}}, nil), "up", "")
	if want := []string{"https://example.com/b"}; !cmp.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestHTMLLinks(t *testing.T) {
	for _, c := range []struct{ name, doc, want string }{
		{"plain", `<link rel="alternate" type="application/json" href="llm.json">`, "https://example.com/a/llm.json"},
		{"xhtml, case, entities", `<LINK REL='Alternate' TYPE=application/json HREF='/l?a=1&amp;b=2' />`, "https://example.com/l?a=1&b=2"},
		{"base after it", `<head><link rel=alternate type=application/json href=x><base href="/other/"></head>`, "https://example.com/other/x"},
		{"two bases", `<base href="/one/"><base href="/two/"><link rel=alternate type=application/json href=x>`, "https://example.com/one/x"},
		{"an invalid base", `<base href="data:,x"><link rel=alternate type=application/json href=x>`, "https://example.com/a/x"},
		{"a base with only a target attribute", `<base target=_top><base href="/b/"><link rel=alternate type=application/json href=x>`, "https://example.com/b/x"},
		{"in a comment", `<!-- <link rel=alternate type=application/json href=x> -->`, ""},
		{"in a script", `<script>"<link rel=alternate type=application/json href=x>"</script>`, ""},
		{"in the body", `<head></head><body><link rel=alternate type=application/json href=x>`, ""},
		{"beyond the first MiB", "<!--" + strings.Repeat(" ", 1<<20) + `--><link rel=alternate type=application/json href=x>`, ""},
		{"no target", `<link rel=alternate type=application/json>`, ""},
		{"empty target", `<link rel=alternate type=application/json href="">`, ""},
		{"a duplicate attribute", `<link rel=alternate rel=next type=application/json href=x href=y>`, "https://example.com/a/x"},
		{"also a stylesheet", `<link rel=stylesheet href=s><link rel="x alternate" type=application/json href=y>`, "https://example.com/a/y"},
	} {
		got := targets(weblink.HTML(strings.NewReader(c.doc), parse(t, "https://example.com/a/")).Links, "alternate", json)
		if want := strings.Fields(c.want); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
	}
}

func TestHTML(t *testing.T) {
	const doc = `<!doctype html><html><head><title><meta name=no></title>
<meta charset=utf-8><meta name=Robots content="noindex"><meta property="og:title" content="A &amp; B"><meta name=empty>
<link rel="Alternate feed" type="Application/RSS+XML; charset=utf-8" title="All &lt;posts&gt;" href=feed>
<script type="application/ld+json">{"name": "a &amp; <b>"}</script><script type="application/ld+json"></script><script>x</script>
</head><body><meta name=late><script type="application/ld+json">{}</script>`
	at := parse(t, "https://example.com/")
	want := weblink.Head{
		Base:  at,
		Links: []weblink.Link{{URL: "https://example.com/feed", Rel: []string{"alternate", "feed"}, Type: "application/rss+xml", Title: "All <posts>"}},
		Metas: []weblink.Meta{{"robots", "noindex"}, {"og:title", "A & B"}, {"empty", ""}},
		Data:  []string{`{"name": "a &amp; <b>"}`},
	}
	if d := cmp.Diff(want, weblink.HTML(strings.NewReader(doc), at)); d != "" {
		t.Error("(-want +got):\n" + d)
	}
}

func TestIsHTML(t *testing.T) {
	for value, want := range map[string]bool{
		"text/html": true, "Text/HTML; charset=utf-8": true, "application/xhtml+xml": true,
		"": false, "text/html-sandboxed": false, "application/json": false, "text/html; charset": true,
	} {
		if got := weblink.IsHTML(http.Header{"Content-Type": {value}}); got != want {
			t.Errorf("%q: %t, want %t", value, got, want)
		}
	}
}

// isLink fails if a link does not match the description of [weblink.Link].
func isLink(t *testing.T, l weblink.Link) {
	t.Helper()
	if u, err := canon.URL(l.URL); err != nil || u != l.URL {
		t.Fatalf("the target is %q", l.URL)
	}
	for _, rel := range l.Rel {
		if rel == "" || !l.Is(rel, "") || !l.Is(rel, l.Type) {
			t.Fatalf("relation %q of %+v", rel, l)
		}
	}
}

func FuzzHeader(f *testing.F) {
	f.Add(`</llm-pages.json>; rel="index"; type="application/json", <a>; title="\",<b>"; rel=x`)
	f.Add(`<a>;;rel==;"`)
	f.Fuzz(func(t *testing.T, field string) {
		at := parse(t, "https://example.com/en/")
		once := weblink.Header(http.Header{"Link": {field}}, at)
		for _, l := range once {
			isLink(t, l)
		}
		// Each field is independent of the others.
		twice := weblink.Header(http.Header{"Link": {field, field}}, at)
		if d := cmp.Diff(append(once, once...), twice); d != "" {
			t.Fatal(d)
		}
	})
}

func FuzzHTML(f *testing.F) {
	f.Add(`<base href="//b"><link title=OpenFeeder rel=alternate href="%zz"><meta name=openfeeder content=y><link rel=x href=z>`)
	f.Add(`<script type=application/ld+json><!-- <script> {"a":1} </script>`)
	f.Fuzz(func(t *testing.T, doc string) {
		h := weblink.HTML(strings.NewReader(doc), parse(t, "https://example.com/en/"))
		for _, l := range h.Links {
			isLink(t, l)
		}
		for _, m := range h.Metas {
			if m.Name == "" || m.Name != strings.ToLower(m.Name) {
				t.Fatalf("meta element %+v", m)
			}
		}
	})
}

func ExampleHeader() {
	at := &url.URL{Scheme: "https", Host: "example.com", Path: "/post/"}
	h := http.Header{"Link": {`<llm.json>; rel="alternate"; type="application/json", </about>; rel=author`}}
	for _, l := range weblink.Header(h, at) {
		fmt.Println(l.URL, l.Rel)
	}
	// Output:
	// https://example.com/post/llm.json [alternate]
	// https://example.com/about [author]
}
