package arc

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// A site with a new store has no record of its earlier pages. A reader of deltas still detects
// the deleted ones.
func TestReadAgain(t *testing.T) {
	l := newLived(t)
	pairs := func(from int) (out []string) {
		for i := from; i < 40; i++ {
			out = append(out, fmt.Sprintf("/%d", i), fmt.Sprintf("It says %d.", i))
		}
		return out
	}
	l.edit(t, pairs(0)...)
	copied := opened(t, livedBase, func() time.Time { return l.now })
	sync := func() {
		t.Helper()
		l.now = l.now.Add(10 * time.Second)
		l.asked = nil
		if _, err := mirror.Sync(t.Context(), "x arc", l.reader(&ReaderOptions{Deltas: 1}), copied, nil); err != nil {
			t.Fatal(err)
		}
		got := pagesOf(t, copied, func(_ millrace.Site, p *millrace.Page) *millrace.Page { return p })
		if d := cmp.Diff(l.carried(t), got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(millrace.Page{}, "Version")); d != "" {
			t.Errorf("at %s: (-want +held)\n%s\n%q", l.now, d, l.asked)
		}
	}
	sync()
	l.now = l.now.AddDate(0, 0, 1)
	l.edit(t, "/1", "It says something else.")
	sync()
	l.now = l.now.AddDate(0, 0, 3)
	l.Stored = opened(t, livedBase, func() time.Time { return l.now })
	l.edit(t, pairs(3)...)
	sync()
	if !slices.Contains(l.asked, "GET "+pathList+" 200") {
		t.Errorf("the list was not read: %q", l.asked)
	}
	l.now = l.now.AddDate(0, 0, 1)
	l.edit(t, "/20", "It says something else, too.", "/21", "")
	sync()
	if slices.Contains(l.asked, "GET "+pathList+" 200") {
		t.Errorf("the list was read again: %q", l.asked)
	}
}

// A list older than the one read before, such as after restoring a backup, is read in full:
// deltas do not contain undone changes.
func TestReadBackup(t *testing.T) {
	at, now := "2026-01-02T12:00:00Z", time.Date(2026, 1, 2, 13, 0, 0, 0, time.UTC)
	var asked []string
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != pathList && !strings.HasPrefix(r.URL.Path, pathDeltas) {
			http.NotFound(w, r)
			return
		}
		asked = append(asked, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("ETag", `"`+at+`"`)
		w.Header().Set("Last-Modified", parseTime(at).Format(http.TimeFormat))
		_, _ = w.Write([]byte(`{"arc_sitemap_version":"2.1","site":"https://x.test","generated_at":"` + at + `","pages":[]}`))
	})
	read := func(since millrace.Cursor) (m *millrace.Checkpoint) {
		t.Helper()
		asked = nil
		src := NewReader(&http.Client{Transport: protocoltest.Answer(h)}, livedBase, &ReaderOptions{ReaderOptions: protocol.ReaderOptions{Now: func() time.Time { return now }}, Deltas: 1})
		for c, err := range src.Changes(t.Context(), since) {
			if err != nil {
				t.Fatal(err)
			}
			m = c.Checkpoint
		}
		return m
	}
	m := read("")
	at = "2026-01-02T12:30:00Z"
	if m = read(m.Cursor); m.Complete {
		t.Errorf("a newer list was read in full: %q", asked)
	}
	at = "2026-01-02T12:10:00Z"
	if m = read(m.Cursor); !m.Complete {
		t.Errorf("an older list was not read in full: %q", asked)
	}
}
