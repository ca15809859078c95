package extract

import (
	"strings"
	"testing"
)

// locatedPage is a document with texts that its page must contain and texts that it must not
// contain.
type locatedPage struct {
	name, doc  string
	keep, drop []string
}

var filler = strings.Repeat("<p>The miller walks down to the river every morning, looks at the water and opens the gate by a hand's breadth or two.</p>", 4)

// article is a text of about 170 words in the form of an article.
const article = `<p>The miller walks down to the river every morning, looks at the water and opens the gate by a hand's breadth or two. In spring the river is high, and he opens it less; in August, when the cattle stand in it, he sometimes waits until noon.</p>
<p>“A wheel wants to turn slowly,” he says. Twelve turns a minute are enough for both pairs of stones, which his grandfather bought in 1911 from a quarry near Épernon.</p>
<p>The grain comes from four farms of the valley. It is weighed, cleaned by a sieve and a fan, and carried up to the third floor by a chain of small buckets. From there it falls: first into the hopper, then between the stones, then as meal into the bolter, which separates the flour from the bran.</p>
<p>Nothing of this needs electricity, but a lamp does, and so does the scale. A turbine of eight kilowatts was added below the weir in 2009; what it earns pays for the repairs of the roof.</p>
`

func checkLocated(t *testing.T, pages []locatedPage) {
	t.Helper()
	for _, p := range pages {
		t.Run(p.name, func(t *testing.T) {
			res := extractPage(t, "https://example.com/a/page", "<title>Page</title>"+p.doc)
			text := res.Page.Text()
			for _, s := range p.keep {
				if !strings.Contains(text, s) {
					t.Errorf("%q is lost: %q, dropped %v", s, text, res.Dropped)
				}
			}
			for _, s := range p.drop {
				if strings.Contains(text, s) {
					t.Errorf("%q leaked: %q, root %s", s, text, res.Root)
				}
			}
			if text == "" && res.Reason == nil {
				t.Error("no content and no Reason")
			}
		})
	}
}

func TestFooters(t *testing.T) {
	checkLocated(t, []locatedPage{
		{"only a footer", "<div id=app></div><footer>" + filler + "</footer>", nil, []string{"miller"}},
		{"only a header", "<div id=app></div><header><ul><li>Wheels<li>Stones<li>Sieves</ul></header>", nil, []string{"Wheels"}},
		{"a footer around the page", "<footer><main>" + filler + "</main></footer>", []string{"miller"}, nil},
		{"a footer with the title", "<footer><h1>Millers</h1>" + filler + "</footer>", []string{"miller"}, nil},
		{"a footer longer than the text", "<div><p>Short text of the page, ten words or a few more.</p></div><footer>" + filler + filler + "</footer>", []string{"Short text"}, []string{"miller"}},
		{"the source of a quotation", "<main>" + filler + "<blockquote><p>Water is work.</p><footer>A miller of Kent</footer></blockquote></main>", []string{"Water is work"}, nil},
	})
}

func TestComments(t *testing.T) {
	comments := "<ol class=comments><li class=comments><p>First remark of a reader who knows wheels.</p><ol class=comments><li><p>An answer to it, " +
		strings.Repeat("with words and words and words ", 60) + "to the end.</p></ol></ol>"
	checkLocated(t, []locatedPage{
		{"below an article", "<article>" + filler + filler + "</article>" + comments, []string{"miller"}, []string{"First remark", "An answer"}},
		{"below a page of documentation", "<meta name=generator content=docbook><main>" + filler + filler + "</main>" + comments, []string{"miller"}, []string{"First remark"}},
		{"below a short text", "<h1>Wheels</h1><p>The miller walks down to the river every morning, and looks at the water.</p><div class=comments><h2>One answer</h2><p>First remark of a reader.</p></div>", []string{"miller"}, []string{"First remark"}},
		{"below a link to something", "<h1>Wheels</h1><p><a href=https://example.org/>A text elsewhere</a></p>" + comments, []string{"First remark", "An answer"}, nil},
	})
}

func TestStages(t *testing.T) {
	checkLocated(t, []locatedPage{
		{
			"tabs", "<main>" + filler + "<div><div class=pane>First pane</div><div class='pane x' style='display:none'>Second pane</div><div class=pane hidden>Third pane</div></div></main>",
			[]string{"First pane", "Second pane", "Third pane"},
			nil,
		},
		{"all hidden", "<main>" + filler + "<div><div class=pane hidden>First pane</div><div class=pane hidden>Second pane</div></div></main>", nil, []string{"First pane", "Second pane"}},
		{"beside something else", "<main>" + filler + "<div><h2>Sluices</h2><div class=pane hidden>Second pane</div></div></main>", []string{"Sluices"}, []string{"Second pane"}},
		{"without a name", "<main>" + filler + "<div><div>Sluices</div><div hidden>Second pane</div></div></main>", []string{"Sluices"}, []string{"Second pane"}},
		{"for the eye only", "<main>" + filler + "<div><div class=pane>Sluices</div><div class=pane aria-hidden=true>Second pane</div></div></main>", []string{"Sluices"}, []string{"Second pane"}},
	})
}

func TestStreamed(t *testing.T) {
	page := func(place, script string) string {
		return "<main>" + filler + place + `<p>The end of it.</p></main><div hidden id="S:0"><p>The late part of the text.</p></div><script>` + script + "</script>"
	}
	checkLocated(t, []locatedPage{
		{
			"a boundary", page(`<!--$?--><template id="B:0"></template><p>Loading the text</p><!--/$-->`, `function $RC(b,c){x("a","b")}; $RC("B:0","S:0")`),
			[]string{"late part", "The end of it"},
			[]string{"Loading"},
		},
		{"a segment", page(`<template id="P:0"></template><p>The middle</p>`, `$RS("S:0","P:0")`), []string{"late part", "The middle", "The end of it"}, nil},
		{"into itself", page(`<template id="B:0"></template>`, `$RC("S:0","S:0");$RC("B:0","B:0");$RC("`), []string{"The end of it"}, []string{"late part"}},
		{"no script", page(`<template id="B:0"></template>`, ``), []string{"The end of it"}, []string{"late part"}},
	})
	text := extractPage(t, "https://example.com/", page(`<template id="B:0"></template><!--/$-->`, `$RC("B:0","S:0")`)).Page.Text()
	if i, j := strings.Index(text, "late part"), strings.Index(text, "The end"); i < 0 || i > j {
		t.Errorf("out of order: %q", text)
	}
}

func TestClassesOfEntries(t *testing.T) {
	entry := "<li><h3><a href=/n>No. 12</a></h3><div class=meta><div>Title: On the wheels of mills and the water that drives them</div><div>By Ann Miller and Ben Weaver</div></div></li>"
	checkLocated(t, []locatedPage{
		{"content in a class of boilerplate", "<main><ul>" + strings.Repeat(entry, 12) + "</ul></main>", []string{"On the wheels"}, nil},
		{"boilerplate", "<main>" + filler + "<div class=meta><div>By Ann Miller</div><div>3 May</div></div>" + filler + "</main>", []string{"opens the gate"}, []string{"3 May"}},
		{"a region, however large", "<main>" + filler + "<div class=related><div>" + strings.Repeat("Other texts of this kind. ", 12) + "</div></div></main>", []string{"opens the gate"}, []string{"Other texts"}},
	})
}

func TestListsOfLinks(t *testing.T) {
	list := "<ul>" + strings.Repeat("<li><a href=/x>The stones of the mill</a></li>", 5) + "</ul>"
	cards := "<div>" + strings.Repeat("<a href=/x><h3>The stones</h3><p>Every one of them is cut by hand from the rock above the village, as it was done in the days of old.</p></a>", 4) + "</div>"
	checkLocated(t, []locatedPage{
		{"beside it", "<main>" + filler + "<div>" + list + "</div><p>The end.</p></main>", []string{"The end"}, []string{"The stones"}},
		{"cards", "<main>" + filler + filler + cards + "</main>", []string{"The stones"}, nil},
		{"cards below an article", "<meta property=og:type content=article><main>" + filler + filler + cards + "</main>", []string{"miller"}, []string{"The stones"}},
	})
}

func TestReviews(t *testing.T) {
	const goods = "<meta property=og:type content=product>"
	review := "<div class=reviews><div><p>Grinds well and fine.</p></div></div>"
	checkLocated(t, []locatedPage{
		{"of goods", goods + "<main>" + filler + review + "</main>", []string{"miller"}, []string{"Grinds well"}},
		{"nothing else", goods + "<main>" + review + "</main>", []string{"Grinds well"}, nil},
		{"of books", "<main>" + filler + review + "</main>", []string{"Grinds well"}, nil},
	})
}

func TestTopSections(t *testing.T) {
	long := "<section id=wheels><h1>Wheels</h1>" + article + article + "<section><h2>Of oak</h2>" + article + article + "</section></section>"
	checkLocated(t, []locatedPage{
		{"links", "<div role=main>" + long + "<section><h3>Texts</h3><p><a href=/1>A gate that is lifted by a hand's breadth and no more</a></p><p><a href=/2>On ponds that are dry by noon</a></p></section></div>", []string{"Of oak"}, []string{"dry by noon"}},
		{"an appeal", "<div role=main>" + long + "<section><h3>Subscribe</h3><p>A gate is lifted by a hand's breadth and no more, or the pond is dry by noon.</p></section></div>", []string{"Of oak"}, []string{"dry by noon"}},
	})
	res := extractPage(t, "https://example.com/a", "<main><article>"+filler+filler+"</article><div>A word of the miller that stands beside the text, for those who want to know.</div><div>Short.</div></main>")
	if len(res.Dropped) != 1 || res.Dropped[0].Reason != OutsideRoot || res.Dropped[0].Words != 16 {
		t.Errorf("root %s, dropped %+v", res.Root, res.Dropped)
	}
}

func TestNotesBeside(t *testing.T) {
	checkLocated(t, []locatedPage{
		{"another list", "<main>" + filler + "<aside><ol><li>The river was lower then.</ol></aside><p>The end.</p></main>", []string{"The end"}, []string{"was lower"}},
		{"with a title", "<main>" + filler + "<aside><b>Rivers</b><ol start=2><li>The river was lower then.</ol></aside><p>The end.</p></main>", []string{"The end"}, []string{"was lower"}},
	})
}

// Parts of manuals that are next to the text or look like boilerplate.
func TestManualParts(t *testing.T) {
	sphinx := `<meta name=generator content="Sphinx 5.3"><meta name=docutils content=x>`
	checkLocated(t, []locatedPage{
		{
			"a section about feedback", `<meta name=generator content="DocBook XSL"><div class=chapter><h1>8. Wheels</h1>` + filler +
				`<div class=sect1><h2>8.5. Feedback</h2><p>If you have any comments, <a href=/bugs>file a bug</a>.</p></div></div>`,
			[]string{"8.5. Feedback", "If you have any comments"},
			nil,
		},
		{
			"a page with little but a list of links", sphinx + `<div class=document><div class=body role=main><h1>Page</h1><p>Two parts:</p><ul><li><a href=a>Wheels</a><li><a href=b>Stones</a></ul></div></div>` +
				`<div class=footer>© Copyright 2001-2026, The guild of the millers of Kent. This page is licensed under the license of the millers, version 2. Examples are in the public domain, and may be copied. See the history for more.</div>`,
			[]string{"Two parts", "Stones"},
			[]string{"guild"},
		},
		{
			"functions that are called as pages are", sphinx + `<div role=main><h1>Page</h1>` + filler + `<table><tr><th colspan=2>Functions<tr><td><a href=#l><code>len()</code></a> <a href=#n><code><span>next()</span></code></a><td><a href=#o><code>ord()</code></a></table></div>`,
			[]string{"len()", "next()", "ord()"},
			nil,
		},
	})
}
