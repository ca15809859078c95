package agent

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/dcz"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/store/memory"
)

// The folder stays below its limit: those that were used least recently go first. A damaged
// file is absent, and the file of a dictionary that the index no longer has is deleted.
func TestDictionaries(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st := memory.New(nil)
	defer st.Close()
	d := dictionaries{state: st.State(), folder: filepath.Join(t.TempDir(), "d"), max: 3000}
	const origin = "https://x.test:443"
	content := func(n byte) ([]byte, dcz.ID) {
		b := bytes.Repeat([]byte{n}, 1000)
		return b, dcz.Sum(b)
	}
	add := func(n byte, match string) {
		t.Helper()
		b, id := content(n)
		if err := d.Write(ctx, origin, id, b); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(time.Duration(n)*time.Minute - time.Hour)
		if err := os.Chtimes(filepath.Join(d.folder, fileOf(origin, id)), old, old); err != nil {
			t.Fatal(err)
		}
		if err := d.Update(ctx, origin, func(ix *fetch.DictionaryIndex) {
			ix.Held = append(ix.Held, fetch.Dictionary{Hash: id.Field(), Match: match})
		}); err != nil {
			t.Fatal(err)
		}
	}
	has := func(n byte) bool {
		t.Helper()
		b, id := content(n)
		got, err := d.Read(ctx, origin, id)
		if err == nil && !bytes.Equal(got, b) || err != nil && !errors.Is(err, millrace.ErrNotFound) {
			t.Error(err)
		}
		return err == nil
	}
	add(1, "/1")
	add(2, "/2")
	add(3, "/3")
	if !has(1) || has(9) {
		t.Error("read")
	}
	add(4, "/4")
	if !has(1) || has(2) || !has(3) || !has(4) {
		t.Error("not the least recently used was deleted")
	}
	if err := d.Update(ctx, origin, func(ix *fetch.DictionaryIndex) { ix.Held = ix.Held[2:] }); err != nil {
		t.Fatal(err)
	}
	if ix, err := d.Index(ctx, origin); err != nil || len(ix.Held) != 2 || has(1) || !has(3) {
		t.Error(ix, err)
	}
	_, id := content(3)
	if err := os.WriteFile(filepath.Join(d.folder, fileOf(origin, id)), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if has(3) {
		t.Error("a damaged file is read")
	}
	if ix, err := d.Index(ctx, "https://y.test:443"); err != nil || len(ix.Held) > 0 {
		t.Error(ix, err)
	}
}
