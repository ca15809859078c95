package sqlite

import (
	"database/sql"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/internal/sqlstore"
)

// A damaged original is found. After the repair, the page is fetched again.
func TestVerifyOriginal(t *testing.T) {
	const name, source = "https://mill.example/", "test"
	path := filepath.Join(t.TempDir(), "s.db")
	open := func(o *store.Options) (*Store, store.Site) {
		t.Helper()
		st, err := Open(t.Context(), path, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		site, err := st.Site(t.Context(), name, name)
		if err != nil {
			t.Fatal(err)
		}
		return st, site
	}
	st, site := open(nil)
	page := &millrace.Page{URL: name + "a", Title: "a", Known: millrace.FieldTitle, Original: []byte("original")}
	batch := []millrace.Change{
		{Ref: millrace.Ref{URL: page.URL, Version: "1"}, Page: page},
		{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: "c"}},
	}
	if _, err := site.Apply(t.Context(), source, batch); err != nil {
		t.Fatal(err)
	}
	verify := func(st *Store, repair bool, want int) error {
		t.Helper()
		n := 0
		_, err := st.Verify(t.Context(), repair, func(at string, err error, repaired bool) {
			if n++; at != name+" /a" || millrace.ErrorCode(err) != "store-damaged" || repaired != repair {
				t.Errorf("%q: %v, repaired: %t", at, err, repaired)
			}
		})
		if n != want {
			t.Errorf("%d damaged, want %d", n, want)
		}
		return err
	}
	if err := verify(st, false, 0); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("UPDATE original SET data = x'00'"); err != nil {
		t.Fatal(err)
	}
	reader, _ := open(&store.Options{ReadOnly: true})
	if err := verify(reader, false, 1); err != nil {
		t.Error(err)
	}
	if err := errors.Join(verify(st, false, 1), verify(st, true, 1), verify(st, true, 0)); err != nil {
		t.Error(err)
	}
	if _, err := site.Original(t.Context(), source, page.URL); !errors.Is(err, millrace.ErrNotFound) {
		t.Errorf("original: %v", err)
	}
	if c, err := site.Cursor(t.Context(), source); c != "" || err != nil {
		t.Errorf("cursor %q, %v", c, err)
	}
	for ref, err := range site.KnownRefs(t.Context(), source) {
		if ref.Version != "" || err != nil {
			t.Errorf("%+v, %v", ref, err)
		}
	}
}

// A damaged tag or dictionary is found. After the repair, the site is published again.
func TestVerifyTags(t *testing.T) {
	tagger := millrace.Tagger{Protocol: "long", Tag: func(_ millrace.Site, p *millrace.Page) (string, error) {
		return strings.Repeat("words of "+p.URL+" ", 20), nil
	}}
	config := store.Config{Base: benchBase, Taggers: []millrace.Tagger{tagger}}
	for damage, statement := range map[string]string{
		"long":       "UPDATE tag SET value = x'28b52ffd00' WHERE url LIKE '%a/000'",
		"dictionary": "UPDATE dictionary SET data = substr(data, 2)",
	} {
		t.Run(damage, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s.db")
			site := benchSite(t, path)
			if _, err := site.Apply(t.Context(), "one", changesOf(rand.New(rand.NewPCG(1, 2)), "a", 40, 300)); err != nil {
				t.Fatal(err)
			}
			publication := func(site openSite) millrace.View {
				t.Helper()
				pub, err := site.Publication(t.Context(), config)
				if err != nil {
					t.Fatal(err)
				}
				return refreshed(t, pub)
			}
			_ = publication(site)
			if err := site.store.db.Write(t.Context(), sqlstore.Lock{}, func(t sqlstore.Tx) error { return t.Exec(statement) }); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				repair bool
				found  bool
			}{{false, true}, {true, true}, {true, false}} {
				st, err := Open(t.Context(), path, nil)
				if err != nil {
					t.Fatal(err)
				}
				found := false
				_, err = st.Verify(t.Context(), c.repair, func(at string, err error, repaired bool) {
					found = found || strings.HasPrefix(at, damage)
					if millrace.ErrorCode(err) != "store-damaged" || repaired != c.repair {
						t.Errorf("%q: %v, repaired: %t", at, err, repaired)
					}
				})
				if err := errors.Join(err, st.Close()); err != nil || found != c.found {
					t.Fatalf("repair %t: found: %t, %v", c.repair, found, err)
				}
			}
			if n := publication(benchSite(t, path)).Site().Pages; n != 40 {
				t.Errorf("%d pages are published", n)
			}
		})
	}
}
