package extract

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

func extractPage(t *testing.T, url, doc string) *Result {
	t.Helper()
	res, err := HTML(t.Context(), []byte(doc), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestMeta(t *testing.T) {
	res := extractPage(t, "https://example.com/news/a?utm=1", `<!DOCTYPE html><html lang=en_gb><head><title>A long day | The Site</title>
<base href="https://example.com/other/">
<link rel=canonical href="/news/a"><meta name=description content="Meta &amp;amp; more"><meta property=og:site_name content="The Site">
<meta name=robots content="NOINDEX, follow"><meta property="article:tag" content=one><meta property="article:tag" content=two>
<script type="application/ld+json">{"@context":"https://schema.org","@graph":[{"@type":"NewsArticle","headline":"A long day","author":[{"name":"Ann B."},{"name":"Carl"}],
"datePublished":"2024-03-01T10:00:00+02:00","dateModified":"2024-03-02","articleSection":["Sport"]},{"@type":"WebSite","name":"The Site"}]}</script>
<script type="application/ld+json">{broken</script></head>
<body><main><h1>A long day</h1><p>By Ann</p><p>The text <a href=x>here</a>.</p></main>`)
	p := res.Page
	want := &millrace.Page{
		URL: "https://example.com/news/a?utm=1", Title: "A long day", Description: "Meta & more", Author: "Ann B., Carl",
		Published: time.Date(2024, 3, 1, 8, 0, 0, 0, time.UTC), Modified: time.Date(2024, 3, 2, 0, 0, 0, 0, time.UTC),
		Language: "en-GB", Section: "Sport", Tags: []string{"one", "two"}, Kind: millrace.Article, Access: millrace.Access{NoIndex: true},
		Schema: p.Schema, Known: known | millrace.FieldModified, Detail: millrace.DetailBlocks,
		Blocks: []block{{Type: "text", Text: "By Ann"}, {Type: "text", Text: "The text here.", Spans: []span{{Type: "link", Start: 9, End: 13, URL: "https://example.com/other/x"}}}},
	}
	if d := cmp.Diff(want, p); d != "" {
		t.Error(d)
	}
	if len(p.Schema) != 2 || !strings.HasPrefix(string(p.Schema[1]), `{"@context":"https://schema.org","@type":"WebSite"`) {
		t.Errorf("schema %s", p.Schema)
	}
	if res.Canonical != "https://example.com/news/a" {
		t.Errorf("canonical %q", res.Canonical)
	}
	sources := map[string]string{
		"title": "h1", "description": "meta description", "author": "json-ld author", "published": "json-ld datePublished", "modified": "json-ld dateModified",
		"language": "html lang", "section": "json-ld articleSection", "tags": "meta article:tag", "kind": "declared", "schema": "json-ld", "access": "meta robots",
	}
	if d := cmp.Diff(sources, res.Sources); d != "" {
		t.Error(d)
	}
}

func TestNothingInvented(t *testing.T) {
	res := extractPage(t, "https://example.com/a", `<title>T</title><p>On January 5, 2020 we met. <time datetime=2020-01-05>then</time></p><p>Written by someone@example.com, © 2024</p>`)
	p := res.Page
	if !p.Published.IsZero() || !p.Modified.IsZero() || p.Author != "" || p.Language != "" || p.Section != "" || p.Tags != nil || p.Summary != "" {
		t.Errorf("invented: %+v", p)
	}
	if p.Known.Has(millrace.FieldModified) || p.Known.Has(millrace.FieldSummary) || !p.Known.Has(millrace.FieldPublished) {
		t.Errorf("known %b", p.Known)
	}
}

func TestNoDescription(t *testing.T) {
	for _, content := range []string{"None", "{{ page.description }}"} {
		p := extractPage(t, "https://example.com/a", `<title>T</title><meta name=description content="`+content+`"><p>Text that stands on the page.`).Page
		if p.Description != "" {
			t.Errorf("%q", p.Description)
		}
	}
}

func TestTitle(t *testing.T) {
	for _, c := range []struct{ name, doc, want string }{
		{"confirmed", `<title>Site: How to mill</title><h1>Site</h1><p>x</p><h1>How to mill</h1>`, "How to mill"},
		{"suffix", `<title>How to mill corn - The Site</title><p>x`, "How to mill corn"},
		{"site name", `<meta property=og:site_name content=Mill><title>Mill | Corn</title><p>x`, "Corn"},
		{"open graph", `<meta property=og:title content="Corn &amp; rye"><title>x</title><p>x`, "Corn & rye"},
		{"permalink", `<title>Corn</title><h1>Corn<a href="#corn">¶</a></h1><p>x`, "Corn"},
		{"only heading", `<h1>Corn</h1><p>x`, "Corn"},
		{"hyphen in a word", `<title>Corn-meal</title><p>x`, "Corn-meal"},
		{"none", `<p>x`, ""},
		{"head before the site", `<title>Corn meal - The Mill Manual</title><h1>The Mill Manual</h1><h2>Corn meal</h2><p>x`, "Corn meal"},
		{"the site is what is left", `<meta property=og:title content="Corn"><title>Mill: Corn</title><h1>Mill</h1><p>x`, "Corn"},
		{"reworded", `<title>Six ways to grind corn | The Mill</title><h1>How we grind our corn, six ways</h1><p>x`, "How we grind our corn, six ways"},
		{"a label in it", `<title>Corn meal | The Mill</title><h1><span>Blog:</span> Corn meal</h1><p>x`, "Corn meal"},
		{"capitals", `<title>How to grind corn</title><h1>HOW TO GRIND CORN</h1><p>x`, "How to grind corn"},
		{"a site's name above a heading", `<title>DNS | The Mill v1.2 Documentation</title><header><h1>The Mill v1.2 documentation</h1></header><h2>DNS<span><a href=#dns>#</a></span></h2><p>x`, "DNS"},
		{"a link home", `<title>Corn — The Mill</title><h1><a href=index.html>The Mill</a></h1><div><h1>Corn<a href=#c>¶</a></h1><p>x</div>`, "Corn"},
		{"a link home, and nothing else", `<title>The Mill</title><h1><a href=/>The Mill</a></h1><p>x`, "The Mill"},
		{"outside, but it is the title", `<title>Corn meal</title><div><h1>Corn meal</h1></div><main><h1>Step one of corn</h1><p>x</main>`, "Corn meal"},
		{"teasers with headings", `<title>All corn news | The Mill</title><h1>Corn news</h1><article><h1>Rye</h1></article><article><h1>Oats</h1></article>`, "Corn news"},
		{"sections with numbers", `<title>DELETE</title><h1>1. Overview</h1><p>x</p><h1>2. DELETE in a trigger</h1><p>x`, "DELETE"},
		{"a long heading with the word", `<title>DELETE</title><h1>Restrictions on DELETE in a trigger</h1><p>x`, "DELETE"},
		{"a sign that is no link", `<title>Corn meal</title><h1>Corn meal ¶</h1><p>x`, "Corn meal"},
		{"a sign of a name", `<title>Mills in C#</title><h1>Mills in C#</h1><p>x`, "Mills in C#"},
		{"second level", `<title>SELECT</title><h2>SELECT</h2><p>x`, "SELECT"},
	} {
		res := extractPage(t, "https://example.com/", c.doc)
		if res.Page.Title != c.want {
			t.Errorf("%s: %q, want %q", c.name, res.Page.Title, c.want)
		}
		if strings.Contains(res.Page.Text(), c.want) && c.want != "" && strings.HasPrefix(res.Sources["title"], "h") {
			t.Errorf("%s: the text also contains the title", c.name)
		}
	}
}

func TestKind(t *testing.T) {
	links := "<main><ul>" + strings.Repeat(`<li><a href=/post>A post with a title</a></li>`, 12) + "</ul></main>"
	prose := "<main>" + strings.Repeat("<p>Many words of plain text stand here, one after the other.</p>", 30) + "</main>"
	for _, c := range []struct {
		url, doc string
		want     millrace.PageKind
	}{
		{"https://example.com/tags/corn/", links, millrace.Archive},
		{"https://example.com/page/2/", links, millrace.Archive},
		{"https://example.com/category/corn/page/3", links, millrace.Archive},
		{"https://example.com/tags/corn/", prose, millrace.Article}, // not a list, despite its address
		{"https://example.com/x", "<body class='archive category'>" + links, millrace.Archive},
		{"https://example.com/x", links, millrace.Listing},
		{"https://example.com/x", prose, millrace.Article},
		{"https://docs.example.com/x", prose, millrace.Documentation},
		{"https://example.com/x", `<meta name=generator content="Sphinx 7">` + prose, millrace.Documentation},
		{"https://example.com/x", `<script type="application/ld+json">{"@type":"Product","name":"x"}</script>` + prose, millrace.Product},
		{"https://example.com/x", `<meta name=generator content="Discourse 3.3">` + prose, millrace.Forum},
		{"https://example.com/x", `<p>short`, ""},
	} {
		if got := extractPage(t, c.url, c.doc).Page.Kind; got != c.want {
			t.Errorf("%s %.60s: %q, want %q", c.url, c.doc, got, c.want)
		}
	}
}

func TestBase(t *testing.T) {
	res, err := HTML(t.Context(), []byte(`<p>See <a href="c.html">c</a> and <a href="#d">d</a>.`), "/a/b.html", &Options{Base: "https://example.com/"})
	if err != nil {
		t.Fatal(err)
	}
	spans := res.Page.Blocks[0].Spans
	if res.Page.URL != "/a/b.html" || spans[0].URL != "https://example.com/a/c.html" || spans[1].URL != "https://example.com/a/b.html#d" {
		t.Errorf("%s %+v", res.Page.URL, spans)
	}
}

func TestEmpty(t *testing.T) {
	for _, doc := range []string{"", " ", "<html>", "<body><nav><a href=x>Home</a></nav></body>", "<script>x</script>", "<frameset><frame src=x></frameset>"} {
		res := extractPage(t, "https://example.com/", doc)
		if len(res.Page.Blocks) != 0 || res.Reason == nil {
			t.Errorf("%q: %+v, reason %v", doc, res.Page.Blocks, res.Reason)
		}
	}
}

// TestLocate finds the content in the page layouts of common generators.
func TestLocate(t *testing.T) {
	text := strings.Repeat("<p>Plain text of the page, with commas, and <a href=x>a link</a> in it.</p>", 5)
	for name, doc := range map[string]string{
		"main":      `<header><nav><a href=/>Home</a></nav>LEAK</header><main>` + text + `</main><footer>LEAK</footer>`,
		"article":   `<div class=menu><a href=/>LEAK</a> <a href=/>b</a> <a href=/>c</a></div><article><header><h1>T</h1><p>LEAK</p></header>` + text + `<footer>LEAK</footer></article><aside>LEAK</aside>`,
		"wordpress": `<div id=page><header id=masthead>LEAK</header><div id=content><div id=primary><main><article class="post hentry"><div class=entry-content>` + text + `</div></article><nav class=post-navigation>LEAK</nav><div id=comments class=comments-area><ol class=comment-list><li>LEAK</li></ol></div></main></div><aside id=secondary class=widget-area>LEAK</aside></div></div>`,
		"sphinx":    `<div class=related role=navigation>LEAK</div><div class=document><div class=documentwrapper><div class=bodywrapper><div class=body role=main><section id=x>` + text + `</section></div></div></div><div class=sphinxsidebar role=navigation>LEAK</div></div><div class=footer role=contentinfo>LEAK</div>`,
		"mediawiki": `<div id=mw-page-base></div><div id=content role=main><div id=bodyContent><div id=mw-content-text><div class=mw-parser-output>` + text + `</div></div></div></div><div id=mw-navigation><div role=navigation>LEAK</div></div><div id=footer role=contentinfo>LEAK</div>`,
		"asp.net":   `<form action=x><div role=navigation>LEAK</div><div>` + text + `</div><div><input><select><option>LEAK</select></div></form>`,
		"consent":   `<div id=onetrust-consent-sdk>` + strings.Repeat("<p>We use LEAK and more.</p>", 40) + `</div><div>` + text + `</div>`,
		"dialog":    `<div role=dialog>` + strings.Repeat("<p>We use LEAK and more.</p>", 40) + `</div><div>` + text + `</div>`,
		"table":     `<table><tr><td><a href=1>LEAK</a><br><a href=2>b</a><br><a href=3>c</a></td><td>` + text + `</td></tr></table>`,
	} {
		res := extractPage(t, "https://example.com/", "<title>T</title><body>"+doc)
		if got := res.Page.Text(); strings.Contains(got, "LEAK") || strings.Count(got, "Plain text") != 5 {
			t.Errorf("%s: root %s, dropped %v:\n%s", name, res.Root, res.Dropped, got)
		}
	}
}

func TestDropped(t *testing.T) {
	res := extractPage(t, "https://example.com/", `<body><div id=side role=navigation>`+strings.Repeat("<a href=x>one two</a> ", 10)+`</div><main><p>The text of the page.</p></main>`)
	want := []Dropped{{Selector: "div#side", Reason: "role navigation", Words: 20}}
	if d := cmp.Diff(want, res.Dropped); d != "" {
		t.Error(d)
	}
	if res.Root != "body main" {
		t.Errorf("root %q", res.Root)
	}
}
