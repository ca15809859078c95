package extract

import (
	"strings"
	"testing"
)

func TestEditions(t *testing.T) {
	versions := func(list string) string {
		return "<main><h1>Gates</h1><div>Supported versions: " + list + "</div>" + filler + "</main>"
	}
	for name, p := range map[string]struct {
		url, doc string
		keep     bool
	}{
		"versions":     {"https://example.com/docs/18/gates.html", versions("<a href=/docs/current/gates.html>Current</a> <a href=/docs/17/gates.html>17</a> <a href=/docs/16/gates.html>16</a>"), false},
		"languages":    {"https://example.com/de/gates", versions("<a href=/gates>English</a> <a href=/fr/gates>français</a> <a href=/nl/gates>Nederlands</a>"), false},
		"other pages":  {"https://example.com/docs/18/gates.html", versions("<a href=/docs/18/wheels.html>Wheels</a> <a href=/docs/18/stones.html>Stones</a> <a href=/docs/18/sieves.html>Sieves</a>"), true},
		"the page":     {"https://example.com/docs/18/gates.html", versions("<a href=#a>Wheels</a> <a href=#b>Stones</a> <a href=gates.html>Sieves</a>"), true},
		"folders":      {"https://example.com/docs/18/", versions("<a href=/docs/wheels/>Wheels</a> <a href=/docs/stones/>Stones</a> <a href=/docs/sieves/>Sieves</a>"), true},
		"front pages":  {"https://example.com/docs/index.html", versions("<a href=/wheels/index.html>Wheels</a> <a href=/stones/index.html>Stones</a> <a href=/sieves/index.html>Sieves</a>"), true},
		"other hosts":  {"https://example.com/docs/18/gates.html", versions("<a href=https://a.example/docs/1/gates.html>A</a> <a href=https://b.example/docs/1/gates.html>B</a> <a href=https://c.example/gates.html>C</a>"), true},
		"in two steps": {"https://example.com/docs/18/gates.html", versions("<a href=/a/1/gates.html>A</a> <a href=/b/2/gates.html>B</a> <a href=/c/3/gates.html>C</a>"), true},
	} {
		t.Run(name, func(t *testing.T) {
			res := extractPage(t, p.url, p.doc)
			text := res.Page.Text()
			if got := strings.Contains(text, "Supported versions"); got != p.keep {
				t.Errorf("kept: %t: %q, dropped %v", got, text, res.Dropped)
			}
			if !strings.Contains(text, "miller") {
				t.Errorf("the text is lost: %q", text)
			}
		})
	}
}

func TestAboutThePage(t *testing.T) {
	feedback := "<div><h2>Submit correction</h2><p>If you see anything that is not correct, use <a href=/form>this form</a>.</p></div>"
	checkLocated(t, []locatedPage{
		{"feedback at the end of a manual's page", "<meta name=generator content=docbook><main>" + filler + "<h2>See also</h2>" + filler + feedback + "</main>", []string{"miller", "See also"}, []string{"Submit correction", "anything"}},
		{"feedback at the end of an article", "<article>" + filler + "<h2>Help improve this page</h2><p>Yes No</p></article>", []string{"miller"}, []string{"Help improve", "Yes No"}},
		{"a chapter about feedback", "<main>" + filler + "<h2>Feedback</h2><p>The wheel gives feedback to the gate.</p><h2>Gates</h2>" + filler + "</main>", []string{"Feedback", "to the gate"}, nil},
		{
			"lines about the page", "<main>" + filler + "<p>The wheel stands still at night.</p><p>Was this page helpful?</p><div><a href=/edit>Edit this page</a></div><p>Last updated on 3 May 2024 by the miller</p></main>",
			[]string{"stands still"},
			[]string{"helpful", "Edit this", "Last updated"},
		},
		{"such a line in the midst", "<main>" + filler + "<p>Last updated values win.</p><p>The wheel stands still at night.</p></main>", []string{"values win"}, nil},
		{"a long last paragraph", "<main>" + filler + "<p>Powered by the river, the wheel turns all the day and half of the night, and no miller in the village sleeps.</p></main>", []string{"miller"}, nil},
		{
			"buttons", "<main>" + article + "<p><a class='btn btn-primary' href=/try>Start to grind</a> <a class=button href=/talk>Talk to us</a></p>" + article + "<p><a class=btn href=/mill.pdf>The plan of the mill</a></p>" +
				"<p><a class=btn href=/try>Try it</a>, or walk down to the river and look at the wheel from the bridge.</p></main>",
			[]string{"plan of the mill", "walk down to the river"},
			[]string{"grind", "Talk"},
		},
		{"a page of buttons", "<main><p>Grind with us.</p><p><a class=btn href=/try>Start to turn</a></p></main>", []string{"Start to turn"}, nil},
		{"a short page", "<main><p>Report a bug to the miller.</p></main>", []string{"Report a bug"}, nil},
		{"a pager by its words", "<main><ul><li><a href=/1>Previous</a><li><a href=/>Overview: Mills</a><li><a href=/3> <span>Next</span> </a></ul>" + filler + "</main>", []string{"miller"}, []string{"Overview", "Next"}},
		{"a list that has the word", "<main>" + filler + "<ul><li><a href=/3>Next</a>: the page that follows, with more words than links</ul></main>", []string{"page that follows"}, nil},
	})
}

func TestPanels(t *testing.T) {
	checkLocated(t, []locatedPage{{
		"", "<main>" + filler + "<ul role=tablist><li><a href=#one>Wheat</a><li><a href=#two>Rye</a></ul>" +
			"<section role=tabpanel id=one><p>Grind the wheat twice.</p></section><section role=tabpanel id=two aria-hidden=true hidden=hidden><p>Grind the rye once.</p></section></main>",
		[]string{"wheat twice", "rye once"},
		nil,
	}})
}

func TestManuals(t *testing.T) {
	menu := "<ul><li><a href=a>Wheels</a><li><a href=b>Stones</a><li><a href=c>Sieves</a><li><a href=d>Gates</a><li><a href=e>Ponds</a></ul>"
	toc := "<div class=toc><p><b>Table of Contents</b></p><dl><dt><a href=ch1.html>1. Ponds and weirs</a></dt><dt><a href=ch2.html>2. Races</a></dt><dt><a href=ch3.html>3. Sluices</a></dt></dl></div>"
	checkLocated(t, []locatedPage{
		{
			"the contents of a book", "<meta name=generator content='DocBook XSL'><div class=book><div class=titlepage><div><div><h1>Page</h1></div><div class=legalnotice>" + filler + "</div></div></div>" + toc + "</div>",
			[]string{"miller", "Ponds and weirs"},
			nil,
		},
		{
			"a column of links in a table", "<table><tr><td><h2>Page</h2></td></tr></table><table><tr><td><b>Menu</b>" + menu + "</td><td>" + filler + "<h3>More</h3>" + filler + "</td></tr></table>",
			[]string{"miller", "More"},
			[]string{"Sieves"},
		},
		{
			"boxes with the class of a column", "<main>" + filler + "<div class=sidebar><div class=titlepage><p class=title>Basics</p></div><p>A weir holds the water back.</p></div>" + filler + "</main>",
			[]string{"weir holds"},
			nil,
		},
		{
			"contents with keys to press", "<meta name=generator content=texi2any><meta name=generator content=docbook><div>" + filler + "<ul class=section-toc><li><a href=a accesskey=1>Wheels of oak</a><li><a href=b accesskey=2>Stones</a></ul></div>",
			[]string{"Wheels of oak"},
			nil,
		},
		{
			"a title in a header", "<meta name=generator content=docbook><div id=column><header><h1>Page</h1><div>" + menu + "</div></header><div id=toc><p>Contents of the page</p>" + menu + "</div><div id=text>" + filler + "<h2>More</h2>" + filler + "</div></div>",
			[]string{"miller", "More"},
			[]string{"Contents of", "Sieves"},
		},
	})
}
