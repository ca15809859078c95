package scp

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

// A mirror reads the snapshot and the newer deltas, then nothing, then new deltas, and at last
// a snapshot to find the deleted pages.
func TestRead(t *testing.T) {
	h := newHost(t)
	none := time.Time{}
	snapshot := h.collection("all.scp.zst", day(10, 0), none, "/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h")
	old := h.collection("all-delta-1.scp.gz", day(9, 0), day(8, 0), "/x")
	first := h.collection("all-delta-2.scp.gz", day(11, 0), day(10, 0), "/b 11", "/i 11")
	h.offers(snapshot, old, first)
	f := follow(h)
	f.expect(t, `
		put /a
		put /b
		put /c
		put /d
		put /e
		put /f
		put /g
		put /h
		newer /b 11
		newer /i 11
		mark whole`, `
		200 /sitemap.xml
		200 /all.scp.zst
		200 /all-delta-2.scp.gz`)
	f.expectNotes(t)

	f.expect(t, `mark`, `304 /sitemap.xml if new`)
	if len(f.pages) != 9 {
		t.Errorf("%d pages", len(f.pages))
	}

	second := h.collection("all-delta-3.scp.gz", day(12, 0), day(11, 0), "/a 12", "/b 9")
	h.offers(snapshot, first, second)
	f.expect(t, `
		newer /a 12
		newer /b 9 (no news)
		mark`, `
		200 /sitemap.xml if new
		200 /all-delta-3.scp.gz`)

	snapshot = h.collection("all-2.scp.zst", day(13, 0), none, "/a 12", "/b 11", "/c", "/d", "/e", "/g", "/h")
	h.offers(snapshot, second)
	f.expect(t, `
		put /a 12
		put /b 11
		put /c
		put /d
		put /e
		put /g
		put /h
		mark whole`, `
		200 /sitemap.xml if new
		200 /all-2.scp.zst`)
	if len(f.pages) != 7 {
		t.Errorf("%d pages", len(f.pages))
	}
	f.expectNotes(t)
}

// A page from a delta that is newer than the snapshot is yielded again, so that it is not
// deleted. If that delta no longer exists, no page is deleted.
func TestReadSnapshotOlderThanDelta(t *testing.T) {
	h := newHost(t)
	one := h.collection("all-1.scp", day(10, 0), time.Time{}, "/a", "/b", "/c")
	delta := h.collection("all-delta.scp", day(14, 0), day(10, 0), "/new 14", "/a 14")
	h.offers(one, delta)
	f := follow(h)
	if got, _ := f.read(t); got == "" || len(f.pages) != 4 {
		t.Fatal(got)
	}
	two := h.collection("all-2.scp", day(12, 0), time.Time{}, "/a 2", "/c")
	h.offers(two, delta)
	f.expect(t, `
		newer /a 2 (no news)
		newer /c (no news)
		newer /new 14 (no news)
		newer /a 14 (no news)
		mark whole`, `
		200 /sitemap.xml if new
		200 /all-2.scp
		200 /all-delta.scp`)
	if len(f.pages) != 3 {
		t.Errorf("pages: %v", f.pages)
	}
	three := h.collection("all-3.scp", day(13, 0), time.Time{}, "/c")
	h.offers(three)
	f.expect(t, `
		newer /c (no news)
		mark`, `
		200 /sitemap.xml if new
		200 /all-3.scp`)
}

func TestReadWhenToResync(t *testing.T) {
	small, large := []file{{size: 10}}, []file{{size: 1000}}
	snapshot := func(d, pages int, f []file) *offered {
		return &offered{section: "all", generated: day(d, 0), pages: pages, files: f}
	}
	delta := func(since, d int) *offered {
		return &offered{section: "all", delta: true, since: day(since, 0), generated: day(d, 0), files: small}
	}
	was := applied{Name: "all", Snapshot: day(10, 0), Generated: day(12, 0), Deltas: 2, Pages: 100}
	for name, c := range map[string]struct {
		snapshot *offered
		deltas   []*offered
		was      applied
		want     bool
	}{
		"first":                     {snapshot(10, 100, large), nil, applied{}, true},
		"first, with deltas":        {snapshot(10, 100, large), []*offered{delta(9, 11)}, applied{}, true},
		"nothing new":               {snapshot(10, 100, large), nil, was, false},
		"deltas that connect":       {snapshot(14, 100, large), []*offered{delta(12, 13), delta(13, 14)}, was, false},
		"deltas with a gap first":   {snapshot(14, 100, large), []*offered{delta(13, 14)}, was, true},
		"deltas with a gap inside":  {snapshot(14, 100, large), []*offered{delta(11, 13), delta(14, 15)}, was, true},
		"a gap and no new snapshot": {snapshot(10, 100, large), []*offered{delta(13, 14)}, was, false},
		"the snapshot alone":        {snapshot(13, 100, large), nil, was, true},
		"an older snapshot":         {snapshot(11, 100, large), nil, was, false},
		"a snapshot not larger":     {snapshot(14, 100, []file{{size: 40}}), []*offered{delta(12, 13)}, was, true},
		"a snapshot larger":         {snapshot(14, 100, []file{{size: 41}}), []*offered{delta(12, 13)}, was, false},
		"sizes not known":           {snapshot(14, 100, []file{{}}), []*offered{delta(12, 13)}, was, false},
		"fewer pages":               {snapshot(11, 99, large), []*offered{delta(12, 13)}, was, true},
		"fewer pages of before":     {snapshot(10, 99, large), []*offered{delta(12, 13)}, was, false},
		"pages not known":           {snapshot(14, -1, large), []*offered{delta(12, 13)}, was, false},
		"the seventh delta":         {snapshot(14, 100, large), []*offered{delta(12, 13)}, applied{Snapshot: day(10, 0), Generated: day(12, 0), Deltas: 6, Pages: 100}, false},
		"the eighth delta":          {snapshot(14, 100, large), []*offered{delta(12, 13)}, applied{Snapshot: day(10, 0), Generated: day(12, 0), Deltas: 7, Pages: 100}, true},
		"after a gap":               {snapshot(14, 100, large), []*offered{delta(12, 13)}, applied{Snapshot: day(10, 0), Generated: day(12, 0), Deltas: missed, Pages: 100}, true},
		"no snapshot":               {nil, []*offered{delta(12, 13)}, was, false},
	} {
		if got := resync(c.snapshot, c.deltas, c.was, defaultDeltas); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Missed deltas are applied in the order of their times, not in that of the sitemap. If there
// is a gap and no newer snapshot, the reader reports a note and reads the next snapshot.
func TestReadMissedDeltas(t *testing.T) {
	h := newHost(t)
	long := make([]string, 40)
	for i := range long {
		long[i] = "/page/" + string(rune('a'+i%26)) + string(rune('a'+i/26))
	}
	snapshot := h.collection("all.scp", day(1, 0), time.Time{}, long...)
	h.offers(snapshot)
	f := follow(h)
	f.read(t)
	three := h.collection("all-delta-3.scp", day(4, 0), day(3, 0), "/c 4")
	one := h.collection("all-delta-1.scp", day(2, 0), day(1, 0), "/a 2")
	two := h.collection("all-delta-2.scp", day(3, 0), day(2, 0), "/b 3")
	h.offers(three, snapshot, one, two)
	f.expect(t, `
		newer /a 2
		newer /b 3
		newer /c 4
		mark`, `
		200 /sitemap.xml if new
		200 /all-delta-1.scp
		200 /all-delta-2.scp
		200 /all-delta-3.scp`)

	six := h.collection("all-delta-6.scp", day(7, 0), day(6, 0), "/f 7")
	h.offers(snapshot, six)
	f.expect(t, `
		newer /f 7
		mark`, `
		200 /sitemap.xml if new
		200 /all-delta-6.scp`)
	f.expectNotes(t, noteMissed)

	eight := h.collection("all-delta-8.scp", day(9, 0), day(6, 0), "/g 9")
	h.offers(h.collection("all-2.scp", day(8, 0), time.Time{}, append(long, "/f 7")...), eight)
	if got, asked := f.read(t); len(asked) != 3 || asked[1] != "200 /all-2.scp" {
		t.Error(got, asked)
	}
}

// Without "all", every section is read separately. The pages of a removed section are deleted.
func TestReadSections(t *testing.T) {
	h := newHost(t)
	blog := h.collection("blog.scp", day(2, 0), time.Time{}, "/blog/a", "/blog/b")
	docs := h.collection("docs.scp", day(3, 0), time.Time{}, "/docs/a")
	shop := h.collection("shop-delta.scp", day(3, 0), day(2, 0), "/shop/a")
	h.offers(docs, blog, shop)
	f := follow(h)
	f.expect(t, `
		put /blog/a of blog
		put /blog/b of blog
		mark whole blog
		put /docs/a of docs
		mark whole docs`, `
		200 /sitemap.xml
		200 /blog.scp
		200 /docs.scp`)
	h.offers(docs, h.collection("blog.scp", day(4, 0), time.Time{}, "/blog/a"))
	f.expect(t, `
		put /blog/a of blog
		mark whole blog
		mark`, `
		200 /sitemap.xml if new
		200 /blog.scp if new`)
	h.offers(docs)
	f.expect(t, `
		put /docs/a of docs
		mark whole`, `
		200 /sitemap.xml if new
		200 /docs.scp`)
	if len(f.pages) != 1 {
		t.Errorf("pages: %v", f.pages)
	}
	h.offers(docs, h.collection("all.scp", day(3, 0), time.Time{}, "/docs/a", "/b"))
	f.expect(t, `
		put /docs/a
		put /b
		mark whole`, `
		200 /sitemap.xml if new
		200 /all.scp`)
	f.expectNotes(t)

	f.o.Sections = []string{"docs", "blog"}
	f.expect(t, `
		put /docs/a of docs
		mark whole`, `
		200 /sitemap.xml
		200 /docs.scp`)
	f.expectNotes(t, noteSection)
}

// Repeated requests are conditional, with the validators verbatim.
func TestReadConditional(t *testing.T) {
	h := newHost(t)
	const modified = "Sun, 01 Mar 2026 00:00:00 GMT"
	snapshot := h.collection("all.scp.zst", day(2, 0), time.Time{}, "/a")
	h.files["/all.scp.zst"].header.Set("Last-Modified", modified)
	h.files["/all.scp.zst"].header.Set("ETag", `"sha256:0"`)
	h.offers(snapshot)
	h.files["/sitemap.xml"].header.Set("ETag", `W/"s"`)
	h.files["/sitemap.xml"].header.Set("Last-Modified", modified)
	f := follow(h)
	f.read(t)
	f.expect(t, `mark`, `304 /sitemap.xml if new`)
	if want := `W/"s" ` + modified + " "; h.conditions != want {
		t.Errorf("requested the sitemap with %q, want %q", h.conditions, want)
	}
	// The sitemap declares a new snapshot, but its file has not changed.
	h.offers(h.element("all.scp.zst", day(3, 0), time.Time{}, 1))
	f.expect(t, `mark`, `
		200 /sitemap.xml if new
		304 /all.scp.zst if new`)
	if want := `"sha256:0" ` + modified + " "; h.conditions != want {
		t.Errorf("requested the file with %q, want %q", h.conditions, want)
	}
	f.expectNotes(t)

	// If a file was applied twice, the newer validators are used.
	delta := h.collection("all-delta.scp", day(4, 0), day(2, 0), "/b 4")
	h.offers(h.element("all.scp.zst", day(2, 0), time.Time{}, 1), delta)
	f.expect(t, "newer /b 4\nmark", "200 /sitemap.xml if new\n200 /all-delta.scp")
	for d := 5; d < 7; d++ {
		h.offers(h.element("all.scp.zst", day(2, 0), time.Time{}, 1), h.collection("all-delta.scp", day(d, 0), day(2, 0), "/b 4", "/c 4"))
		got, asked := f.read(t)
		if len(asked) != 2 || asked[1] != "200 /all-delta.scp if new" {
			t.Error(got, asked)
		}
	}
	h.offers(h.element("all.scp.zst", day(2, 0), time.Time{}, 1), h.element("all-delta.scp", day(7, 0), day(2, 0), 2))
	f.expect(t, "mark", "200 /sitemap.xml if new\n304 /all-delta.scp if new")
}

func TestReadPage(t *testing.T) {
	src := NewReader(nil, "https://example.com/", nil)
	if _, err := src.Page(t.Context(), millrace.Ref{URL: "https://example.com/"}); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := src.Page(ctx, millrace.Ref{URL: "https://example.com/"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, endpoint := range []string{"", "ftp://example.com/", "example.com"} {
		for _, err := range NewReader(nil, endpoint, nil).Changes(t.Context(), "") {
			if !errors.Is(err, millrace.ErrInvalid) {
				t.Errorf("%q: %v", endpoint, err)
			}
		}
	}
	for _, c := range []millrace.Cursor{"x", "{}", `{"root":"https://example.org/","sitemap":"x"}`} {
		for _, err := range src.Changes(t.Context(), c) {
			if !errors.Is(err, millrace.ErrConflict) {
				t.Errorf("%q: %v", c, err)
			}
		}
	}
}
