package index

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/chunk"
)

// TestFresh edits a site at random and updates the index from time to time. Searches return
// only passages of the view. In the end they equal those of a new index of the same pages.
func TestFresh(t *testing.T) {
	ctx := t.Context()
	rng := rand.New(rand.NewPCG(6, 9))
	words := strings.Fields("heron otter mill wheel die the of turning turns stone stones max_connections configure configured Mühle läuft schnell 水車 水 backup restore")
	text := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = words[rng.IntN(len(words))] + []string{"", "", "", ".", fmt.Sprint(" n", rng.IntN(90))}[rng.IntN(5)]
		}
		return strings.Join(list, " ")
	}
	pages := make(map[string]*millrace.Page)
	put := func(p *millrace.Page) millrace.Change {
		pages[p.URL] = p
		return put(p)
	}
	edit := func(language string) millrace.Change {
		url := fmt.Sprintf("%sp%02d", base, rng.IntN(40))
		p, ok := pages[url]
		block := millrace.Block{Type: millrace.TextBlock, Text: text(10 + rng.IntN(120))}
		switch i := rng.IntN(7); {
		case !ok:
			p = &millrace.Page{
				URL: url, Title: text(3), Language: language, Detail: millrace.DetailBlocks, Blocks: []millrace.Block{block},
				Known: millrace.FieldTitle | millrace.FieldLanguage | millrace.FieldContent,
			}
		case i == 0:
			delete(pages, url)
			return millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: url}}
		case i == 1:
			p = p.Clone()
			p.Title = text(3)
		case i == 2:
			p = p.Clone()
			p.Blocks = append(p.Blocks, millrace.Block{Type: millrace.HeadingBlock, Level: 2, Text: text(2)}, block)
		default:
			p = p.Clone()
			p.Language = language
			p.Blocks[rng.IntN(len(p.Blocks))] = block
		}
		return put(p)
	}
	f := newFixture(t)
	var views []millrace.View
	for i := range 16 {
		for range 30 {
			f.apply(edit([]string{"de", "ja", "en", "de"}[i%4]))
		}
		views = append(views, f.head())
		switch i % 5 {
		case 0:
			f.update()
		case 2: // to an older view
			if err := f.index.Update(ctx, views[i-1], nil); err != nil {
				t.Fatal(err)
			}
		case 3:
			f.pass(time.Hour)
			if err := f.site.Compact(ctx, 30*time.Minute, 30*time.Minute); err != nil {
				t.Fatal(err)
			}
			views = append(views[:0], make([]millrace.View, i+1)...)
			views[i] = f.head()
		}
		for _, v := range views[max(0, i-2):] {
			if v != nil {
				verifyHits(f, v, text(2))
			}
		}
	}
	// Make all pages English.
	var last, all []millrace.Change
	for _, p := range pages {
		p = p.Clone()
		p.Language = "en"
		last = append(last, put(p))
	}
	f.apply(last...)
	f.update()
	for _, p := range pages {
		all = append(all, put(p))
	}
	fresh := newFixture(t)
	fresh.apply(all...)
	fresh.update()
	for i := range 150 {
		q := millrace.Query{Text: text(1 + rng.IntN(4)), Limit: 100}
		switch i % 6 {
		case 1:
			q.Text = `"` + q.Text + `"`
		case 2:
			q.Text = "title:" + q.Text
		case 3:
			q.Text += " -" + words[rng.IntN(len(words))]
		case 4:
			q.Text = "url:p0 " + q.Text
		case 5:
			q.Text = "x" + q.Text
		}
		if d := cmp.Diff(fresh.ask(fresh.head(), q), f.ask(f.head(), q)); d != "" {
			t.Fatalf("%q has different results after edits (-fresh +edited): %s", q.Text, d)
		}
	}
}

// verifyHits verifies that each hit is a passage of a page in the view.
func verifyHits(f *fixture, v millrace.View, question string) {
	f.Helper()
	found, err := f.index.Search(f.Context(), v, millrace.Query{Text: question, Limit: 100})
	if errors.Is(err, millrace.ErrUnavailable) && f.state().stage < comparing {
		return
	} else if err != nil {
		f.Fatal(err)
	}
	for _, h := range found.Hits {
		p, err := v.Page(f.Context(), millrace.Ref{URL: h.URL})
		if err != nil {
			f.Fatalf("%q finds a page that the view does not have: %v", question, err)
		}
		if p.Title != h.Title || !slices.ContainsFunc(chunk.Passages(p), func(c chunk.Passage) bool { return c.ID == h.Chunk && c.Text == h.Text }) {
			f.Fatalf("%q finds a passage that the view does not have: %+v", question, h)
		}
	}
}

// An index reports whether searches find everything.
func TestLag(t *testing.T) {
	f := newFixture(t)
	f.puts("/a")
	v := f.head()
	if err := f.index.Lag(t.Context(), v); !errors.Is(err, millrace.ErrUnavailable) {
		t.Errorf("before the index is built: %v", err)
	}
	f.update()
	if err := f.index.Lag(t.Context(), v); err != nil {
		t.Errorf("complete: %v", err)
	}
	f.puts("/b")
	if err := f.index.Lag(t.Context(), f.head()); millrace.ErrorCode(err) != "index-behind" {
		t.Errorf("behind: %v", err)
	}
}
