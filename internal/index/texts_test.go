package index

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/chunk"
	"github.com/millrace/millrace/internal/search"
)

func TestTexts(t *testing.T) {
	passages := []chunk.Passage{
		{Type: chunk.Paragraph, Text: "One."},
		{Type: chunk.List, Headings: []string{"", "A heading"}, Inside: []string{"Inside", "Again"}, Text: string(make([]byte, 300))},
		{Type: chunk.Code, Inside: []string{"x"}, Text: "Last ¾"},
	}
	var all []byte
	for i := range passages {
		all = appendText(all, &passages[i])
	}
	for i, want := range passages {
		if got, err := passageOf(all, i); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("passage %d is %+v, %v", i, got, err)
		}
	}
	for n := range all {
		if _, err := passageOf(all[:n], 2); !errors.Is(err, errDamaged) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := passageOf(all, 3); !errors.Is(err, errDamaged) {
		t.Error(err)
	}
}

// Each passage of a page of many parts is read, in any order.
func TestParts(t *testing.T) {
	f := newFixture(t)
	var list []*millrace.Page
	for i := range 3 {
		list = append(list, prose(fmt.Sprintf("/p%d", i), i, 20_000))
		f.apply(put(list[i]))
	}
	f.update()
	err := f.index.read(t.Context(), func(c *conn) error {
		for i, page := range list {
			want := chunk.Passages(page)
			var id int64
			err := c.row("SELECT id FROM page WHERE url LIKE ?", []any{fmt.Sprintf("%%p%d", i)}, &id)
			if err != nil {
				return err
			}
			all, err := f.index.textsOf(c, id)
			if err != nil {
				return err
			}
			parts := map[int]bool{}
			for _, ord := range rand.New(rand.NewPCG(1, 2)).Perm(len(want)) {
				var s search.Text
				if err := f.index.searchText(c, all, &s, ord); err != nil {
					return err
				}
				if s.Text != want[ord].Text || !slices.Equal(s.Headings, slices.Concat(want[ord].Headings, want[ord].Inside)) {
					t.Errorf("page %d, passage %d: %+v", i, ord, s)
				}
				parts[all.first] = true
			}
			if len(parts) < 3 {
				t.Errorf("page %d of %d passages has %d parts", i, len(want), len(parts))
			}
			var s search.Text
			if err := f.index.searchText(c, all, &s, len(want)); !errors.Is(err, errDamaged) {
				t.Errorf("after the last passage: %v", err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// If a text cannot be decoded, the search fails and the next update rebuilds the index.
func TestDamagedText(t *testing.T) {
	f := newFixture(t)
	for i := range 20 {
		f.apply(put(prose(fmt.Sprintf("/p%03d", i), i, 100)))
	}
	f.update()
	err := f.index.change(t.Context(), func(w *work) error {
		_, err := w.exec("UPDATE texts SET data = substr(data, 1, length(data) - 4) || x'00000000'")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	v := f.head()
	if _, err := f.index.Search(t.Context(), v, millrace.Query{Text: "text1"}); !errors.Is(err, errDamaged) {
		t.Error(err)
	}
	f.update()
	want(f, "found", len(f.search(v, "text1")), 1)
}

// Passages that are added, deleted and moved keep their own texts.
func TestTextsOfEdits(t *testing.T) {
	f := newFixture(t)
	page := func(parts ...string) millrace.Change {
		p := article("/a", "")
		p.Blocks = nil
		for _, part := range parts {
			p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.HeadingBlock, Level: 2, Text: "About " + part},
				millrace.Block{Type: millrace.TextBlock, Text: "Here stands " + part + strings.Repeat(" and it is long", 100)})
		}
		return put(p)
	}
	for _, parts := range [][]string{{"one", "two", "three"}, {"three", "one", "two"}, {"four", "two"}, {"two"}, {"five", "two", "six"}} {
		f.apply(page(parts...))
		f.update()
		for _, part := range []string{"one", "two", "three", "four", "five", "six"} {
			var texts, expected []string
			for _, h := range f.ask(f.head(), millrace.Query{Text: part}).Hits {
				_, text, _ := strings.Cut(h.Text, "Here stands ")
				name, _, _ := strings.Cut(text, " ")
				texts = append(texts, name)
			}
			for _, p := range parts {
				if p == part {
					expected = []string{part}
				}
			}
			if !reflect.DeepEqual(texts, expected) {
				t.Errorf("%v: %s finds %q", parts, part, texts)
			}
		}
	}
}
