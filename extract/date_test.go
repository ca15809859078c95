package extract

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

func TestTimes(t *testing.T) {
	for in, want := range map[string]string{
		"2024-03-01": "2024-03-01T00:00:00Z", "2024-03-01T10:00:00.123+01:00": "2024-03-01T09:00:00Z", "March 1, 2024": "2024-03-01T00:00:00Z",
		"2024-03-01T10:00:00+0000": "2024-03-01T10:00:00Z", "1 Mar 2024": "2024-03-01T00:00:00Z", "2024": "", "yesterday": "", "0001-01-01": "", "": "",
		"2024-13-01": "", "Fri, 01 Mar 2024 10:00:00 GMT": "2024-03-01T10:00:00Z", "2024-03-01T23:30:00-05:00": "2024-03-02T04:30:00Z",
		"20240301": "2024-03-01T00:00:00Z", "1 March 2024, 10:30": "2024-03-01T00:00:00Z",
	} {
		got, ok := parseTime(in)
		if s := got.UTC().Format(time.RFC3339); ok != (want != "") || ok && s != want {
			t.Errorf("%q: %s %t, want %q", in, s, ok, want)
		}
	}
}

func TestFindDate(t *testing.T) {
	for _, c := range []struct{ text, lang, want string }{
		{"Posted on March 5, 2020 by Ann", "", "2020-03-05"},
		{"Sept. 5th, 2020", "", "2020-09-05"},
		{"5th of March, 2020", "", "2020-03-05"},
		{"05-Mar-2020", "", "2020-03-05"},
		{"am 5. März 2020 um 10 Uhr", "de", "2020-03-05"},
		{"Donnerstag, 5. Jänner 2020", "de-AT", "2020-01-05"},
		{"le 1er août 2020", "fr", "2020-08-01"},
		{"5 de marzo de 2020", "es", "2020-03-05"},
		{"5 settembre 2020", "it", "2020-09-05"},
		{"5 de março de 2020", "pt-BR", "2020-03-05"},
		{"5 out 2020", "pt-BR", "2020-10-05"},
		{"5 out 2020", "en", ""},
		{"5 mei 2020", "nl", "2020-05-05"},
		{"5 października 2020", "pl", "2020-10-05"},
		{"5 listopada 2020", "pl", "2020-11-05"},
		{"5. listopada 2020", "hr", ""}, // October in Croatian
		{"5 марта 2020 г.", "ru", "2020-03-05"},
		{"2020年3月5日", "ja", "2020-03-05"},
		{"2020年03月05日(木) 10:30", "", "2020-03-05"},
		{"2020년 3월 5일", "ko", "2020-03-05"},
		{"2020/03/05", "", "2020-03-05"},
		{"2020. 3. 5.", "", "2020-03-05"},
		{"05.03.2020", "", "2020-03-05"},
		{"5/3/2020", "", ""}, // March or May
		{"5/3/2020", "en-US", ""},
		{"5/3/2020", "en-GB", "2020-03-05"},
		{"5/3/2020", "fr-FR", "2020-03-05"},
		{"25/3/2020", "", "2020-03-25"},
		{"3/25/2020", "", "2020-03-25"},
		{"3/3/2020", "", "2020-03-03"},
		{"13/13/2020", "", ""},
		{"31 June 2020", "", ""},
		{"March 2020", "", ""},
		{"March 5", "", ""},
		{"1.2.3.2020", "", ""}, // a version number
		{"call 555-03-2020", "", ""},
		{"page 3 of 2020", "", ""},
		{"March 5, 1650", "", ""},
	} {
		d, ok := findDate(c.text, 0, c.lang)
		if got := d.day.Format(time.DateOnly); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%q in %q: %s %t, want %q", c.text, c.lang, got, ok, c.want)
		}
	}
}

func FuzzFindDate(f *testing.F) {
	for _, s := range []string{"March 5, 2020", "5. März 2020", "2020年3月5日", "5/3/2020", "1er août 2020 – 2 août 2020", "\xff 2020-01-01"} {
		f.Add(s, "de")
	}
	f.Fuzz(func(t *testing.T, s, lang string) {
		for from := 0; ; {
			d, ok := findDate(s, from, lang)
			if !ok {
				return
			}
			if d.start < from || d.end <= d.start || d.end > len(s) || !plausibleYear(d.day.Year()) {
				t.Fatalf("%q: %+v from %d", s, d, from)
			}
			from = d.end
		}
	})
}

// text is prose that is long enough to be the text of a page.
var text = strings.Repeat("<p>Plain text of the page, with commas, and many more words than a line beside the title would have in it.</p>", 4)

func TestDates(t *testing.T) {
	article := func(fields string) string {
		return `<script type="application/ld+json">{"@type":"Article","headline":"Corn",` + fields + `}</script>`
	}
	const og = `<meta property=og:type content=article><meta property=article:published_time content=2020-03-05T10:00:00Z>`
	for _, c := range []struct{ name, url, doc, published, source, modified string }{
		{"declared", "/a", article(`"datePublished":"2020-03-05","dateModified":"2021-01-01"`) + `<h1>Corn</h1>` + text, "2020-03-05", "json-ld datePublished", "2021-01-01"},
		{"open graph", "/a", og + `<h1>Corn</h1>` + text, "2020-03-05", "meta article:published_time", ""},
		{"open graph without a type", "/a", `<meta property=article:published_time content=2020-03-05T10:00:00Z><h1>Corn</h1>` + text, "2020-03-05", "meta article:published_time", ""},
		{"of Dublin Core", "/a", `<meta name=DC.date.issued content=2020-03-05><h1>Corn</h1>` + text, "2020-03-05", "meta dc.date.issued", ""},
		{"below the title", "/a", `<h1>Corn</h1><div>By Ann Bee • <span>March 5, 2020</span> • 4 min read</div>` + text, "2020-03-05", "text near title", ""},
		{"above the title", "/a", `<header><p>5. März 2020</p><h1>Corn</h1></header>` + text, "2020-03-05", "text near title", ""},
		{"a time element", "/a", `<h1>Corn</h1><time datetime="2020-03-05T10:00:00Z">two days ago</time>` + text, "2020-03-05", "time", ""},
		{"changed", "/a", `<h1>Corn</h1><p>Last updated: March 5, 2020</p>` + text, "", "", "2020-03-05"},
		{"changed, in a line of its own", "/a", `<h1>Corn</h1><div>Updated:</div><div>March 5, 2020</div>` + text, "", "", "2020-03-05"},
		{"changed, by its class", "/a", `<h1>Corn</h1><span class=last-modified><time datetime=2020-03-05>March 5</time></span>` + text, "", "", "2020-03-05"},
		{"changed, far below", "/a", `<h1>Corn</h1>` + text + `<p>This page was last modified on <time datetime=2020-03-05>5 March 2020</time>.</p>`, "", "", "2020-03-05"},
		{"both in a line", "/a", `<h1>Corn</h1><p>Published March 5, 2020 | Updated May 1, 2021</p>` + text, "2020-03-05", "text near title", "2021-05-01"},
		{"both in a time element", "/a", `<h1>Corn</h1><p><time datetime=2021-05-01>Updated May 1, 2021. Originally published March 5, 2020</time></p>` + text, "2020-03-05", "text near title", "2021-05-01"},
		{"German", "/a", `<html lang=de><h1>Mais</h1><p>Aktualisiert am 1. Mai 2021</p><p>Veröffentlicht: 5.3.2020</p>` + text, "2020-03-05", "text near title", "2021-05-01"},
		{"a span of time", "/a", `<h1>Fair</h1><p>March 5, 2020 - March 9, 2020</p>` + text, "", "", ""},
		{"reviewed", "/a", `<h1>Corn</h1><p>Reviewed by Ann Bee on March 5, 2020</p>` + text, "", "", ""},
		{"in prose", "/a", `<h1>Corn</h1><p>On March 5, 2020 the council of the town met in the hall beside the old mill to speak of the water and of those who use it.</p>` + text, "", "", ""},
		{"a time element in a sentence", "/a", `<main><h1>Corn</h1><p>We meet at <time datetime=2020-03-05>harvest</time>.` + text + `</main>`, "", "", ""},
		{"a time element that begins a sentence", "/a", `<h1>Corn</h1><p><time datetime=2020-03-05>March 5</time> is when the mill opens.</p>` + text, "", "", ""},
		{"in a sentence at the end", "/a", `<h1>Corn</h1>` + strings.Repeat(text, 9) + `<p>We met on <time>March 5, 2020</time>.</p>`, "", "", ""},
		{"in a sentence, called so", "/a", `<h1>Corn</h1><p>We meet at <time itemprop=datePublished datetime=2020-03-05>harvest</time>.` + text, "2020-03-05", "itemprop datePublished", ""},
		{"behind a comma", "/a", `<h1>Corn</h1><p>Discussion in Grain started by the miller, <span>March 5, 2020</span>.</p>` + text, "2020-03-05", "text near title", ""},
		{"a byline with other words", "/a", `<h1>Corn</h1><p>By Ann Bee in The Valley on <time datetime=2020-03-05>March 5</time> at noon, 4 min read</p>` + text, "2020-03-05", "time", ""},
		{"a comment's", "/a", `<h1>Corn</h1>` + text + `<div class=comments><div class=comment><a rel=author>Ann Bee</a> <time datetime=2020-03-05>5 March 2020</time></div></div>`, "", "", ""},
		{"another page's", "/a", `<h1>Corn</h1><div class=card><h3><a href=/b>How to grind the rye</a></h3><span>March 5, 2020</span></div>` + text, "", "", ""},
		{"in the head of the site", "/a", `<div><div>Thursday, March 5, 2020</div><div><div><div><div><div><h1>Corn</h1></div></div></div></div></div>` + text + `</div>`, "", "", ""},
		{"made by a machine", "/a", article(`"datePublished":"2022-03-05T10:00:00Z","dateModified":"2022-03-05T10:00:00Z"`) + `<h1>Corn</h1><p>May 1, 2021</p>` + text, "2021-05-01", "text near title", "2022-03-05"},
		{"made by a machine, with the day at the end", "/a", article(`"datePublished":"2022-03-05T10:00:00Z","dateModified":"2022-03-05T10:00:00Z"`) + `<h1>Corn</h1>` + strings.Repeat(text, 9) + `<div>Published <time>May 1, 2021</time></div>`, "2021-05-01", "text", "2022-03-05"},
		{"the day in the zone of the site", "/a", article(`"datePublished":"2020-03-05T10:00:00+12:00"`) + `<h1>Corn</h1><p>March 5, 2020</p>` + text, "2020-03-05", "text near title", ""},
		{"changed when it was published", "/a", `<script type="application/ld+json">{"@type":"WebPage","datePublished":"2020-03-05T10:00:00Z"}</script><h1>Corn</h1><p>Updated March 5, 2020</p>` + text, "", "", "2020-03-05"},
		{"documentation", "/docs/a", og + `<h1>Corn</h1>` + text, "", "", ""},
		{"a home page", "/", og + `<h1>Corn</h1>` + text, "", "", ""},
		{"a page that is no article", "/a", `<script type="application/ld+json">{"@type":"WebPage","datePublished":"2020-03-05"}</script><h1>Corn</h1>` + text, "", "", ""},
		{"the same, with the day by its title", "/a", `<script type="application/ld+json">{"@type":"WebPage","datePublished":"2020-03-05T10:00:00Z"}</script><h1>Corn</h1><p>March 5, 2020</p>` + text, "2020-03-05", "text near title", ""},
		{"shown on a home page", "/", `<h1>The Mill</h1><div>March 5, 2020</div>` + text, "", "", ""},
		{"an article for a home page", "/", `<meta property=og:type content=article><h1>Corn</h1><div>March 5, 2020</div>` + text, "2020-03-05", "text near title", ""},
		{"a deadline", "/a", `<h1>Corn</h1><div>Book by March 5, 2020</div>` + text, "", "", ""},
		{"a deadline in German", "/a", `<html lang=de><h1>Mais</h1><div>Nur bis 5. März 2020</div>` + text, "", "", ""},
		{"of a book", "/a", `<h1>Books</h1><p>Ann Bee and Carl Dee, The grain of the valley and its mills. University of the Leat. <span class=pubdate>March 5, 2020.</span></p>` + text, "", "", ""},
		{"in the address", "/2020/03/05/corn", `<h1>Corn</h1>` + text, "2020-03-05", "url", ""},
		{"in the address, with its month", "/2020/mar/05/corn", `<h1>Corn</h1>` + text, "2020-03-05", "url", ""},
		{"an archive's address", "/2020/03/05/", `<h1>Corn</h1>` + text, "", "", ""},
		{"at the end, alone", "/a", `<h1>Corn</h1>` + strings.Repeat(text, 9) + `<div><span>March 5, 2020</span></div>`, "2020-03-05", "text", ""},
		{"at the end, one of two", "/a", `<h1>Corn</h1>` + strings.Repeat(text, 9) + `<div>March 5, 2020</div><div>March 9, 2020</div>`, "", "", ""},
		{"at the end, before a byline", "/a", `<h1>Corn</h1>` + strings.Repeat(text, 9) + `<div>March 5, 2020 By Ann Bee</div>`, "2020-03-05", "text", ""},
		{"at the end, called so, and others", "/collection/a", `<h1>Corn</h1>` + strings.Repeat(text, 9) + `<div><p>Published</p><p>March 5, 2020</p></div><div>March 9, 2020</div>`, "2020-03-05", "text", ""},
		{"at the end of goods", "/product/a", `<h1>Corn</h1>` + strings.Repeat(text, 9) + `<div>Published: March 5, 2020</div>`, "", "", ""},
		{"in a link to itself", "/a", `<h1>Corn</h1><a href="/a#top"><div>The whole team of the mill</div><div>March 5, 2020</div></a>` + text, "2020-03-05", "text near title", ""},
		{"in a link elsewhere", "/a", `<h1>Corn</h1><a href=/b><div>The whole team of the mill</div><div>March 5, 2020</div></a>` + text, "", "", ""},
		{"in the title's heading", "/a", `<title>Corn</title><h1><span>5 March 2020</span> Corn</h1>` + text, "2020-03-05", "text", ""},
		{"Drupal", "/a", `<h1>Corn</h1><article><footer class=node__meta>Submitted by <span>Ann</span> on March 5, 2020</footer>` + strings.Repeat(text, 6) + `</article>`, "2020-03-05", "text near title", ""},
	} {
		res := extractPage(t, "https://example.com"+c.url, c.doc)
		p := res.Page
		if got := day(p.Published); got != c.published || res.Sources["published"] != c.source {
			t.Errorf("%s: published %q from %q, want %q from %q", c.name, got, res.Sources["published"], c.published, c.source)
		}
		if got := day(p.Modified); got != c.modified || p.Known.Has(millrace.FieldModified) != (c.modified != "") {
			t.Errorf("%s: modified %q from %q, want %q", c.name, got, res.Sources["modified"], c.modified)
		}
	}
}

func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.DateOnly)
}
