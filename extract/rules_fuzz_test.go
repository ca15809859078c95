package extract

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// With any rules and any document, the blocks are valid, the fields do not change, and the result
// is deterministic.
func FuzzRules(f *testing.F) {
	f.Add([]byte(page), "aside, #special", ".plug", true)
	f.Add([]byte(page), "div.t:nth-child(2)", "div:has(> .t) ~ div", false)
	for i, c := range blockCases {
		sel := []string{"li", "td", "p > *", "[class]", "figure, img", ":not(p)", "a, code", "pre *"}
		f.Add([]byte(c.html), sel[i%len(sel)], sel[(i+3)%len(sel)], i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, data []byte, keep, drop string, comments bool) {
		o := &RulesOptions{Comments: comments}
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
	})
}
