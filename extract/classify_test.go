package extract

import (
	"strings"
	"testing"
)

// The classifier leaves out parts that rules about tags cannot detect, and keeps parts without a
// form of their own.
func TestClassifier(t *testing.T) {
	links := "<div class=x1><div><a href=/1>Mills of the valley</a></div><div><a href=/2>Prices</a></div><div><a href=/3>How to get here</a></div><div><a href=/4>Jobs</a></div></div>"
	page := func(inside string) string {
		return "<div class=x0>" + links + "<div class=x2><h1>Page</h1>" + article + inside + "</div>" + links + "<div>© 2019 The guild of millers. All rights reserved. Terms of use. Privacy.</div></div>"
	}
	checkLocated(t, []locatedPage{
		{"boilerplate without semantic markup", page(""), []string{"grain comes", "turbine"}, []string{"Prices", "rights reserved"}},
		{
			"footnotes", page("<p>His grandfather<a href=#n1 id=r1>1</a> had a third pair<a href=#n2 id=r2>2</a>.</p><div><p id=n1><a href=#r1>1</a> Jean.</p><p id=n2><a href=#r2>2</a> Sold.</p></div>"),
			[]string{"Jean.", "Sold."},
			nil,
		},
		{
			"links after a colon",
			"<div class=columns><main><h1>Page</h1>" + strings.Repeat("<p>The water of the mill turns one wheel, and the wheel turns both of the stones. See <a href=/w>the wheel</a>.</p>", 8) + "<h2>Ways</h2><p>Choose one of two ways:</p><ul><li><a href=/a>Along the canal</a>: the level one.</li><li><a href=/b>Over the hill</a>: with a view.</li></ul></main><nav id=contents>" +
				strings.Repeat("<h3>Guides</h3><ul>"+strings.Repeat("<li><a href=/1>Mills of the valley</a></li>", 8)+"</ul>", 8) + "</nav></div>",
			[]string{"turns one wheel", "Along the canal", "Over the hill"},
			[]string{"Mills of the valley"},
		},
		{
			"lines of code in a table", page("<table><tr><td>1</td><td class=code>open gate</td></tr><tr><td>2</td><td class=code>  wait 10</td></tr><tr><td>3</td><td class=code>close gate</td></tr></table>"),
			[]string{"wait 10"},
			nil,
		},
	})
}
