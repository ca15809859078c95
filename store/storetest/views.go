package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// library applies pages whose sections and dates distinguish all orders.
func library(f *fixture) {
	day := func(d int) time.Time { return time.Date(2026, 1, d, 0, 0, 0, 0, time.UTC) }
	for _, p := range []struct {
		path, section string
		published     time.Time
	}{
		{"/b", "docs", day(2)},
		{"/a", "docs", day(2)},
		{"/Z", "", day(9)},
		{"/c/d", "blog", day(3)},
		{"/c", "blog", time.Time{}},
		{"/old", "blog", time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC)},
		{"/none", "", time.Time{}},
	} {
		a := article(p.path, "Text of "+p.path)
		a.Section, a.Published = p.section, p.published
		a.Known |= millrace.FieldSection | millrace.FieldPublished
		f.apply(put(a))
		f.head() // copies the order of the site to the publication
	}
}

func viewCases() []testCase {
	orders := map[string]struct {
		order millrace.Order
		want  []string
	}{
		"by URL":       {millrace.ByURL, set("/Z", "/a", "/b", "/c", "/c/d", "/none", "/old")},
		"by published": {millrace.ByPublished, set("/Z", "/c/d", "/a", "/b", "/old", "/c", "/none")},
		"by sequence":  {millrace.BySeq, set("/none", "/old", "/c", "/c/d", "/Z", "/a", "/b")},
	}
	var cases []testCase
	for name, o := range orders {
		cases = append(cases,
			testCase{"a scan " + name + " is in order", func(t *testing.T, f *fixture) {
				library(f)
				want(f, "pages", f.paths(f.head(), millrace.Scan{Order: o.order}), o.want)
			}},
			testCase{"a scan " + name + " resumes after every page", func(t *testing.T, f *fixture) {
				library(f)
				v := f.head()
				for i, path := range o.want {
					got := f.paths(v, millrace.Scan{Order: o.order, After: path, Limit: 2})
					want(f, "after "+path, got, append(set(), o.want[i+1:min(i+3, len(o.want))]...))
					got = f.paths(v, millrace.Scan{Order: o.order, After: base + path[1:]})
					want(f, "after the absolute "+path, got, append(set(), o.want[i+1:]...))
				}
			}},
			testCase{"a scan " + name + " of one section", func(t *testing.T, f *fixture) {
				library(f)
				var blog []string
				for _, p := range o.want {
					if p == "/c" || p == "/c/d" || p == "/old" {
						blog = append(blog, p)
					}
				}
				v := f.head()
				want(f, "pages", f.paths(v, millrace.Scan{Order: o.order, Section: "blog"}), blog)
				want(f, "limited", f.paths(v, millrace.Scan{Order: o.order, Section: "blog", Limit: 1}), blog[:1])
				want(f, "resumed", f.paths(v, millrace.Scan{Order: o.order, Section: "blog", After: blog[0]}), blog[1:])
				want(f, "unknown", f.paths(v, millrace.Scan{Order: o.order, Section: "x"}), set())
			}},
			testCase{"a scan " + name + " is stable", func(t *testing.T, f *fixture) {
				var paths []string
				var batch []millrace.Change
				for i := range 700 { // more pages than one read returns
					p := article(fmt.Sprintf("/p%03d", i), "first")
					p.Published = time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC)
					p.Known |= millrace.FieldPublished
					batch = append(batch, put(p))
					paths = append(paths, relative(p.URL))
				}
				f.apply(batch...)
				n := 0
				for p, err := range f.head().Scan(t.Context(), millrace.Scan{Order: o.order, WithBlocks: true}) {
					if err != nil {
						t.Fatal(err)
					}
					if text := p.Blocks[1].Text; text != "first" {
						t.Fatalf("%s has text %q", p.URL, text)
					}
					if n++; n%100 == 0 { // pages are changed, deleted and created during the scan
						f.head()
						f.apply(put(article(paths[(n*7)%700], fmt.Sprint("second ", n))), gone(paths[(n*11)%700]), put(article(fmt.Sprint("/p", n, "x"), "new")))
					}
				}
				want(f, "pages", n, 700)
			}},
		)
	}
	return append(cases, []testCase{
		{"a scan with bodies has blocks, one without has none", func(t *testing.T, f *fixture) {
			f.puts("/a")
			for _, bodies := range []bool{true, false} {
				for p, err := range f.head().Scan(t.Context(), millrace.Scan{WithBlocks: bodies}) {
					want(f, "error", err, nil)
					want(f, "blocks", len(p.Blocks) > 0, bodies)
					want(f, "detail", p.Detail, millrace.DetailBlocks)
					want(f, "title", p.Title, "Title of /a")
				}
			}
		}},
		{"a canceled scan ends with the error", func(t *testing.T, f *fixture) {
			library(f)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			n := 0
			var last error
			for _, err := range f.head().Scan(ctx, millrace.Scan{}) {
				n++
				last = err
				cancel()
			}
			if n != 2 || !errors.Is(last, context.Canceled) {
				t.Errorf("%d steps, then %v", n, last)
			}
		}},
		{"a scan may end early, and the store may be written during it", func(t *testing.T, f *fixture) {
			library(f)
			for p, err := range f.head().Scan(t.Context(), millrace.Scan{}) {
				if err != nil {
					t.Fatal(err)
				}
				f.apply(gone(relative(p.URL)))
				break
			}
			want(f, "count", f.head().Site().Pages, 6)
		}},
		{"a bad scan is an error", func(t *testing.T, f *fixture) {
			library(f)
			for s, sentinel := range map[*millrace.Scan]error{
				{Order: 7}: millrace.ErrInvalid,
				{Order: millrace.BySeq, After: "/unknown"}: millrace.ErrNotFound,
			} {
				for _, err := range f.head().Scan(t.Context(), *s) {
					if !errors.Is(err, sentinel) {
						t.Errorf("%+v: %v", s, err)
					}
				}
			}
			want(f, "after an unknown URL", f.paths(f.head(), millrace.Scan{After: "/b0"}), set("/c", "/c/d", "/none", "/old"))
		}},
		{"a page with its version is unmodified", func(t *testing.T, f *fixture) {
			f.puts("/a")
			v := f.head()
			p := f.page(v, "/a")
			if _, err := v.Page(t.Context(), millrace.Ref{URL: p.URL, Version: p.Version}); !errors.Is(err, millrace.ErrUnmodified) {
				t.Errorf("the same version: %v", err)
			}
			f.apply(put(article("/a", "edited")))
			f.head()
			q, err := f.head().Page(t.Context(), millrace.Ref{URL: p.URL, Version: p.Version})
			if err != nil || q.Version == p.Version {
				t.Errorf("another version: %v", err)
			}
			f.apply(put(article("/a", "Text of /a")))
			q, err = f.head().Page(t.Context(), millrace.Ref{URL: p.URL, Version: p.Version})
			if err != nil || q.Version == p.Version {
				t.Errorf("the old content again, with a new date: %v", err)
			}
		}},
		{"a view describes its site", func(t *testing.T, f *fixture) {
			empty := f.head().Site()
			want(f, "title of an empty site", empty.Title, "example.com")
			want(f, "counts of an empty site", []int{int(empty.Seq), empty.Pages, len(empty.Sections)}, []int{0, 0, 0})
			library(f)
			home := article("/", "Welcome")
			home.Title, home.Language = "Example", "fr"
			home.Known |= millrace.FieldLanguage
			f.apply(put(home))
			got := f.head().Site()
			want(f, "site", got, millrace.Site{
				Base: base, EndpointBase: got.EndpointBase, Home: "/", Title: "Example", Language: "fr", Epoch: got.Epoch, Earlier: got.Earlier, Seq: got.Seq, Time: got.Time, Pages: 8,
				Sections: []millrace.Section{{Name: "blog", Pages: 3}, {Name: "docs", Pages: 2}},
			})
			if len(got.Epoch) < 16 || len(got.Earlier) > 0 || got.Time.Before(f.clock()) {
				t.Errorf("epoch %q, time %v", got.Epoch, got.Time)
			}
			moved := article("/a", "Text of /a")
			moved.Section = "blog"
			moved.Known |= millrace.FieldSection
			f.apply(put(moved), gone("/b"))
			want(f, "sections", f.head().Site().Sections, []millrace.Section{{Name: "blog", Pages: 4}})
		}},
		{"a title in the state is that of the site", func(t *testing.T, f *fixture) {
			title := func() []string {
				f.publish(f.publication(f.config))
				v, _ := f.published(f.publication(f.config))
				return []string{f.head().Site().Title, f.siteHead().Site().Title, v.Site().Title}
			}
			f.puts("/a")
			f.swap(siteName, store.TitleKey, "", "Its name", nil)
			want(f, "without a home page", title(), []string{"Its name", "Its name", "Its name"})
			f.puts("/")
			want(f, "with one", title(), []string{"Its name", "Its name", "Its name"})
			f.swap(siteName, store.TitleKey, "Its name", "", nil)
			want(f, "no longer", title(), []string{"Title of /", "Title of /", "Title of /"})
		}},
		{"the page that the home page redirects to describes the site", func(t *testing.T, f *fixture) {
			f.puts("/en/", "/de/")
			f.apply(alias(base, &millrace.Page{URL: base + "en/", Version: "r1"}))
			site := f.head().Site()
			want(f, "home", []string{site.Home, site.Title}, []string{"/en/", f.page(f.head(), "/en/").Title})
			f.apply(alias(base, &millrace.Page{URL: base + "en", Version: "r2"}), alias(base+"en", &millrace.Page{URL: base + "de/", Version: "r1"}))
			want(f, "after two redirects", f.head().Site().Home, "/de/")
			f.apply(gone("/de/"))
			want(f, "without its page", f.head().Site().Home, "")
			f.puts("/")
			want(f, "a home page of its own", f.head().Site().Home, "/")
		}},
		{"the alias of a home page that redirects may be named by its path", func(t *testing.T, f *fixture) {
			f.puts("/en/")
			f.apply(alias("/", &millrace.Page{URL: "/en/", Version: "r1"}))
			want(f, "home", f.head().Site().Home, "/en/")
		}},
		{"the time of the site rises with its number", func(t *testing.T, f *fixture) {
			last := f.head().Site()
			for i := range 5 {
				if i == 3 {
					f.pass(-time.Hour) // also if the clock goes back
				}
				f.apply(put(article("/a", fmt.Sprint(i))))
				now := f.head().Site()
				if !now.Time.After(last.Time) || now.Seq <= last.Seq {
					t.Errorf("%v at %d after %v at %d", now.Time, now.Seq, last.Time, last.Seq)
				}
				last = now
			}
		}},
		{"an old view does not change", func(t *testing.T, f *fixture) {
			library(f)
			v := f.head()
			site, pages := v.Site(), f.paths(v, millrace.Scan{Order: millrace.BySeq})
			list, cursor := f.changes(v, "")
			version := f.page(v, "/a").Version
			f.apply(put(article("/a", "edited")), gone("/b"), put(article("/new", "n")))
			want(f, "site", v.Site(), site)
			want(f, "pages", f.paths(v, millrace.Scan{Order: millrace.BySeq}), pages)
			again, same := f.changes(v, "")
			want(f, "changes", again, list)
			want(f, "cursor", same, cursor)
			want(f, "version", f.page(v, "/a").Version, version)
			if _, err := v.Page(t.Context(), millrace.Ref{URL: "/new"}); !errors.Is(err, millrace.ErrNotFound) {
				t.Errorf("a page of a later view: %v", err)
			}
		}},
	}...)
}
