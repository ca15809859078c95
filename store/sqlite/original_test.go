package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// TestFirstVersion brings a store of the first version up to date: what
// testdata/v1.sql holds was written by it.
func TestFirstVersion(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "v1.db")
	dump, err := os.ReadFile(filepath.Join("testdata", "v1.sql"))
	if err != nil {
		t.Fatal(err)
	}
	// The rule of visibility has moved since, by which what is published counts
	// as none; it is not what this is about.
	dump = bytes.ReplaceAll(dump, []byte("aa7bbf333ac7437fd93a4903113e879f"), []byte(fingerprint(store.Config{Base: benchBase, Docs: benchBase})))
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{string(dump), fmt.Sprint("PRAGMA application_id = ", applicationID), "PRAGMA user_version = 1"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it is up to date
		s, err := Open(ctx, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		site, err := s.Site(ctx, "v1", store.Config{Base: benchBase})
		if err != nil {
			t.Fatal(err)
		}
		var held []string
		for ref, err := range site.Held(ctx, "crawl") {
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, ref.URL[len(benchBase):]+"="+ref.Version)
		}
		if want := []string{"a=p5", "b=p2", "b.html=p4", "dup=m1"}; !slices.Equal(held, want) {
			t.Errorf("held: %q, want %q", held, want)
		}
		if c, err := site.Cursor(ctx, "crawl"); c != "cursor 1" || err != nil {
			t.Errorf("cursor %q, %v", c, err)
		}
		v, manifest, err := site.Published(ctx)
		if err != nil || string(manifest) != "manifest" || v.Site().Seq != 5 {
			t.Fatalf("published: %q, %v", manifest, err)
		}
		if p, err := v.Page(ctx, millrace.Ref{URL: "/a"}); err != nil || p.Text() != "Text of a, second edition." {
			t.Errorf("page: %+v, %v", p, err)
		}
		if _, err := site.Original(ctx, "crawl", benchBase+"a"); !errors.Is(err, millrace.ErrNotFound) {
			t.Errorf("original of an old page: %v", err)
		}
		if w, err := site.Weights(ctx, []string{"/a"}); err != nil || w[0] != (millrace.Weight{}) {
			t.Errorf("weight of an old page: %v, %v", w, err)
		}
		if w, n, err := site.MeanWeight(ctx); err != nil || n != 0 || w != (millrace.Weight{}) {
			t.Errorf("mean weight of old pages: %v of %d, %v", w, n, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	site, err := s.Site(ctx, "v1", store.Config{Base: benchBase})
	if err != nil {
		t.Fatal(err)
	}
	p := &millrace.Page{
		URL: benchBase + "a", Title: "A", Known: millrace.FieldTitle, Version: "p6", Original: []byte("original"),
		Weight: millrace.Weight{Bytes: 9, Received: 5},
	}
	if _, err := site.Apply(ctx, "crawl", []millrace.Change{{Ref: millrace.Ref{URL: p.URL}, Page: p}}); err != nil {
		t.Fatal(err)
	}
	if got, err := site.Original(ctx, "crawl", p.URL); string(got) != "original" || err != nil {
		t.Errorf("original %q, %v", got, err)
	}
	if w, err := site.Weights(ctx, []string{"/a"}); err != nil || w[0] != p.Weight {
		t.Errorf("weight %v, %v", w, err)
	}
	if err := s.Record(ctx, "v1", []store.Event{{Time: time.Now(), Bot: "GPTBot", Path: "/a", Status: 200}}); err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for sum, err := range s.Sums(ctx, "v1", store.SumQuery{}) {
		if n += sum.Events; err != nil {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("%d events", n)
	}
}

// TestOriginals counts the originals: none is left that no name has.
func TestOriginals(t *testing.T) {
	ctx := t.Context()
	site := benchSite(t, filepath.Join(t.TempDir(), "x.db"))
	rng := rand.New(rand.NewPCG(1, 1))
	batch := changesOf(rng, "a", 20, 500)
	for i := range batch {
		batch[i].Page.Original = fmt.Append(nil, "original ", i)
	}
	count := func(what string, want int) {
		t.Helper()
		var n int
		if err := site.store.read.row(ctx, "SELECT count(*) FROM original", nil, &n); err != nil || n != want {
			t.Errorf("%s: %d originals, want %d (%v)", what, n, want, err)
		}
	}
	apply := func(from string, batch ...millrace.Change) {
		t.Helper()
		if _, err := site.Apply(ctx, from, batch); err != nil {
			t.Fatal(err)
		}
	}
	apply("one", batch...)
	apply("two", batch...)
	count("two sources", 40)
	for i := range batch {
		batch[i].Page.Original = fmt.Append(nil, "another ", i)
	}
	apply("one", batch...)
	count("replaced", 40)
	for _, c := range batch[:5] {
		apply("one", millrace.Change{Kind: millrace.Delete, Ref: c.Ref})
	}
	count("five pages are gone", 30)
	for _, c := range batch[5:10] {
		c.Version, c.Page = "", nil
		apply("one", c)
	}
	count("five versions are forgotten", 25)
}

// TestDamagedOriginal looks at what is said of one that does not decompress, or
// to more than there may be.
func TestDamagedOriginal(t *testing.T) {
	ctx := t.Context()
	site := benchSite(t, filepath.Join(t.TempDir(), "x.db"))
	c := changesOf(rand.New(rand.NewPCG(1, 1)), "a", 1, 500)[0]
	c.Page.Original = []byte("original")
	if _, err := site.Apply(ctx, "one", []millrace.Change{c}); err != nil {
		t.Fatal(err)
	}
	bomb := site.store.coder.enc.EncodeAll(make([]byte, millrace.MaxOriginal+1), nil)
	for _, data := range [][]byte{[]byte("x"), {}, bomb, bomb[:len(bomb)-1]} {
		err := site.store.writer.do(ctx, func(t *tx) error { return t.exec("UPDATE original SET data = ?", data) })
		if err != nil {
			t.Fatal(err)
		}
		if got, err := site.Original(ctx, "one", c.URL); !errors.Is(err, millrace.ErrInvalid) || len(got) > 0 {
			t.Errorf("%d bytes become %d, %v", len(data), len(got), err)
		}
	}
	// A page that comes again mends it.
	if _, err := site.Apply(ctx, "one", []millrace.Change{c}); err != nil {
		t.Fatal(err)
	}
	if got, err := site.Original(ctx, "one", c.URL); string(got) != "original" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if err := site.store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := site.Original(context.WithoutCancel(ctx), "one", c.URL); err == nil {
		t.Error("a store that is closed gives an original")
	}
}
