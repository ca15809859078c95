package crawl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace"
)

// textPage returns a page that consists of paragraphs.
func textPage(paragraphs ...string) *millrace.Page {
	p := &millrace.Page{Blocks: []millrace.Block{{Type: millrace.HeadingBlock, Text: "A heading", Level: 1}}}
	for _, t := range paragraphs {
		p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.TextBlock, Text: t})
	}
	return p
}

func TestSimilar(t *testing.T) {
	of := func(paragraphs ...string) uint64 {
		p := textPage(paragraphs...)
		p.Blocks = p.Blocks[1:]
		return read(p, "https://a.example/").sketch
	}
	mill := words("mill")
	for _, c := range []struct {
		name        string
		a, b        uint64
		least, most int
	}{
		{"equal", of(mill), of(mill), 8, 8},
		{"case and marks", of(mill), of(strings.ToUpper(strings.ReplaceAll(mill, " ", ", "))), 8, 8},
		{"one more sentence", of(mill), of(mill, "It was dry in May."), 6, 8},
		{"another page", of(mill), of(words("wheel")), 0, 2},
		{"one short word", of("Oops"), of("Gone"), 0, 2},
		{"nothing", of(), of(mill), 0, 0},
	} {
		if n := similar(c.a, c.b); n < c.least || n > c.most || similar(c.b, c.a) != n {
			t.Errorf("%s: %d eighths", c.name, n)
		}
	}
	if similar(0, 0) != 8 {
		t.Error("two texts without words are not similar")
	}
	// Few unrelated pages are classified as equal.
	wrong := 0
	for i := range 1000 {
		if similar(of(words(fmt.Sprint("a", i))), of(words(fmt.Sprint("b", i)))) >= notWhollyOther {
			wrong++
		}
	}
	if wrong > 0 {
		t.Errorf("%d of 1000 unrelated pages are similar", wrong)
	}
}

func TestLines(t *testing.T) {
	same := func(u, v string, a, b *millrace.Page) bool {
		x, y := read(a, u).lines, read(b, v).lines
		return fmt.Sprint(x) == fmt.Sprint(y)
	}
	const m5, m6 = "https://a.example/cal/2024/05", "https://a.example/cal/2024/06"
	if !same(m5, m6, textPage("Week 18, 19", "No events in 5/2024."), textPage("Week 22, 23", "No events in 6/2024.")) {
		t.Error("numbers count although the address contains a date")
	}
	if same("https://a.example/t/5", "https://a.example/t/6", textPage("Post 5 of 7"), textPage("Post 6 of 7")) {
		t.Error("numbers do not count although the address contains no date")
	}
	if !same("https://a.example/s?c=red&z=xl", "https://a.example/s?c=blue&z=m", textPage("Shirts in red, size XL"), textPage("Shirts in Blue, size m")) {
		t.Error("the values of parameters count")
	}
	if same("https://a.example/s?q=red", "https://a.example/s?q=blue", textPage("About red"), textPage("About blue")) {
		t.Error("the value of the only parameter does not count")
	}
	p := &millrace.Page{Blocks: []millrace.Block{
		{Type: millrace.ListBlock, Items: []millrace.Item{{Text: "one"}, {Text: "two", Blocks: textPage("inside").Blocks}}},
		{Type: millrace.TableBlock, Rows: [][]millrace.Cell{{{Text: "a"}, {Text: "b"}}, {{Text: "c"}}}},
		{Type: millrace.QuoteBlock, Blocks: textPage("quoted").Blocks},
		{Type: millrace.ImageBlock, URL: "https://a.example/x.png"},
	}}
	if got := len(read(p, m5).lines); got != 6 {
		t.Errorf("%d lines", got)
	}
	var many []string
	for i := range 2 * maxLines {
		many = append(many, fmt.Sprintf("line %d", i))
	}
	if got := len(read(textPage(many...), "https://a.example/").lines); got != maxLines {
		t.Errorf("%d lines of many", got)
	}
}

func TestDated(t *testing.T) {
	for u, want := range map[string]bool{
		"https://a.example/2024/05": true, "https://a.example/cal/2024-05-12": true, "https://a.example/cal?month=5": true,
		"https://a.example/events/20240512": true, "https://a.example/x?d=2024-05": true,
		"https://a.example/t/title/123": false, "https://a.example/2024": false, "https://a.example/p/2099171": false, "https://a.example/index.php?title=X": false,
	} {
		if dated.MatchString(u) != want {
			t.Errorf("%s: %v", u, !want)
		}
	}
}

func TestShapes(t *testing.T) {
	traps := traps{base: "https://a.example/", groups: map[string]*group{}}
	for u, want := range map[string][2]string{
		"":                       {"", ""},
		"about":                  {"*", ""},
		"t/title/123":            {"t/*/*", ""},
		"2024/05/a/":             {"0/*/*", ""},
		"index.php?title=A":      {"index.php?title&", "index.php?"},
		"shop?b2=1&a=2":          {"*?b0&a&", "*?"},
		"shop/x?color=1&color=2": {"shop/*?color&color&", "shop/*?"},
	} {
		if shape, any := traps.shapes("https://a.example/" + u); shape != want[0] || any != want[1] {
			t.Errorf("%s: %q, %q", u, shape, any)
		}
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"*", "t/*", true},
		{"t/*", "t/*", false},
		{"f?a&", "f?a&b&", false},
		{"f?board&", "f?topic&", true},
		{"f?", "f?a&", false},
		{"f", "f?a&", false},
	} {
		if unrelated(c.a, c.b) != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, !c.want)
		}
	}
}

// The number of distinct shapes is limited.
func TestManyShapes(t *testing.T) {
	traps := traps{base: "https://a.example/", groups: map[string]*group{}}
	for i := range 3 * maxGroups {
		traps.note(fmt.Sprintf("https://a.example/%x/b", mix(uint64(i))), false)
	}
	if n := len(traps.groups); n > maxGroups+maxSegments {
		t.Errorf("%d groups", n)
	}
	shape, any := traps.shapes("https://a.example/never-seen/b")
	if traps.admit(shape, any) {
		t.Error("an arbitrary first segment gives an address its own budget")
	}
}
