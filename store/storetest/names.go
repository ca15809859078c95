package storetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/millrace/millrace"
)

func nameCases() []testCase {
	return []testCase{
		{"a page is stored under its own URL, its ref under the source's", func(t *testing.T, f *fixture) {
			p := article("/a/", "text")
			p.Version = "v"
			f.apply(alias(base+"a/index.html", p))
			want(f, "pages", f.paths(f.siteHead(), millrace.Scan{}), set("/a/"))
			want(f, "held", f.storedRefs(origin), set("/a/index.html=v"))
			want(f, "deleted by its name", f.apply(gone("/a/index.html")), millrace.Counts{Deleted: 1})
			want(f, "pages", f.paths(f.siteHead(), millrace.Scan{}), set())
		}},
		{"versions, locations and cursors may be any bytes", func(t *testing.T, f *fixture) {
			const odd = "\x00\xff\xc3\xa9\U0010FFFF\U0010FF00\xf4\x8f'\\ é"
			c := put(article("/a", "text"))
			c.Version, c.Location, c.Section = odd+"1", odd+"2", odd+"3"
			from := "source " + odd
			f.from(from, c, millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: odd}})
			f.reopen()
			cursor, err := f.site.Cursor(t.Context(), from)
			want(f, "cursor", cursor, millrace.Cursor(odd))
			want(f, "error", err, nil)
			for r, err := range f.site.KnownRefs(t.Context(), from, base+"a") {
				want(f, "error", err, nil)
				want(f, "ref", r, millrace.Ref{URL: base + "a", Version: odd + "1", Location: odd + "2", Section: odd + "3"})
			}
			want(f, "held", len(f.storedRefs(from)), 1)
		}},
		{"a duplicate has a ref and no page", func(t *testing.T, f *fixture) {
			f.puts("/main")
			dup := &millrace.Page{URL: base + "main", Version: "d1"}
			want(f, "counts", f.apply(alias(base+"dup", dup)), millrace.Counts{Unchanged: 1})
			want(f, "pages", f.paths(f.siteHead(), millrace.Scan{}), set("/main"))
			want(f, "held", f.storedRefs(origin), set("/dup=d1", "/main="))
			want(f, "without the duplicate", f.apply(gone("/dup")), millrace.Counts{Unchanged: 1})
			want(f, "pages", f.paths(f.siteHead(), millrace.Scan{}), set("/main"))
		}},
		{"a page stays while a name of the same source is left", func(t *testing.T, f *fixture) {
			f.puts("/main")
			f.apply(alias(base+"dup", article("/main", "Text of /main")))
			want(f, "first name", f.apply(gone("/main")), millrace.Counts{Unchanged: 1})
			want(f, "pages", f.paths(f.siteHead(), millrace.Scan{}), set("/main"))
			want(f, "last name", f.apply(gone("/dup")), millrace.Counts{Deleted: 1})
			want(f, "pages", f.paths(f.siteHead(), millrace.Scan{}), set())
		}},
		{"when a name of a page is deleted, its other names are fetched again", func(t *testing.T, f *fixture) {
			named := func(name, version, text string) millrace.Change {
				p := article("/x", text)
				p.Version = version
				return alias(name, p)
			}
			f.apply(named("/1", "v1", "first"), named("/2", "v2", "second"))
			f.apply(millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: "/2"}})
			want(f, "the content may be from the deleted name", f.storedRefs(origin), set("/1="))
			f.apply(named("/1", "v1", "first"))
			want(f, "text", f.page(f.siteHead(), "/x").Text(), "Heading\n\nfirst")
			f.apply(named("/3", "v3", "third"), millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: "/1"}})
			want(f, "a name in the same batch is not fetched again", f.storedRefs(origin), set("/3=v3"))
		}},
		{"a duplicate does not keep a page, and is fetched again", func(t *testing.T, f *fixture) {
			f.puts("/main")
			f.apply(alias("/dup", &millrace.Page{URL: base + "main", Version: "d1"}))
			want(f, "the page is deleted", f.apply(gone("/main")), millrace.Counts{Deleted: 1})
			want(f, "pages", f.paths(f.siteHead(), millrace.Scan{}), set())
			want(f, "held", f.storedRefs(origin), set())
			f.apply(alias("/file", article("/x", "text")), alias("/x", &millrace.Page{URL: base + "x"}))
			want(f, "a duplicate with the page's own name", f.apply(millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: "/file"}}), millrace.Counts{Deleted: 1})
		}},
		{"deleting a duplicate does not delete a page of another source", func(t *testing.T, f *fixture) {
			f.puts("/a", "/b")
			f.from(other, alias(base+"a", &millrace.Page{URL: base + "a"}), alias(base+"old", &millrace.Page{URL: base + "b"}))
			f.from(other, gone("/a"), gone("/old"))
			want(f, "pages", f.paths(f.siteHead(), millrace.Scan{}), set("/a", "/b"))
			want(f, "held", f.storedRefs(other), set())
		}},
		{"names of a source are stored unchanged", func(t *testing.T, f *fixture) {
			f.apply(alias("/a/", article("/a/", "text")), alias(base+"b", article("/b", "text")), alias("urn:c", article("/c", "text")))
			var got []string
			for r, err := range f.site.KnownRefs(t.Context(), origin) {
				want(f, "error", err, nil)
				got = append(got, r.URL)
			}
			want(f, "names", got, []string{"/a/", base + "b", "urn:c"})
			want(f, "deleted", f.apply(millrace.Change{Ref: millrace.Ref{URL: "/a/"}}, millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: "/a/"}}), millrace.Counts{Deleted: 1, Unchanged: 1})
			want(f, "pages", f.paths(f.siteHead(), millrace.Scan{}), set("/b", "/c"))
		}},
		{"the refs of a deleted page are deleted from every source", func(t *testing.T, f *fixture) {
			f.puts("/a", "/b")
			f.from(other, put(article("/a", "Text of /a")), put(article("/b", "Text of /b")), alias(base+"dup", &millrace.Page{URL: base + "a"}))
			f.apply(gone("/a"))
			want(f, "held", f.storedRefs(other), set("/b="))
		}},
		{"a page is deleted when its last name moves to another page", func(t *testing.T, f *fixture) {
			f.apply(alias(base+"file.html", article("/old", "text")))
			want(f, "counts", f.apply(alias(base+"file.html", article("/new", "text"))), millrace.Counts{Added: 1, Deleted: 1})
			want(f, "pages", f.paths(f.siteHead(), millrace.Scan{}), set("/new"))
		}},
		{"swapping two names deletes nothing", func(t *testing.T, f *fixture) {
			f.apply(alias(base+"1.html", article("/a", "a")), alias(base+"2.html", article("/b", "b")))
			seq := f.siteHead().Site().Seq
			want(f, "counts", f.apply(alias(base+"1.html", article("/b", "b")), alias(base+"2.html", article("/a", "a"))), millrace.Counts{Unchanged: 2})
			want(f, "sequence number", f.siteHead().Site().Seq, seq)
		}},
		{"a canonical URL on another host stays absolute", func(t *testing.T, f *fixture) {
			p := article("/x", "text")
			p.URL = "https://other.example/x"
			f.apply(alias(base+"x", p))
			v := f.siteHead()
			want(f, "pages", f.paths(v, millrace.Scan{}), set("https://other.example/x"))
			want(f, "page", f.page(v, "https://other.example/x").URL, "https://other.example/x")
			if _, err := v.Page(t.Context(), millrace.Ref{URL: "/x"}); !errors.Is(err, millrace.ErrNotFound) {
				t.Errorf("name of the page at its source: %v", err)
			}
		}},
		{"refs are stored per source and ordered by URL", func(t *testing.T, f *fixture) {
			urls := []string{
				base, base + "-", base + ".well", base + "/double", base + "0", base + "a", base + "a/b", base + "~",
				"https://aaa.example/", "https://example.co/", "https://example.com.evil/", "https://zzz.example/",
			}
			var batch []millrace.Change
			for _, u := range slices.Backward(urls) {
				p := article("/", "text of "+u)
				p.URL, p.Version = u, "v of "+u
				c := put(p)
				c.Location, c.Section = u+"#m", "s"
				batch = append(batch, c)
			}
			f.apply(batch...)
			slices.Sort(urls)
			var got []string
			for r, err := range f.site.KnownRefs(t.Context(), origin) {
				if err != nil {
					t.Fatal(err)
				}
				want(f, r.URL, r, millrace.Ref{URL: r.URL, Version: "v of " + r.URL, Location: r.URL + "#m", Section: "s"})
				got = append(got, r.URL)
			}
			want(f, "order", got, urls)
			want(f, "some", f.storedRefs(origin, base+"a", base+"unknown", base), set("/=v of "+base, "/a=v of "+base+"a"))
			want(f, "another source", f.storedRefs(other), set())
			want(f, "some of another source", f.storedRefs(other, base+"a"), set())
		}},
		{"a Put without a page only updates the ref", func(t *testing.T, f *fixture) {
			f.puts("/a")
			seq := f.siteHead().Site().Seq
			c := millrace.Change{Ref: millrace.Ref{URL: base + "a", Version: "304", Location: base + "a.json", Section: "s1"}}
			want(f, "counts", f.apply(c), millrace.Counts{Unchanged: 1})
			want(f, "sequence number", f.siteHead().Site().Seq, seq)
			for r, err := range f.site.KnownRefs(t.Context(), origin) {
				want(f, "held", r, c.Ref)
				want(f, "error", err, nil)
			}
			c.URL = base + "unknown"
			f.apply(c)
			want(f, "of an absent page", f.storedRefs(origin), set("/a=304"))
		}},
		{"a cursor is stored with its batch", func(t *testing.T, f *fixture) {
			cursor := func() millrace.Cursor {
				c, err := f.site.Cursor(t.Context(), origin)
				want(f, "error", err, nil)
				return c
			}
			want(f, "at first", cursor(), "")
			mark := millrace.Change{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: "c1"}}
			f.apply(put(article("/a", "a")), mark)
			want(f, "then", cursor(), "c1")
			_, err := f.site.Apply(t.Context(), origin, []millrace.Change{
				{Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: "c2"}}, {Kind: millrace.Put},
			})
			if err == nil {
				t.Error("an invalid batch was accepted")
			}
			want(f, "after a failed batch", cursor(), "c1")
			f.reopen()
			want(f, "after a restart", cursor(), "c1")
			c, _ := f.site.Cursor(t.Context(), other)
			want(f, "of another source", c, "")
		}},
		{"sites in one store do not see each other", func(t *testing.T, f *fixture) {
			second := f.openSite("https://second.example/", "https://second.example/")
			f.puts("/a", "/b")
			p := article("/a", "of the second")
			p.URL = "https://second.example/a"
			if _, err := second.Apply(t.Context(), origin, []millrace.Change{put(p)}); err != nil {
				t.Fatal(err)
			}
			f.apply(gone("/a"))
			v, err := second.Head(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want(f, "pages of the second", f.paths(v, millrace.Scan{}), set("https://second.example/a"))
			want(f, "pages of the first", f.paths(f.siteHead(), millrace.Scan{}), set("/b"))
			if err := second.Compact(t.Context(), 0, 0); err != nil {
				t.Fatal(err)
			}
			list, _ := f.changes(f.siteHead(), "")
			want(f, "changes", list, set("+/b"))
		}},
	}
}
