package extract

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// Whatever rules and templates say of whatever document, blocks keep their
// promises, fields stay, and nothing takes long.
func FuzzRules(f *testing.F) {
	f.Add([]byte(page), "aside, #special", ".plug", "div#page", true)
	f.Add([]byte(newSoup(1, 1).pages[0].html), "div.t:nth-child(2)", "div:has(> .t) ~ div", "body > div:nth-child(1) > div:nth-child(2)", false)
	for i, c := range blockCases {
		sel := []string{"li", "td", "p > *", "[class]", "figure, img", ":not(p)", "a, code", "pre *"}
		f.Add([]byte(c.html), sel[i%len(sel)], sel[(i+3)%len(sel)], "main", i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, data []byte, keep, drop, root string, comments bool) {
		o := &RulesOptions{Comments: comments, Template: &Template{Root: root, Differs: 1}}
		if keep != "" {
			o.Keep = []string{keep}
		}
		if drop != "" {
			o.Drop = []string{drop}
		}
		rules, err := NewRules(o)
		if err != nil {
			if !errors.Is(err, millrace.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		const url = "https://example.com/a/b"
		alone, err := HTML(t.Context(), data, url, &Options{MaxBytes: 1 << 18})
		if err != nil {
			return
		}
		res, err := HTML(t.Context(), data, url, &Options{MaxBytes: 1 << 18, Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		checkBlocks(t, res.Page.Blocks)
		checkSelectors(t, res)
		if (len(res.Page.Blocks) == 0) != (res.Reason != nil) {
			t.Fatalf("%d blocks, reason %v", len(res.Page.Blocks), res.Reason)
		}
		a, b := alone.Page.Clone(), res.Page.Clone()
		a.Blocks, b.Blocks, a.Language, b.Language, a.Kind, b.Kind = nil, nil, "", "", "", ""
		if d := cmp.Diff(a, b); d != "" {
			t.Fatal(d)
		}
		if d := cmp.Diff(alone.Links, res.Links); d != "" {
			t.Fatal(d)
		}
		again, err := HTML(t.Context(), data, url, &Options{MaxBytes: 1 << 18, Rules: rules})
		if err != nil || !reflect.DeepEqual(res, again) {
			t.Fatal("not deterministic")
		}
		blocks, err := Fragment(t.Context(), data, url, &Options{Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		checkBlocks(t, blocks)
		l := &Learner{}
		for i := range 10 { // to learn from what is hardly distinct is no harm
			if err := l.Add(t.Context(), data, "https://example.com/"+string(rune('a'+i)), &Options{MaxBytes: 1 << 18}); err != nil {
				t.Fatal(err)
			}
		}
		if tm := l.Template(); tm != nil {
			t.Fatalf("one page counts as %d", tm.Pages)
		}
	})
}
