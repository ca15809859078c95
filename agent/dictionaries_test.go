package agent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/store/memory"
)

// The folder stays below its limit: the least recently used dictionaries are deleted first. A new
// dictionary replaces the last one with the same pattern.
func TestDictionaries(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	st := memory.New(nil)
	defer st.Close()
	d := dictionaries{state: st.State(), folder: filepath.Join(t.TempDir(), "d"), max: 3000}
	const origin = "https://x.test:443"
	add := func(n byte, fill byte) {
		t.Helper()
		match := fmt.Sprint("/", n)
		if err := d.Write(ctx, origin, match, bytes.Repeat([]byte{fill}, 1000)); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(time.Duration(n)*time.Minute - time.Hour)
		if err := os.Chtimes(filepath.Join(d.folder, fileOf(origin, match)), old, old); err != nil {
			t.Fatal(err)
		}
	}
	read := func(n byte) byte {
		t.Helper()
		got, err := d.Read(ctx, origin, fmt.Sprint("/", n))
		if err != nil && !errors.Is(err, millrace.ErrNotFound) || err == nil && len(got) != 1000 {
			t.Error(len(got), err)
		}
		return append(got, 0)[0]
	}
	add(1, 'a')
	add(2, 'b')
	add(3, 'c')
	add(3, 'd')
	if read(1) != 'a' || read(3) != 'd' || read(9) != 0 {
		t.Error("read")
	}
	add(4, 'e')
	if read(1) != 'a' || read(2) != 0 || read(3) != 'd' || read(4) != 'e' {
		t.Error("not the least recently used was deleted")
	}
	if _, err := d.Read(ctx, "https://y.test:443", "/4"); !errors.Is(err, millrace.ErrNotFound) {
		t.Error(err)
	}
	held := []fetch.Dictionary{{Hash: "x", Match: "/4"}}
	if err := d.Update(ctx, origin, func(ix *fetch.DictionaryIndex) { ix.Dictionaries = held }); err != nil {
		t.Fatal(err)
	}
	if ix, err := d.Index(ctx, origin); err != nil || len(ix.Dictionaries) != 1 || ix.Dictionaries[0] != held[0] {
		t.Error(ix, err)
	}
	if ix, err := d.Index(ctx, "https://y.test:443"); err != nil || len(ix.Dictionaries) > 0 {
		t.Error(ix, err)
	}
}
