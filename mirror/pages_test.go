package mirror_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
)

func urlsOf(p *mirror.Pages) (out []string) {
	for u, page := range p.All() {
		if page.URL != u || p.Page(u) != page {
			out = append(out, "not "+page.URL)
		}
		out = append(out, u+" "+page.Title)
	}
	return out
}

// Pages stays equal to a source when only changes are requested from the source.
func TestPages(t *testing.T) {
	src := &site{pages: map[string]string{"/a": "1", "/b": "1", "/c": "1", "/d": "1", "/e": "1", "/f": "1"}}
	var pages mirror.Pages
	sync := func() *mirror.Report {
		t.Helper()
		src.asked = nil
		r, err := mirror.Sync(t.Context(), "src", src, &pages, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := sync(); r.Added != 6 || pages.Len() != 6 {
		t.Errorf("%+v", r)
	}
	if r := sync(); len(src.asked) > 0 || r.Added+r.Updated+r.Deleted > 0 {
		t.Errorf("after no change: %q %+v", src.asked, r)
	}
	src.pages["/b"] = "2"
	delete(src.pages, "/f")
	if r := sync(); r.Updated != 1 || r.Deleted != 1 || !slices.Equal(src.asked, []string{"/b"}) {
		t.Errorf("%q %+v", src.asked, r)
	}
	if d := cmp.Diff([]string{"/a 1", "/b 2", "/c 1", "/d 1", "/e 1"}, urlsOf(&pages)); d != "" {
		t.Error(d)
	}
}

// A page is stored as long as a source names it.
func TestPagesNames(t *testing.T) {
	var pages mirror.Pages
	apply := func(from string, batch ...millrace.Change) millrace.Counts {
		t.Helper()
		counts, err := pages.Apply(context.Background(), from, batch)
		if err != nil {
			t.Fatal(err)
		}
		return counts
	}
	put := func(name, url, title string) millrace.Change {
		p := &millrace.Page{URL: url, Title: title, Known: millrace.FieldTitle, Version: "v-" + title}
		if title == "" {
			p.Known = 0
		}
		return millrace.Change{Ref: millrace.Ref{URL: name}, Page: p}
	}
	gone := func(name string) millrace.Change {
		return millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: name}}
	}
	if got := apply("one", put("/a", "/A", "a"), put("/a?x", "/A", ""), put("/b", "", "b")); got.Added != 2 || got.Unchanged != 1 {
		t.Errorf("%+v", got)
	}
	apply("two", put("/A", "/A", "a"))
	if got := apply("one", gone("/a"), gone("/b"), gone("/never")); got.Deleted != 1 {
		t.Errorf("%+v", got)
	}
	if d := cmp.Diff([]string{"/A a"}, urlsOf(&pages)); d != "" {
		t.Error(d)
	}
	// When a name moves to another page, it is removed from the old one.
	if got := apply("two", put("/A", "/other", "o")); got.Added != 1 || got.Deleted != 1 {
		t.Errorf("%+v", got)
	}
	if d := cmp.Diff([]string{"/other o"}, urlsOf(&pages)); d != "" {
		t.Error(d)
	}
	var refs []millrace.Ref
	for r, err := range pages.KnownRefs(t.Context(), "two") {
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, r)
	}
	if d := cmp.Diff([]millrace.Ref{{URL: "/A", Version: "v-o"}}, refs); d != "" {
		t.Error(d)
	}
}
