package scp

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/store/memory"
)

// In a real store, unchanged pages of a new snapshot are not written, pages missing from it
// are deleted, and a delta does not replace a newer page.
func TestReadIntoStore(t *testing.T) {
	h := newHost(t)
	site, err := memory.New(nil).Site(t.Context(), "x", h.url)
	if err != nil {
		t.Fatal(err)
	}
	sync := func(want millrace.Counts) {
		t.Helper()
		o := &ReaderOptions{ReaderOptions: protocol.ReaderOptions{Now: func() time.Time { return day(20, 12) }}}
		rep, err := mirror.Sync(t.Context(), "x scp", NewReader(&http.Client{}, h.url, o), site, nil)
		if err != nil {
			t.Fatal(err)
		}
		if rep.Counts != want || rep.SkippedN > 0 || rep.UnconfirmedDeletions > 0 {
			t.Errorf("%+v", rep)
		}
	}
	pages := func(from, to int) (out []string) {
		for i := range to - from {
			out = append(out, fmt.Sprintf("/p%d 3", from+i))
		}
		return out
	}
	h.offers(h.collection("all.scp.zst", day(3, 0), time.Time{}, pages(0, 20)...))
	sync(millrace.Counts{Added: 20})
	sync(millrace.Counts{})
	h.offers(h.collection("all-2.scp.zst", day(4, 0), time.Time{}, append(pages(2, 20), "/new 4")...))
	sync(millrace.Counts{Added: 1, Deleted: 2, Unchanged: 18})
	h.offers(h.collection("all-2.scp.zst", day(4, 0), time.Time{}), h.collection("all-delta.scp.zst", day(6, 0), day(4, 0), "/p5 2", "/new 4", "/p6 6"))
	sync(millrace.Counts{Updated: 1, Unchanged: 2})
}

// A collection of any length is read in constant memory.
func TestReadInFlatMemory(t *testing.T) {
	n := 4000
	h := newHost(t)
	var b strings.Builder
	b.WriteString(`{"collection":{"id":"i","section":"all","type":"snapshot","generated":"2026-03-02T00:00:00Z","version":"0.1"}}`)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		text := ""
		for range 100 {
			text += fmt.Sprintf("%d and ", random.Uint64())
		}
		fmt.Fprintf(&b, "\n"+`{"url":"%s%d","title":"t","description":"d","modified":"2026-03-01T00:00:00Z","language":"en","content":[{"type":"text","text":"%d %s"}]}`, h.url, i, i, text)
	}
	file := coded("all.scp.gz", []byte(b.String()))
	h.put("/all.scp.gz", file)
	h.offers(h.element("all.scp.gz", day(2, 0), time.Time{}, n))
	b.Reset()
	t.Setenv("TMPDIR", t.TempDir())
	src := NewReader(&http.Client{}, h.url, &ReaderOptions{ReaderOptions: protocol.ReaderOptions{Now: func() time.Time { return day(20, 12) }}})
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, peak, puts := m.HeapAlloc, uint64(0), 0
	for c, err := range src.Changes(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if c.Kind == millrace.Put {
			if puts++; puts%(n/8) == 1 {
				runtime.GC()
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapAlloc-min(before, m.HeapAlloc))
			}
		}
	}
	if puts != n {
		t.Errorf("%d pages", puts)
	}
	if limit := uint64(4 << 20); peak > limit {
		t.Errorf("%d pages hold %d bytes, more than %d", n, peak, limit)
	}
	t.Logf("%d pages, %d KB held", n, peak>>10)
}
