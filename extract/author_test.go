package extract

import "testing"

func TestAuthor(t *testing.T) {
	ld := func(author, more string) string {
		return `<script type="application/ld+json">{"@type":"Article","headline":"Corn","author":` + author + more + `}</script>`
	}
	for _, c := range []struct{ name, doc, want, source string }{
		{"declared", ld(`[{"@type":"Person","name":"By Ann Bee"},"Carl Dee"]`, "") + `<h1>Corn</h1>` + text, "Ann Bee, Carl Dee", "json-ld author"},
		{"quoted", ld(`"\"Ann Bee\""`, "") + `<h1>Corn</h1>` + text, "Ann Bee", "json-ld author"},
		{"a firm, and a person by the title", ld(`{"@type":"Organization","name":"The Mill"}`, "") + `<h1>Corn</h1><p>By Ann Bee</p>` + text, "Ann Bee", "byline"},
		{"the publisher, and a person by the title", ld(`{"name":"The Mill"}`, `,"publisher":{"name":"The Mill"}`) + `<h1>Corn</h1><a href=/authors/ann>Ann Bee</a>` + text, "Ann Bee", "byline"},
		{"a firm alone", ld(`{"@type":"Organization","name":"The Mill"}`, "") + `<h1>Corn</h1>` + text, "The Mill", "json-ld author"},
		{"who put it up", `<meta name=author content="Site Admin"><h1>Corn</h1><p>Written by Ann Bee</p>` + text, "Ann Bee", "byline"},
		{"meta", `<meta name=author content="Ann Bee"><h1>Corn</h1>` + text, "Ann Bee", "meta author"},
		{"a journal", `<meta name=citation_author content="Bee, Ann"><meta name=citation_author content="Dee, Carl"><h1>Corn</h1>` + text, "Ann Bee, Carl Dee", "meta citation_author"},
		{"with a date", `<h1>Corn</h1><div>By Ann Bee March 5, 2020</div>` + text, "Ann Bee", "byline"},
		{"after a date", `<h1>Corn</h1><p>March 5, 2020 • by Ann van der Bee in <a href=/x>Grain</a></p>` + text, "Ann van der Bee", "byline"},
		{"two links", `<h1>Corn</h1><p>By <a href=/a>Ann Bee</a> and <a href=/c>Carl Dee</a>, editors</p>` + text, "Ann Bee", "byline"},
		{"a handle", `<h1>Corn</h1><p>Posted by <a href=/u>annbee</a> on Friday</p>` + text, "annbee", "byline"},
		{"a degree", `<h1>Corn</h1><p>By Ann Bee, MD</p>` + text, "Ann Bee", "byline"},
		{"a job", `<h1>Corn</h1><p>By Ann Bee, keeper of the mill</p>` + text, "Ann Bee", "byline"},
		{"a button", `<h1>Corn</h1><div><span>By </span><button>Ann Bee</button></div>` + text, "Ann Bee", "byline"},
		{"a class", `<h1>Corn</h1><span class=post-author>Ann Bee</span><span>Founder</span>` + text, "Ann Bee", "byline"},
		{"German", `<h1>Mais</h1><p>Von Ann Bee</p>` + text, "Ann Bee", "byline"},
		{"French", `<h1>Maïs</h1><p>Par Ann Bée, le 5 mars 2020</p>` + text, "Ann Bée", "byline"},
		{"Russian", `<h1>Кукуруза</h1><p>Автор: Анна Бее</p>` + text, "Анна Бее", "byline"},
		{"Chinese", `<h1>玉米</h1><p>作者：王小明</p>` + text, "王小明", "byline"},
		{"no name", `<h1>Corn</h1><p>By clicking here you agree</p>` + text, "", ""},
		{"no person", `<h1>Corn</h1><p>by the river</p>` + text, "", ""},
		{"in the text", `<h1>Corn</h1>` + text + `<p>By Ann Bee</p>`, "", ""},
		{"of a comment", `<h1>Corn</h1>` + text + `<ol class=comment-list><li class=comment><a rel=author href=/u>Ann Bee</a>`, "", ""},
		{"of another page", `<h1>Corn</h1><div><h3><a href=/b>How to grind the rye</a></h3><p>By Ann Bee</p></div>` + text, "", ""},
		{"an address", `<meta name=author content="ann@example.com"><h1>Corn</h1>` + text, "", ""},
		{"of goods", `<meta property=og:type content=product><h1>Corn</h1><p>By Ann Bee</p>` + text, "", ""},
		{"of a thread", `<script type="application/ld+json">{"@type":"Question"}</script><h1>Corn</h1>` + text + `<p itemprop=author>Ann Bee</p>` + text + `<p itemprop=author>Carl Dee</p>`, "Ann Bee", "itemprop author"},
		{"no author", `<meta name=author content="Admin"><h1>Corn</h1>` + text, "", ""},
	} {
		res := extractPage(t, "https://example.com/a", c.doc)
		if got := res.Page.Author; got != c.want || res.Sources["author"] != c.source {
			t.Errorf("%s: %q from %q, want %q from %q", c.name, got, res.Sources["author"], c.want, c.source)
		}
	}
}
