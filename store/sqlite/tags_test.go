package sqlite

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// Long tags are stored compressed. Every process with the file open reads the original value, even
// if the value looks like a compressed frame.
func TestLongTags(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	value := func(url string) string {
		if strings.HasSuffix(url, "7") {
			return "\x28\xb5\x2f\xfd" + url
		}
		return fmt.Sprintf(`{"url":%q,"summary":"%s","indexable":true}`, url, strings.Repeat("words of "+url+" ", 20))
	}
	tagger := millrace.Tagger{Protocol: "long", Tag: func(_ millrace.Site, p *millrace.Page) (string, error) { return value(p.URL), nil }}
	config := store.Config{Base: benchBase, Taggers: []millrace.Tagger{tagger}}
	rng := rand.New(rand.NewPCG(1, 2))
	var views []millrace.View
	for round, n := range []int{10, 100, 3} {
		site := benchSite(t, path)
		if _, err := site.Apply(t.Context(), "one", changesOf(rng, string(rune('a'+round)), n, 300)); err != nil {
			t.Fatal(err)
		}
		pub, err := site.Publication(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		views = append(views, refreshed(t, pub))
	}
	var stored int
	if err := benchSite(t, path).store.db.read.row(t.Context(), "SELECT sum(length(value)) FROM tag", nil, &stored); err != nil {
		t.Fatal(err)
	}
	n, size := 0, 0
	for tag, err := range views[2].Tags(t.Context(), "long", "") {
		if err != nil {
			t.Fatal(err)
		}
		one, err := views[2].Tag(t.Context(), "long", tag.URL)
		if want := value(tag.URL); err != nil || tag.Value != want || one.Value != want {
			t.Errorf("%s: %q, %q, %v", tag.URL, tag.Value, one.Value, err)
		}
		n, size = n+1, size+len(tag.Value)
	}
	if n != 113 || stored > size/4 {
		t.Errorf("%d tags, %d bytes of %d", n, stored, size)
	}
}
