package index

import (
	"errors"
	"fmt"
	"reflect"
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
	var all texts
	for i := range passages {
		all.data = appendText(all.data, &passages[i])
	}
	for i, want := range passages {
		if got, err := all.at(i); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("passage %d is %+v, %v", i, got, err)
		}
	}
	for n := range all.data {
		if _, err := (texts{data: all.data[:n]}).at(2); !errors.Is(err, errDamaged) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := all.at(3); !errors.Is(err, errDamaged) {
		t.Error(err)
	}
	var s search.Text
	if err := all.fill(&s, 1); err != nil || len(s.Headings) != 4 || len(s.Text) != 300 {
		t.Errorf("%+v, %v", s, err)
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
