package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace"
)

// TestOriginals counts the stored originals: an original is deleted with its last name.
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
		if err := site.store.db.read.row(ctx, "SELECT count(*) FROM original", nil, &n); err != nil || n != want {
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

// TestDamagedOriginal checks the error for an original that does not decompress.
func TestDamagedOriginal(t *testing.T) {
	ctx := t.Context()
	site := benchSite(t, filepath.Join(t.TempDir(), "x.db"))
	c := changesOf(rand.New(rand.NewPCG(1, 1)), "a", 1, 500)[0]
	c.Page.Original = []byte("original")
	if _, err := site.Apply(ctx, "one", []millrace.Change{c}); err != nil {
		t.Fatal(err)
	}
	var frame []byte
	if err := site.store.db.read.row(ctx, "SELECT data FROM original", nil, &frame); err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{[]byte("x"), {}, frame[1:], frame[:len(frame)-1]} {
		err := site.store.db.writer.do(ctx, func(t *tx) error { return t.Exec("UPDATE original SET data = ?", data) })
		if err != nil {
			t.Fatal(err)
		}
		if got, err := site.Original(ctx, "one", c.URL); !errors.Is(err, millrace.ErrInvalid) || len(got) > 0 {
			t.Errorf("%d bytes become %d, %v", len(data), len(got), err)
		}
	}
	// Applying the same page again repairs its original.
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
		t.Error("a closed store returned an original")
	}
}
