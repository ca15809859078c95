package chunk

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// passages formats the passages of a page: headings above, headings inside, type and text.
func passages(page *millrace.Page) []string {
	var out []string
	for _, p := range Passages(page) {
		out = append(out, strings.Join(p.Headings, " > ")+"|"+strings.Join(p.Inside, " ")+"|"+p.Type+"|"+p.Text)
	}
	return out
}

func TestPassages(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("A text that is long has some words. ", 40))
	half := long[:700]
	for _, c := range []struct {
		name string
		page millrace.Page
		want []string
	}{
		{"nothing", millrace.Page{}, nil},
		{"a title only", millrace.Page{Title: "T"}, []string{"||paragraph|"}},
		{"fields only", millrace.Page{Title: "T", Description: "D", Summary: " S\n"}, []string{"||paragraph|S"}},
		{"a description", millrace.Page{Description: "D"}, []string{"||paragraph|D"}},
		{
			"one passage",
			millrace.Page{Title: "T", Blocks: []block{text("one"), code("two"), text("three")}},
			[]string{"||paragraph|one\n\ntwo\n\nthree"},
		},
		{
			"headings are in the passage of the text below, and the title is not among them",
			millrace.Page{Title: "The  title", Blocks: []block{
				heading(1, "the TITLE"), text(long), heading(2, "A"), heading(3, "B"), text(long), heading(3, "C"), text("x"), heading(2, "D"), code("y"),
			}},
			[]string{"||paragraph|the TITLE\n" + long, "A > B|C D|paragraph|A\nB\n" + long + "\n\nC\nx\n\nD\ny"},
		},
		{
			"the path to a text in the middle of a section",
			millrace.Page{Blocks: []block{heading(1, "A"), heading(2, "B"), text(long), text(long), heading(2, "C"), text(long)}},
			[]string{"A > B||paragraph|A\nB\n" + long, "A > B||paragraph|" + long, "A > C||paragraph|C\n" + long},
		},
		{
			"short sections share a passage",
			millrace.Page{Blocks: []block{heading(1, "Terms"), heading(2, "race"), text("a channel"), heading(2, "mill"), text("a machine")}},
			[]string{"Terms > race|mill|paragraph|Terms\nrace\na channel\n\nmill\na machine"},
		},
		{
			"a cut above a higher heading is better than one above a lower heading or at the end of a paragraph",
			millrace.Page{Blocks: []block{
				text(half), heading(3, "a"), text(half), heading(2, "b"), text("x"), heading(3, "c"), text(half), text(half),
			}},
			[]string{"|a|paragraph|" + half + "\n\na\n" + half, "b|c|paragraph|b\nx\n\nc\n" + half + "\n\n" + half},
		},
		{"headings only", millrace.Page{Title: "T", Blocks: []block{heading(1, "A"), heading(1, "B")}}, []string{"B||heading|A\nB"}},
		{"the title as the only heading", millrace.Page{Title: "T", Blocks: []block{heading(1, "T")}}, []string{"T||heading|T"}},
		{
			"the type of most of the text",
			millrace.Page{Blocks: []block{heading(1, long), text("see"), {Type: millrace.ListBlock, Items: []millrace.Item{{Text: "some more"}}}}},
			[]string{long + "||list|" + long + "\nsee\n\n- some more"},
		},
	} {
		if d := cmp.Diff(c.want, passages(&c.page)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		checkInvariants(t, &c.page)
	}
}

// A long section is cut between blocks, but not between a text and the code it introduces.
func TestPassagesLong(t *testing.T) {
	var blocks []block
	for i := range 40 {
		blocks = append(blocks, text(fmt.Sprintf("Step %d. ", i)+strings.Repeat("Some words of it. ", 8)+"Type:"), code(fmt.Sprintf("run %d", i)))
	}
	out := Passages(&millrace.Page{Blocks: blocks})
	for _, p := range out {
		if strings.HasSuffix(p.Text, ":") || strings.HasPrefix(p.Text, "run") {
			t.Errorf("cut between a text and its code: %q", p.Text)
		}
	}
	if len(out) < 4 || len(out) > 15 {
		t.Errorf("%d passages", len(out))
	}
	// Code that fits into a passage is not divided.
	source := strings.Repeat("x = 1\n", 250)
	out = Passages(&millrace.Page{Blocks: []block{text(strings.Repeat("Words. ", 200)), code(source), text(strings.Repeat("Words. ", 200))}})
	found := false
	for _, p := range out {
		found = found || strings.Contains(p.Text, strings.TrimSpace(source))
	}
	if !found {
		t.Errorf("code of %d characters is divided", len(source))
	}
	// Joining the parts of one paragraph restores its text.
	s := strings.TrimSpace(strings.Repeat("水车把水引到磨坊。", 300))
	out = Passages(&millrace.Page{Blocks: []block{text(s)}})
	var all string
	for _, p := range out {
		all += p.Text
	}
	if all != s {
		t.Error("the text has changed")
	}
}

// The ID of a passage does not change when an equal passage is added after it.
func TestIDs(t *testing.T) {
	a, b := text(strings.Repeat("a", 1500)), text(strings.Repeat("b", 1500))
	one := Passages(&millrace.Page{Blocks: []block{a, b}})
	two := Passages(&millrace.Page{Blocks: []block{a, a, code(a.Text), b}})
	if one[0].ID != two[0].ID || one[1].ID != two[3].ID || two[0].ID == two[1].ID || two[0].ID == two[2].ID {
		t.Errorf("ids %v and %v", one, two)
	}
}

func Example() {
	page := &millrace.Page{Title: "Mills", Blocks: []millrace.Block{
		{Type: millrace.HeadingBlock, Level: 2, Text: "Parts"},
		{Type: millrace.TextBlock, Text: "A race carries water to the wheel."},
		{Type: millrace.ListBlock, Items: []millrace.Item{{Text: "wheel"}, {Text: "stones"}}},
	}}
	for _, p := range Passages(page) {
		fmt.Printf("%s %s %v %q\n", p.ID, p.Type, p.Headings, p.Text)
	}
	// Output:
	// 6opm57hgc3fpe paragraph [Parts] "Parts\nA race carries water to the wheel.\n\n- wheel\n- stones"
}
