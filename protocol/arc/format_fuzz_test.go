package arc

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/canon"
)

// A decoded entry is encoded as an equivalent entry. Its page is carried unchanged.
func FuzzEntry(f *testing.F) {
	for _, s := range []string{
		`{"url":"https://x.test/","ai_indexable":true}`,
		`{"url":"https://x.test/a","lastmod":"2025-11-08t12:00:00.5+02:00","ai_indexable":true,"ai_summary":" S\n","ai_tags":["a","a"," "],"ai_checksum":"x","ai_snapshot":{"page":"article","a":1e3,"texts":[{"attr":"summary","text":"t"}]},"crawl_priority":1e-7,"auth_required":true,"robots_directive":"none"}`,
		`{"url":"https://x.test/","ai_indexable":true,"ai_summary":null,"ai_tags":null,"ai_snapshot":{"sections":[{"title":7,"context":["personal"]},[]]}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		e, _, err := decodeEntry(in)
		if err != nil {
			return
		}
		out := e.append(nil)
		again, nulls, err := decodeEntry(out)
		if err != nil || nulls != nil {
			t.Fatalf("%s: %v, %q", out, err, nulls)
		}
		if !bytes.Equal(out, again.append(nil)) {
			t.Fatalf("(-once +twice):\n%s", cmp.Diff(out, again.append(nil)))
		}
		var twin any
		if err := json.Unmarshal(out, &twin); err != nil {
			t.Fatal(err)
		}
		p := e.page()
		if u, err := canon.URL(e.URL); err != nil || u != e.URL || e.Snapshot == nil || p.Title == "" {
			return
		}
		p.URL, p.Access.Auth, p.Access.NoIndex = e.URL, false, false
		if got := entryOf(p); !bytes.Equal(got.Snapshot, e.Snapshot) && parseNode(e.Snapshot).text("page") != "" {
			t.Errorf("the snapshot is now %s, was %s", got.Snapshot, e.Snapshot)
		}
	})
}
