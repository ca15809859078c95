package openfeeder

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/store"
)

// The index lists the pages in one order, for any limit and any order of requests, and scans
// each part of the site once.
func TestIndexPages(t *testing.T) {
	var pages []*millrace.Page
	for i := range 333 {
		p := &millrace.Page{URL: fmt.Sprintf("/p/%d", i), Title: fmt.Sprint("Page ", i), Summary: "Yes.", Known: millrace.AllFields}
		if i%3 > 0 {
			p.Published = day(1 + i%20)
		}
		if i%10 == 9 {
			p.Kind = millrace.Archive
		}
		pages = append(pages, p)
	}
	v := &counting{View: view(pages)}
	pub := NewPublisher(nil)
	var want []string
	for p, err := range v.View.Scan(t.Context(), millrace.Scan{Order: millrace.ByPublished}) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Kind != millrace.Archive {
			want = append(want, relative(base, p.URL))
		}
	}
	at := func(page, limit int) *index {
		t.Helper()
		d, err := get(t, pub, v, fmt.Sprintf("/openfeeder?page=%d&limit=%d", page, limit))
		if err != nil {
			t.Fatal(err)
		}
		x, err := decodeIndex([]byte(body(t, d)))
		if err != nil {
			t.Fatal(err)
		}
		if x.Page != page || x.TotalPages != pagesOf(len(want), limit) {
			t.Errorf("page %d of %d with limit %d is page %d of %d in the document", page, pagesOf(len(want), limit), limit, x.Page, x.TotalPages)
		}
		return x
	}
	for _, limit := range []int{1, 7, 10, 33, 50} {
		n := pagesOf(len(want), limit)
		got := make([]string, 0, len(want))
		for page := n; page >= 1; page-- {
			var urls []string
			for _, it := range at(page, limit).Items {
				urls = append(urls, it.URL)
			}
			got = append(urls, got...)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("by %d (-want +got):\n%s", limit, diff)
		}
		if x := at(n+1, limit); len(x.Items) > 0 {
			t.Errorf("a page after the last one: %+v", x)
		}
	}
	v.pages = 0
	at(30, 10)
	if v.pages > stride*10/9+10 {
		t.Errorf("a repeated request has read %d pages", v.pages)
	}
}

// The number of pages of a large site's index excludes archives, and is not determined by
// listing all tags.
func TestIndexOfLargeSite(t *testing.T) {
	const size, limit = 25_000, 50
	pages := make([]*millrace.Page, size)
	for i := range pages {
		pages[i] = &millrace.Page{URL: fmt.Sprintf("/p/%05d", i), Title: "Page", Summary: "Yes.", Known: millrace.AllFields}
		if i%10 == 9 {
			pages[i].Kind = millrace.Archive
		}
	}
	v := &counting{View: view(pages)}
	pub := NewPublisher(nil)
	const listed = size * 9 / 10
	for page, items := range map[int]int{listed / limit: limit, listed/limit + 1: 0} {
		d, err := get(t, pub, v, fmt.Sprintf("/openfeeder?page=%d&limit=%d", page, limit))
		if err != nil {
			t.Fatal(err)
		}
		x, err := decodeIndex([]byte(body(t, d)))
		if err != nil {
			t.Fatal(err)
		}
		if x.TotalPages != listed/limit || len(x.Items) != items || d.PageCount != int64(items) {
			t.Errorf("page %d of %d has %d items (Names %d), want %d of %d", page, x.TotalPages, len(x.Items), d.PageCount, items, listed/limit)
		}
	}
	if v.tags > 0 {
		t.Errorf("%d lists of all tags were read", v.tags)
	}
}

// counting counts the pages that scans yield, and the tag listings.
type counting struct {
	*protocoltest.View
	pages, tags int
}

func (c *counting) Tags(ctx context.Context, name, after string) iter.Seq2[millrace.Tag, error] {
	c.tags++
	return c.View.Tags(ctx, name, after)
}

func (c *counting) Scan(ctx context.Context, s millrace.Scan) iter.Seq2[*millrace.Page, error] {
	return func(yield func(*millrace.Page, error) bool) {
		for p, err := range c.View.Scan(ctx, s) {
			c.pages++
			if !yield(p, err) {
				return
			}
		}
	}
}

// After an edit, a distant page of the index does not require reading all pages again. The
// order of a view is derived from that of the previous view, whatever changes.
func TestOrderFollows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := protocoltest.Open(t, store.Config{Base: base, Taggers: []millrace.Tagger{Protocol().Tagger}}, nil)
	put := func(n int) millrace.Change {
		p := &millrace.Page{URL: fmt.Sprintf("/p/%d", n), Title: fmt.Sprint("Page ", r.IntN(1000)), Known: millrace.AllFields}
		if d := r.IntN(20); d > 0 {
			p.Published = day(d)
		}
		if r.IntN(10) == 0 {
			p.Kind = millrace.Archive
		}
		return millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p}
	}
	apply := func(batch ...millrace.Change) {
		t.Helper()
		if _, err := s.Apply(t.Context(), "test", batch); err != nil {
			t.Fatal(err)
		}
	}
	var all []millrace.Change
	for n := range 1000 {
		all = append(all, put(n))
	}
	apply(all...)
	pub := NewPublisher(nil).(*publisher)
	for round := range 60 {
		head, err := s.Pub.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v := &scanning{View: head}
		var want []string
		for p, err := range head.Scan(t.Context(), millrace.Scan{Order: millrace.ByPublished}) {
			if err != nil {
				t.Fatal(err)
			}
			if p.Kind != millrace.Archive {
				want = append(want, relative(base, p.URL))
			}
		}
		from := r.IntN(len(want) - 10)
		if round == 0 {
			from = len(want) - 10 // so that the order contains every position
		}
		var got []string
		for p, err := range pub.orders.of(t.Context(), v).pages(t.Context(), v, from, 10) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, relative(base, p.URL))
		}
		if diff := cmp.Diff(want[from:from+10], got); diff != "" {
			t.Fatalf("round %d, from %d (-want +got):\n%s", round, from, diff)
		}
		if round > 0 && v.pages > 5*stride {
			t.Errorf("round %d: %d pages were read again", round, v.pages)
		}
		for range r.IntN(4) {
			if n := r.IntN(1050); r.IntN(3) == 0 {
				apply(millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: fmt.Sprintf("/p/%d", n)}})
			} else {
				apply(put(n))
			}
		}
	}
}

// A part of the site with many new pages is scanned once more, and no more. If a request
// aborts building an order, the next one builds it. After too many changes, the order is
// discarded without requesting pages.
func TestOrderLimits(t *testing.T) {
	s := protocoltest.Open(t, store.Config{Base: base, Taggers: []millrace.Tagger{Protocol().Tagger}}, nil)
	pub := NewPublisher(nil).(*publisher)
	put := func(from, n int, title string) *scanning {
		t.Helper()
		var batch []millrace.Change
		for i := range n {
			p := &millrace.Page{URL: fmt.Sprintf("/p/%d", from+i), Title: title, Published: day(1).AddDate(0, 0, from+i), Known: millrace.AllFields}
			batch = append(batch, millrace.Change{Ref: millrace.Ref{URL: p.URL}, Page: p})
		}
		if _, err := s.Apply(t.Context(), "test", batch); err != nil {
			t.Fatal(err)
		}
		head, err := s.Pub.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return &scanning{View: head}
	}
	read := func(ctx context.Context, v *scanning, from int) int {
		before := v.pages
		for _, err := range pub.orders.of(ctx, v).pages(ctx, v, from, 10) {
			if err != nil && ctx.Err() == nil {
				t.Fatal(err)
			}
		}
		return v.pages - before
	}
	const size, came = 1500, 400
	read(t.Context(), put(0, size, "Page"), size-10)
	v := put(size, came, "Page")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	read(gone, v, size)
	if n := read(t.Context(), v, size); n > 3*stride {
		t.Errorf("after an aborted request, %d pages were read", n)
	}
	read(t.Context(), v, came-20)
	if n := read(t.Context(), v, came-20); n > 3*stride {
		t.Errorf("in the part with new pages, %d pages were read again", n)
	}
	was := v
	v = put(0, size, "Changed")
	if read(t.Context(), v, 0); was.asked+v.asked > 2*(came+mostChanges) {
		t.Errorf("%d pages were requested", was.asked+v.asked)
	}
}

// scanning counts the pages that scans yield, and the requested pages.
type scanning struct {
	millrace.View
	pages, asked int
}

func (c *scanning) Page(ctx context.Context, have millrace.Ref) (*millrace.Page, error) {
	c.asked++
	return c.View.Page(ctx, have)
}

func (c *scanning) Scan(ctx context.Context, s millrace.Scan) iter.Seq2[*millrace.Page, error] {
	return func(yield func(*millrace.Page, error) bool) {
		for p, err := range c.View.Scan(ctx, s) {
			c.pages++
			if !yield(p, err) {
				return
			}
		}
	}
}
