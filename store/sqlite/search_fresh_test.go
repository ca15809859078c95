package sqlite

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// TestSearchFresh edits a site at random, and holds each answer to the one of
// an index of the same pages that was never edited.
func TestSearchFresh(t *testing.T) {
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
	open := func() *Site {
		s, err := Open(ctx, filepath.Join(t.TempDir(), "x.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		site, err := s.Site(ctx, "one", indexConfig)
		if err != nil {
			t.Fatal(err)
		}
		return site
	}
	seq := make(map[*Site]uint64) // that is published
	apply := func(site *Site, batch []millrace.Change) millrace.Searcher {
		t.Helper()
		if _, err := site.Apply(ctx, "one", batch); err != nil {
			t.Fatal(err)
		}
		head, err := site.Head(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := site.Publish(ctx, seq[site], head.Site().Seq, nil); err != nil {
			t.Fatal(err)
		}
		seq[site] = head.Site().Seq
		v, _, err := site.Published(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return v.(millrace.Searcher)
	}
	pages := make(map[string]*millrace.Page)
	put := func(p *millrace.Page) millrace.Change {
		pages[p.URL] = p
		return millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p}
	}
	edit := func(language string) millrace.Change {
		url := fmt.Sprintf("%sp%02d", benchBase, rng.IntN(40))
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
	site := open()
	for i := range 16 {
		var batch []millrace.Change
		for range 30 {
			batch = append(batch, edit([]string{"de", "ja", "en", "de"}[i%4]))
		}
		if apply(site, batch); i == 8 {
			if err := site.Compact(ctx, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Nobody writes German any more.
	var last, all []millrace.Change
	for _, p := range pages {
		p = p.Clone()
		p.Language = "en"
		last = append(last, put(p))
	}
	edited := apply(site, last)
	for _, p := range pages {
		all = append(all, put(p))
	}
	fresh := apply(open(), all)
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
		want, err := fresh.Search(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := edited.Search(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%q finds another thing after edits (-fresh +edited): %s", q.Text, d)
		}
	}
}
