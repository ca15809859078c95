package extract

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSection(t *testing.T) {
	ld := func(steps string) string {
		return `<script type="application/ld+json">{"@type":"BreadcrumbList","itemListElement":[` + steps + `]}</script><h1>Corn</h1>` + text
	}
	const (
		home  = `{"@type":"ListItem","position":1,"name":"Home","item":"https://example.com/"}`
		grain = `{"@type":"ListItem","position":2,"name":"Grain &amp; more","item":{"@id":"https://example.com/grain"}}`
		corn  = `{"@type":"ListItem","position":3,"name":"Corn"}`
	)
	for _, c := range []struct{ name, url, doc, want, source string }{
		{"declared", "/a", `<meta property=article:section content=Grain>` + ld(home+`,{"position":2,"name":"Mills","item":"/mills"},`+corn), "Grain", "meta article:section"},
		{"data", "/a", ld(home + "," + grain + "," + corn), "Grain & more", "json-ld breadcrumb"},
		{"data, in disorder", "/a", ld(corn + "," + grain + "," + home), "Grain & more", "json-ld breadcrumb"},
		{"data with the page's address", "/a", ld(home + "," + grain + `,{"position":3,"item":{"@id":"/a#top","name":"All of it"}}`), "Grain & more", "json-ld breadcrumb"},
		{"data without the page", "/a", ld(home + "," + grain), "Grain & more", "json-ld breadcrumb"},
		{"data of the page", "/a", `<script type="application/ld+json">{"@type":"WebPage","breadcrumb":{"@type":"BreadcrumbList","itemListElement":[` + home + "," + grain + "," + corn + `]}}</script><h1>Corn</h1>` + text, "Grain & more", "json-ld breadcrumb"},
		{"data that lead from the front alone", "/a", ld(home + "," + corn), "", ""},
		{"data of another kind", "/a", strings.Replace(ld(home+","+grain+","+corn), "BreadcrumbList", "ItemList", 1), "", ""},
		{"another list of links", "/a", `<ul class=menu><li><a href=/grain>Grain</a></ul><h1>Corn</h1>` + text, "", ""},
		{"a category", "/a", `<article><h1>Corn</h1>` + text + `<a rel="category tag" href=/grain>Grain</a><a rel=tag href=/t/x>x</a></article>`, "Grain", "rel category"},
		{"a category of another page", "/a", `<h1>Corn</h1>` + text + `<aside><a rel="category tag" href=/rye>Rye</a></aside>`, "", ""},
		{"a home page", "/", ld(home + "," + grain), "", ""},
	} {
		res := extractPage(t, "https://example.com"+c.url, c.doc)
		if got := res.Page.Section; got != c.want || res.Sources["section"] != c.source {
			t.Errorf("%s: %q from %q, want %q from %q", c.name, got, res.Sources["section"], c.want, c.source)
		}
	}
}

func TestTags(t *testing.T) {
	links := func(n int) string {
		return strings.Repeat(`<a rel=tag href=/t/x>x`, n-1) + `<a rel=tag href=/t/corn>#corn meal</a>`
	}
	for _, c := range []struct {
		name, doc string
		want      []string
		source    string
	}{
		{"declared", `<meta property=article:tag content=corn><h1>Corn</h1>` + text + links(2), []string{"corn"}, "meta article:tag"},
		{"links", `<meta name=keywords content="mill, best mill"><h1>Corn</h1>` + text + links(2), []string{"x", "corn meal"}, "rel tag"},
		{"keywords", `<meta name=keywords content="mill, best mill"><h1>Corn</h1>` + text, []string{"mill", "best mill"}, "meta keywords"},
		{"data", `<script type="application/ld+json">{"@type":"Article","keywords":["corn","mill, leat"]}</script><h1>Corn</h1>` + text + links(2), []string{"corn", "mill", "leat"}, "json-ld keywords"},
		{"all there are", `<h1>Corn</h1>` + text + links(40), nil, ""},
		{"another page's", `<h1>Corn</h1>` + text + `<article><h3><a href=/b>How to grind the rye</a></h3>` + links(2) + `</article>`, nil, ""},
		{"no name", `<h1>Corn</h1>` + text + `<a rel=tag href=/u>Uncategorized</a>`, nil, ""},
	} {
		res := extractPage(t, "https://example.com/a", c.doc)
		if d := cmp.Diff(c.want, res.Page.Tags); d != "" || res.Sources["tags"] != c.source {
			t.Errorf("%s: from %q, want %q\n%s", c.name, res.Sources["tags"], c.source, d)
		}
	}
}
