package extract

import (
	"strings"
	"testing"
)

func TestRepeats(t *testing.T) {
	const line = "The best flour of the whole river, says Ann Miller, who bakes for three villages every day."
	twice := func(before, after string) string {
		return "<main>" + filler + before + line + after + "<p>Between the two.</p>" + before + line + after + "</main>"
	}
	for _, c := range []struct {
		name, doc string
		want      int
	}{
		{"slides", twice("<div class=slide><div><p>", "</p></div></div>"), 1},
		{"items that are slides", twice("<ul class=image-slider><li><div>", "</div></li></ul>"), 1},
		{"items of lists", twice("<ul><li><div>", "</div></li></ul>"), 1},
		{"for small screens", twice("<div class='hidden-xs'><p>", "</p></div>"), 1},
		{"boxes with a title and a link", twice("<div><h3><a href=/ann>Ann</a></h3><p>", "</p></div>"), 1},
		{"parts of a reference", twice("<section><h4>Returns</h4><p>", "</p></section>"), 1},
		{"boxes of several texts", twice("<div><p>Flour</p><p>Wheels</p><p>", "</p></div>"), 1},
		{"single notes", twice("<div class=versionchanged><p>", "</p></div>"), 1},
		{"signatures", "<meta name=generator content=phpBB>" + twice("<div><p>", "</p></div>"), 1},
		{"call-outs", twice("<div class='admonition note'><p class=title>Note</p><p>First,</p><p>", "</p></div>"), 1},
		{"paragraphs", twice("<p>", "</p>"), 2},
		{"lines of lists", twice("<ul><li>", "</ul>"), 2},
		{"code", twice("<div><pre>", "</pre></div>"), 2},
		{"tables", twice("<div><table><tr><th>a<th>b<tr><td>c<td>", "</table></div>"), 2},
		{"quotations", twice("<div><blockquote><div><p>", "</p></div></blockquote></div>"), 2},
		{"quotations of a div", "<main>" + filler + "<div>" + line + "</div><blockquote><div>" + line + "</div></blockquote></main>", 2},
		{"documentation", "<meta name=generator content=docbook>" + twice("<div><p>", "</p></div>"), 2},
		{"the same but for a word", "<main>" + filler + "<div>" + line + "</div><div>" + strings.Replace(line, "Ann", "Eve", 1) + "</div></main>", 2},
		{"one in the other", "<main>" + filler + "<div><div>" + line + "</div></div></main>", 1},
	} {
		text := extractPage(t, "https://example.com/a", "<title>Page</title>"+c.doc).Page.Text()
		if got := strings.Count(text, "who bakes for three"); got != c.want {
			t.Errorf("%s: %d times, want %d: %q", c.name, got, c.want, text)
		}
	}
	short := extractPage(t, "https://example.com/a", "<main>"+filler+"<div>Fine flour.</div><p>And</p><div>Fine flour.</div></main>").Page.Text()
	if strings.Count(short, "Fine flour") != 2 {
		t.Errorf("short: %q", short)
	}
}
