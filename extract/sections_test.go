package extract

import (
	"strings"
	"testing"
)

func TestBoxedSections(t *testing.T) {
	box := func(heading, inside string) string {
		return "<main>" + article + article + "<section><h2>" + heading + "</h2>" + inside + "</section><section><h2>Gates</h2>" + article + "</section></main>"
	}
	prose := "<p>First the <a href=/gate>gate</a> is closed, then the <a href=/wheel>wheel</a> is stopped with a beam of oak that the miller keeps beside it.</p>" + filler
	card := func(inside string) string { return strings.Repeat("<div>"+inside+"</div>", 3) }
	checkLocated(t, []locatedPage{
		{"a procedure", box("1.2. Recommended procedure", prose), []string{"beam of oak", "Recommended procedure"}, nil},
		{"the work of others", box("Related work", prose), []string{"beam of oak"}, nil},
		{"what has changed", box("Recent changes", "<ul><li>The <a href=/1>gate</a> now opens to the left, as it did in the days of the old mill.<li>The <a href=/2>wheel</a> of oak was replaced by one of iron.</ul>"), []string{"opens to the left"}, nil},
		{"more of the subject", box("More on gears", prose), []string{"beam of oak"}, nil},
		{"short parts with headings", box("Popular misconceptions", card("<h3>It never stops</h3><p>See <a href=/stop>how the mill is stopped</a>: a beam of oak is all that it takes.</p>")), []string{"beam of oak"}, nil},
		{"links", box("Related articles", "<ul><li><a href=/1>The stones of the mill</a><li><a href=/2>The ponds of the mill</a></ul>"), []string{"miller"}, []string{"ponds", "Related"}},
		{"links with a line each", box("Recommended", card("<h3><a href=/1>The stones</a></h3><p>Every one of them is cut by hand from the rock above the village.</p>")), []string{"miller"}, []string{"cut by hand"}},
		{"pictures that are links", box("You may also like", card("<a href=/1><img src=/1.png alt=x></a><p>Every one of them is cut by hand from the rock above the village.</p>")), []string{"miller"}, []string{"cut by hand"}},
		{"a form", box("Newsletter", "<form><p>Once in a month we write of all that has happened on the river, of the wheels that turn, of the flour that was ground and of those who baked with it.</p><input name=mail><button>Send</button></form>"), []string{"miller"}, []string{"Once in a month"}},
		{"no form", box("Newsletter", "<p>Once in a month he wrote of all that had happened on the river, of the wheels that turned, of the flour that was ground and of those who baked with it, and of the weather.</p>"), []string{"Once in a month"}, nil},
	})
}
