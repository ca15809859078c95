package extract

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/andybalholm/cascadia"
	"golang.org/x/net/html"
)

// matches returns the indexes of the elements that a selector matches.
func matches(t testing.TB, doc *html.Node, text string) []int {
	t.Helper()
	s := &selection{}
	if err := s.add(text, 0); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var got []int
	i := 0
	s.walk(doc, func(_ *html.Node, rule int) bool {
		if rule >= 0 {
			got = append(got, i)
		}
		i++
		return true
	})
	return got
}

func parseDoc(t testing.TB, text string) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// Random selectors match the same elements as cascadia does, on random documents.
func TestSelectors(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var element func(depth int) string
	element = func(depth int) string {
		tag := pick("div", "p", "b", "ul", "li")
		inner := ""
		for range r.IntN(4) {
			if inner += pick("", "", "text ", "<!-- x -->"); depth < 5 {
				inner += element(depth + 1)
			}
		}
		return fmt.Sprintf("<%s class='%s %s' id=%s lang='%s'>%s</%s>", tag, pick("x", "y", "z"), pick("x", "w", ""), pick("a", "b", "c"), pick("de", "en", ""), inner, tag)
	}
	var compound func(depth int) string
	compound = func(depth int) string {
		s := pick("*", "div", "p", "LI", ".x", ".y", "#a", "[lang]", "[lang=de]", `[class~="w"]`, "b")
		for range r.IntN(2) {
			s += pick(".x", ".z", "#b", "[lang^=e]", ":first-child", ":last-child", ":only-child", ":nth-child(2n+1)", ":nth-child(-n+2)", ":nth-last-child(2)", ":nth-child(even)",
				":first-of-type", ":last-of-type", ":only-of-type", ":nth-of-type(2)", ":nth-last-of-type(odd)", ":empty", ":root")
		}
		if depth < 2 && r.IntN(4) == 0 {
			s += pick(":not(", ":has(") + compound(depth+1) + ", " + compound(depth+1) + ")"
		}
		return s
	}
	matched := 0
	for range 300 {
		doc := parseDoc(t, element(0)+element(0)+element(0))
		sel := compound(0)
		for range r.IntN(4) {
			sel += pick(" ", " > ", "+", " ~ ", ">") + compound(0)
		}
		if r.IntN(5) == 0 {
			sel += " , " + compound(0)
		}
		want, err := cascadia.ParseGroup(sel)
		if err != nil {
			t.Fatalf("%s: %v", sel, err)
		}
		var is []int
		i := 0
		for n := range doc.Descendants() {
			if n.Type == html.ElementNode {
				if want.Match(n) {
					is = append(is, i)
				}
				i++
			}
		}
		matched += len(is)
		if got := matches(t, doc, sel); fmt.Sprint(got) != fmt.Sprint(is) {
			t.Errorf("%s: got %v, want %v", sel, got, is)
		}
	}
	if matched < 200 {
		t.Errorf("only %d matches, too few for this test", matched)
	}
}

// These selectors are not supported by cascadia.
func TestSelectorsMore(t *testing.T) {
	doc := parseDoc(t, `<section class="md:w-1/2 1st"><h2>Related</h2><p>x</p></section><section><div><h2>Other</h2></div></section><p id="-1">y</p>`)
	for sel, want := range map[string]int{
		"section:has(> h2)": 1, "section:has(h2)": 2, ":is(h2, p)": 4, ":where(h2):not(div > h2, p)": -1, `.md\:w-1\/2`: 1, `.\31 st`: 1, `#-\31 `: 1, `h2:containsOwn("related")`: 1,
		"section:has(div:has(> h2))": 1, "body>section:nth-child( 2 )": 1, "p:is(#\\-1)": 1, "SECTION": 2,
	} {
		if want < 0 {
			if err := (&selection{}).add(sel, 0); err == nil {
				t.Errorf("%s has no error", sel)
			}
			continue
		}
		if got := matches(t, doc, sel); len(got) != want {
			t.Errorf("%s: %d elements, want %d", sel, len(got), want)
		}
	}
}

func TestCSSName(t *testing.T) {
	for name, want := range map[string]string{
		"a": "a", "a1": "a1", "1a": `\31 a`, "-": `\-`, "--": `\--`, "-1": `-\31 `, "--1": `--\31 `, "--x": "--x", "md:w-1/2": `md\:w-1\/2`, "[&>p]": `\[\&\>p\]`, "größe": "größe", `a\b`: `a\\b`, "a'b\"": `a\'b\"`,
		"": "", "a b": "", "a\x00": "", strings.Repeat("x", 81): "",
	} {
		got, ok := cssName(name)
		if got != want || ok != (want != "") {
			t.Errorf("%q: %q %t", name, got, ok)
		}
		if !ok {
			continue
		}
		n := &html.Node{Type: html.ElementNode, Data: "p", Attr: []html.Attribute{{Key: "id", Val: name}, {Key: "class", Val: "x " + name}}}
		for _, sel := range []string{"#" + got, "." + got} {
			if s, err := cascadia.Parse(sel); err != nil || !s.Match(n) {
				t.Errorf("%q: %s: %v", name, sel, err)
			}
		}
	}
}

// checkSelectors checks that cascadia and Rules accept every selector in a Result.
func checkSelectors(t *testing.T, res *Result) {
	t.Helper()
	list := []string{res.Root}
	for _, d := range res.Dropped {
		list = append(list, d.Selector)
	}
	for _, k := range res.Kept {
		list = append(list, k.Selector)
	}
	for _, s := range list {
		if _, err := cascadia.Parse(s); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if _, err := NewRules(&RulesOptions{Drop: []string{s}}); err != nil {
			t.Fatal(err)
		}
	}
}
