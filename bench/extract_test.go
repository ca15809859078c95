package main

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/millrace/millrace/extract"
)

func TestF1(t *testing.T) {
	for _, c := range []struct {
		gold, got string
		want      float64
	}{
		{"", "", 1},
		{"", "a", 0},
		{"a", "", 0},
		{"—", "", 1}, // not a word
		{"One two two", "two ONE, two!", 1},
		{"a b c d", "a b", 2. / 3},
		{"a a a", "a", .5},
		{"Łódź λόγος 東京", "łódź ΛΌΓΟΣ 東京", 2. / 3}, // the final sigma is another letter
	} {
		if got := f1(c.gold, c.got); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("f1(%q, %q) = %v, want %v", c.gold, c.got, got, c.want)
		}
	}
}

func TestShapeOfMarkdown(t *testing.T) {
	var s shape
	inCode := s.ofMarkdown("## A [link](/x)\n\n```go\n# no heading\n\n```\n\n````\n```\n````\n\n> ```\n> quoted\n> ```\n\n| a | **b** |\n| --- | :-: |\n|  | c\\|d |\n\n| no table |\n\n[![alt](/img/p.png \"t\")](/y) ![](https://v.example/watch?v=ID)")
	if want := []code{{"# no heading\n", "go"}, {"```", ""}}; !slices.Equal(s.code, want) {
		t.Errorf("code %q", s.code)
	}
	if !slices.Equal(inCode, []string{"# no heading"}) || !slices.Equal(s.headings, []heading{{2, "alink"}}) {
		t.Errorf("headings %v, in code %q", s.headings, inCode)
	}
	if len(s.tables) != 1 || !slices.Equal(s.tables[0], []string{"a", "b", "cd"}) {
		t.Errorf("tables %q", s.tables)
	}
	if !slices.Equal(s.images, []string{"p.png", "ID"}) {
		t.Errorf("images %q", s.images)
	}
}

func TestPlaces(t *testing.T) {
	doc, err := html.Parse(strings.NewReader("<body><nav><p>all the menu words</p></nav><main><p>the text of it</p><ul><li>and a list item</li></ul></main><footer>at the very end</footer>"))
	if err != nil {
		t.Fatal(err)
	}
	m := newPlaces(doc, &extract.Result{Root: "main", Dropped: []extract.Dropped{{Selector: "nav", Reason: "tag nav", Words: 4}}})
	got := m.differ("all the menu words. The text of it; and a list item at the very end never written anywhere", "the text of it")
	var all []string
	for _, p := range got {
		all = append(all, p.text+"/"+p.cause+"/"+p.landmark)
	}
	// Adjacent passages without a shared word between them are merged. The start sets the
	// cause.
	want := []string{"all the menu words/dropped: tag nav/nav", "and a list item at the very end never written anywhere/inside the root/li"}
	if !slices.Equal(all, want) {
		t.Errorf("%q", all)
	}
}

// TestGoldCounts compares the counts of the gold with the documented ones.
func TestGoldCounts(t *testing.T) {
	dir := os.Getenv("MILLRACE_TEST_DATA")
	if dir == "" {
		t.Skip("MILLRACE_TEST_DATA is not set")
	}
	pages, err := readBlockPages(dir)
	if err != nil {
		t.Fatal(err)
	}
	var k kept
	for i := range pages {
		k.note(&pages[i], &extracted{title: "no such title"})
	}
	if got := [5]int{k.code.of, k.language.of, k.table.of, k.heading.of, k.image.of}; got != [5]int{45, 17, 16, 176, 34} {
		t.Errorf("%d pages: code, language, tables, headings, images: %v", len(pages), got)
	}
	if k.code.n+k.language.n+k.table.n+k.heading.n+k.image.n > 0 {
		t.Errorf("empty extraction, but kept %+v", k)
	}
}
