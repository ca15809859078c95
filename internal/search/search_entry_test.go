package search

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An entry does not depend on the previous passages.
func TestIndexerKeepsNoState(t *testing.T) {
	x := NewIndexer()
	x.Entry(Text{Title: "Wheels", Language: "en", Text: "The wheel turns."})
	x.Content(Text{Title: "Rivers", Language: "en", Text: "Water falls."})
	got := x.Entry(Text{Title: "Mills", Language: "en"})
	want := NewIndexer().Entry(Text{Title: "Mills", Language: "en"})
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("an entry of a title alone differs (-want +got):\n%s", d)
	}
}

// An extra form, such as that of a word with hyphens, does not split a phrase.
func TestIndexerPhrases(t *testing.T) {
	e := NewIndexer().Entry(Text{Language: "en", Text: "Point-in-time recovery works."})
	if !strings.Contains(" "+e.Text+" ", " point in time recoveri work ") || !strings.Contains(e.Text, "pointintim") {
		t.Errorf("the terms are %q", e.Text)
	}
}
