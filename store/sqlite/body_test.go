package sqlite

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// Two processes write to one file, and each uses the dictionaries that the other has created. A
// failed batch leaves neither a dictionary nor a body that needs one. A read-only process can read
// every page.
func TestDictionaries(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "x.db")
	sites := []openSite{benchSite(t, path), benchSite(t, path)}
	pages := make(map[string]*millrace.Page)
	rng := rand.New(rand.NewPCG(1, 2))
	for round, n := range []int{10, 40, 20, 30, 200, 300, 40, 60} {
		site := sites[round%2]
		batch := changesOf(rng, string(rune('a'+round)), n, 1500)
		bad := append(changesOf(rng, "never", 600, 300), millrace.Change{Kind: millrace.Put})
		if _, err := site.Apply(ctx, "one", bad); !errors.Is(err, millrace.ErrInvalid) {
			t.Fatal(err)
		}
		if _, err := site.Apply(ctx, "one", batch); err != nil {
			t.Fatal(err)
		}
		for _, c := range batch {
			pages[c.URL] = c.Page
		}
	}
	reader, err := Open(ctx, path, &store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, s := range []*Store{sites[0].store, sites[1].store, reader} {
		var made string
		err := s.db.read.row(ctx, "SELECT group_concat(made, ' ') FROM (SELECT made FROM dictionary ORDER BY made)", nil, &made)
		if err != nil || made != "64 512" {
			t.Errorf("dictionaries at %v, %v", made, err)
		}
		site, err := s.Site(ctx, "bench", benchBase)
		if err != nil {
			t.Fatal(err)
		}
		v, err := site.Head(ctx)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for p, err := range v.Scan(ctx, millrace.Scan{WithBlocks: true}) {
			if err != nil {
				t.Fatal(err)
			}
			if want := pages[p.URL]; want == nil || len(p.Blocks) != len(want.Blocks) || p.Text() != want.Text() {
				t.Errorf("%s is another page", p.URL)
			}
			n++
		}
		if n != len(pages) {
			t.Errorf("%d pages of %d", n, len(pages))
		}
	}
	var frames, texts int
	err = sites[0].store.db.read.row(context.Background(), "SELECT sum(length(data)) FROM body", nil, &frames)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		texts += len(p.Text())
	}
	if frames > texts*2/3 {
		t.Errorf("%d bytes of frames for %d of text", frames, texts)
	}
}

// Reading a body whose dictionary is missing returns the error store-damaged.
func TestLostDictionary(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "x.db")
	site := benchSite(t, path)
	batch := changesOf(rand.New(rand.NewPCG(1, 2)), "a", 70, 500)
	if _, err := site.Apply(ctx, "one", batch); err != nil {
		t.Fatal(err)
	}
	if err := site.store.db.writer.do(ctx, func(t *tx) error { return t.Exec("DELETE FROM dictionary") }); err != nil {
		t.Fatal(err)
	}
	v, err := benchSite(t, path).Head(ctx) // a new store, without cached dictionaries
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Page(ctx, batch[0].Ref); err != nil {
		t.Error("coded without a dictionary:", err)
	}
	if _, err := v.Page(ctx, batch[69].Ref); millrace.ErrorCode(err) != "store-damaged" || errors.Is(err, millrace.ErrConflict) {
		t.Error(err)
	}
}
