package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

const (
	folder = "folder /srv/site" // name of a site without a URL
	baseA  = "https://a.example/"
	baseB  = "https://b.example/x/"
	baseC  = "https://c.example/"
)

// linked returns a page with all kinds of links to pages below a base.
func linked(base string) *millrace.Page {
	return &millrace.Page{
		URL: base + "p", Title: "P", Detail: millrace.DetailBlocks,
		Blocks: []millrace.Block{
			{Type: millrace.TextBlock, Text: "see q", Spans: []millrace.Span{{Type: millrace.LinkSpan, Start: 4, End: 5, URL: base + "q"}}},
			{Type: millrace.ImageBlock, URL: base + "i.png", Alt: "i"},
			{Type: millrace.VideoBlock, URL: base + "v.mp4", Poster: base + "v.png", Sources: []millrace.MediaSource{{URL: base + "v.webm"}}},
			{Type: millrace.LinkBlock, URL: "https://elsewhere.example/", Text: "elsewhere"},
		},
		Schema: []rawJSON{rawJSON(`{"@type":"Article","url":"` + base + `p"}`)},
		Known:  millrace.FieldTitle | millrace.FieldContent | millrace.FieldSchema,
	}
}

// siteNames returns the names of the sites in the store.
func (f *fixture) siteNames() []string {
	f.Helper()
	names := []string{}
	for name, err := range f.store.Sites(f.Context()) {
		if err != nil {
			f.Fatalf("sites: %v", err)
		}
		names = append(names, name)
	}
	return names
}

func siteCases() []testCase {
	return []testCase{
		{"sites are listed once they have had a page", func(t *testing.T, f *fixture) {
			want(f, "of an empty store", f.siteNames(), set())
			first := f.openSite("a folder", base)
			want(f, "opened", f.siteNames(), set())
			f.puts("/a")
			if _, err := first.Apply(t.Context(), origin, []millrace.Change{put(article("/a", "text"))}); err != nil {
				t.Fatal(err)
			}
			f.apply(gone("/a"))
			want(f, "by name, without pages too", f.siteNames(), set("a folder", siteName))
			f.reopen()
			want(f, "opened again", f.siteNames(), set("a folder", siteName))
		}},
		{"a site has a base", func(t *testing.T, f *fixture) {
			open := func(name, base string, kind error) {
				t.Helper()
				if _, err := f.store.Site(t.Context(), name, base); !errors.Is(err, kind) {
					t.Errorf("site %q with base %q: %v", name, base, err)
				}
			}
			for _, bad := range []string{"x", "/x/", "https://example.com", "https:///x/"} {
				open("another", bad, millrace.ErrInvalid)
			}
			open("https://absent.example/", "", millrace.ErrNotFound)
			open("another", "", millrace.ErrNotFound)
			open("another", baseA, nil)
			open("another", "", millrace.ErrNotFound)
			f.puts("/a")
			own := f.openSite(siteName, "")
			v, err := own.Head(t.Context())
			want(f, "error", err, nil)
			want(f, "the name is the base", v.Site().Base, base)
		}},
		{"a site without a URL of its own takes its base from its newest edition", func(t *testing.T, f *fixture) {
			f.site = f.openSite(folder, baseA)
			f.apply(named("/p", linked(baseA)))
			for _, b := range []string{baseB, baseC} {
				f.publish(f.publication(store.Config{Base: b}))
				f.pass(time.Second)
			}
			v, err := f.openSite(folder, "").Head(t.Context())
			want(f, "error", err, nil)
			want(f, "base", v.Site().Base, baseC)
			want(f, "page", f.page(v, baseC+"p").URL, baseC+"p")
		}},
		{"the URLs of a site without a URL of its own are below the caller's base", func(t *testing.T, f *fixture) {
			f.site = f.openSite(folder, baseA)
			want(f, "counts", f.apply(named("/p", linked(baseA))), millrace.Counts{Added: 1})
			check := func(what string, v millrace.View, base string) {
				t.Helper()
				for _, url := range []string{"/p", base + "p"} {
					got := f.page(v, url)
					exp := linked(base)
					exp.Version, exp.Modified, exp.Known = got.Version, got.Modified, exp.Known|millrace.FieldModified
					want(f, what+": "+url, got, exp)
				}
				for p, err := range v.Scan(t.Context(), millrace.Scan{WithBlocks: true}) {
					want(f, what+": error", err, nil)
					want(f, what+": scanned", p.Blocks, linked(base).Blocks)
				}
				for c, err := range v.Changes(t.Context(), "") {
					want(f, what+": error", err, nil)
					if c.Kind == millrace.Put {
						want(f, what+": change", c.URL, base+"p")
					}
				}
			}
			p := f.publication(store.Config{Base: baseC, Taggers: []millrace.Tagger{tagger("one")}})
			f.pass(time.Second)
			v := f.refresh(p)
			seq := f.siteHead().Site().Seq
			check("site, writer", f.siteHead(), baseA)
			check("publication", v, baseC)
			want(f, "tag", f.tag(v, "one", "/p").URL, baseC+"p")

			f.site = f.openSite(folder, baseB)
			check("site, another caller", f.siteHead(), baseB)
			want(f, "the same page by another base", f.apply(named("/p", linked(baseB))), millrace.Counts{Unchanged: 1})
			want(f, "sequence number", f.siteHead().Site().Seq, seq)
			want(f, "sequence number of the publication", f.refresh(p).Site().Seq, v.Site().Seq)
			var refs []string
			for r, err := range f.site.KnownRefs(t.Context(), origin) {
				want(f, "error", err, nil)
				refs = append(refs, r.URL)
			}
			want(f, "held", refs, set("/p"))
			if ws, err := f.site.HTMLSizes(t.Context(), []string{baseB + "p"}); len(ws) != 1 || err != nil {
				t.Errorf("HTML sizes: %v, %v", ws, err)
			}
			want(f, "deleted by another base", f.apply(millrace.Change{Kind: millrace.Delete, Ref: millrace.Ref{URL: "/p"}}), millrace.Counts{Deleted: 1})
		}},
		{"a site with a URL of its own keeps its links under another base", func(t *testing.T, f *fixture) {
			f.apply(put(linked(base)))
			v := f.refresh(f.publication(store.Config{Base: localBase}))
			got := f.page(v, "/p")
			want(f, "page", got.URL, localBase+"p")
			want(f, "links", got.Blocks, linked(base).Blocks)
		}},
		{"the site has every page unchanged from its sources", func(t *testing.T, f *fixture) {
			secret := article("/cart/secret", "s")
			secret.Access.NoIndex, secret.Access.Auth = true, true
			secret.Author = "Ada <ada@example.com>"
			secret.Known |= millrace.FieldAuthor
			want(f, "counts", f.apply(put(secret)), millrace.Counts{Added: 1})
			got := f.page(f.siteHead(), "/cart/secret")
			want(f, "author", got.Author, secret.Author)
			want(f, "access", got.Access, secret.Access)
			if _, err := f.siteHead().Tag(t.Context(), "one", "/cart/secret"); !errors.Is(err, millrace.ErrNotFound) {
				t.Errorf("a tag of the site: %v", err)
			}
			want(f, "tags", f.tags(f.siteHead(), "one", ""), set())
		}},
	}
}

// named returns the change that stores a page under a name of its source.
func named(name string, p *millrace.Page) millrace.Change {
	c := put(p)
	c.URL = name
	return c
}
