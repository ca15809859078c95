package dashboard

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The log is read backward in parts. It contains each change once, even if later changes have
// replaced most entries.
func TestReadHistory(t *testing.T) {
	t.Parallel()
	h := newHandbook(t, "https://handbook.test/", false)
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte("<title>"+text+"</title><h1>"+text+"</h1><p>What we say of "+text+" here.</p>"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 90 {
		write("n"+strconv.Itoa(i)+".html", "page "+strconv.Itoa(i))
	}
	h.take()
	for round := range 4 {
		for i := range 30 { // each round replaces the previous changes
			write("n"+strconv.Itoa(i)+".html", "again "+strconv.Itoa(round*1000+i))
		}
		h.take()
	}
	for i := 60; i < 70; i++ {
		if err := os.Remove(filepath.Join(h.dir, "n"+strconv.Itoa(i)+".html")); err != nil {
			t.Fatal(err)
		}
	}
	h.take()
	v, err := h.Pages.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"", changeAdded, changeUpdated, changeRemoved} {
		want := map[string]int{}
		if what == "" || what == changeRemoved {
			want[changeRemoved] = 10
		}
		seen, got := map[string]bool{}, map[string]int{}
		var last changed
		parts := 0
		for from := uint64(math.MaxUint64); from > 0; parts++ {
			part, err := readHistory(t.Context(), v, from, what)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range part.Changes {
				if seen[c.URL] || c.Time.After(last.Time) && !last.Time.IsZero() {
					t.Fatalf("%+v occurs twice, or after %+v", c, last)
				}
				seen[c.URL], last = true, c
				got[c.What]++
			}
			if part.Older >= from {
				t.Fatal("the log does not end")
			}
			from = part.Older
		}
		if what == "" {
			if v.Site().Pages+10 != len(seen) {
				t.Errorf("%d pages in the log of a site with %d pages and 10 deleted ones", len(seen), v.Site().Pages)
			}
			want[changeUpdated], want[changeAdded] = 30, v.Site().Pages-30
		} else if what != changeRemoved {
			want[what] = map[string]int{changeUpdated: 30, changeAdded: v.Site().Pages - 30}[what]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", what, diff)
		}
		t.Logf("%q: %d changes in %d parts", what, len(seen), parts)
	}
	if _, err := h.Server.Publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.Pages.Compact(t.Context(), 0, 0); err != nil {
		t.Fatal(err)
	}
	var part *history
	for from := uint64(math.MaxUint64); from > 0; from = part.Older {
		if part, err = readHistory(t.Context(), v, from, ""); err != nil {
			t.Fatal(err)
		}
	}
	if !part.Cut {
		t.Errorf("the page does not say that Compact removed changes: %d changes", len(part.Changes))
	}
}
