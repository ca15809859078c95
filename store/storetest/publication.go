package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// hide sets the paths that a configuration hides.
func hide(paths ...string) func(c *store.Config) {
	return func(c *store.Config) { c.Visibility.Exclude = append([]string{}, paths...) }
}

func (f *fixture) absent(v millrace.View, paths ...string) {
	f.Helper()
	for _, path := range paths {
		if _, err := v.Page(f.Context(), millrace.Ref{URL: path}); !errors.Is(err, millrace.ErrNotFound) {
			f.Errorf("page %s: %v", path, err)
		}
	}
}

func publicationCases() []testCase {
	return []testCase{
		{"a bad configuration is refused", func(t *testing.T, f *fixture) {
			for name, c := range map[string]store.Config{
				"no base":           {},
				"relative":          {Base: "/x/"},
				"no slash":          {Base: "https://example.com"},
				"bad endpoint base": {Base: base, EndpointBase: "docs"},
				"two of a kind":     {Base: base, Taggers: []millrace.Tagger{tagger("one"), tagger("one")}},
			} {
				if _, err := f.site.Publication(t.Context(), c); !errors.Is(err, millrace.ErrInvalid) {
					t.Errorf("%s: %v", name, err)
				}
			}
		}},
		{"no configuration shows noindex and pages behind a login", func(t *testing.T, f *fixture) {
			f.configure(hide("/private"))
			secret, member := article("/secret", "s"), article("/member", "m")
			secret.Access.NoIndex, member.Access.Auth = true, true
			f.apply(put(secret), put(member), put(article("/private/x", "c")))
			v := f.head()
			f.absent(v, "/secret", "/member", "/private/x")
			list, cursor := f.changes(v, "")
			want(f, "changes", list, set())
			f.apply(put(article("/secret", "s")))
			list, cursor = f.changes(f.head(), cursor)
			want(f, "opened", list, set("+/secret"))
			f.apply(put(secret))
			list, _ = f.changes(f.head(), cursor)
			want(f, "closed", list, set("-/secret"))
		}},
		{"an author's address is not shown", func(t *testing.T, f *fixture) {
			p := article("/a", "text")
			p.Author = "Ada <ada@example.com>"
			p.Schema = []rawJSON{rawJSON(`{"@type":"Person","name":"Ada","email":"ada@example.com"}`)}
			p.Known |= millrace.FieldAuthor | millrace.FieldSchema
			f.apply(put(p))
			got := f.page(f.head(), "/a")
			want(f, "author", got.Author, "Ada")
			want(f, "schema", string(got.Schema[0]), `{"@type":"Person","name":"Ada"}`)
		}},
		{"the date of a page is the site's", func(t *testing.T, f *fixture) {
			f.apply(put(dated("/old", "one", f.clock().AddDate(-1, 0, 0))), put(article("/a", "one")))
			f.pass(time.Hour)
			for range 2 {
				v, s := f.head(), f.siteHead()
				for _, path := range []string{"/old", "/a"} {
					want(f, path, f.page(v, path).Modified, f.page(s, path).Modified)
				}
				f.apply(put(dated("/old", "two", f.clock().AddDate(-1, 0, 1))), put(article("/a", "two")))
			}
		}},
		{"publications of one site do not disturb each other", func(t *testing.T, f *fixture) {
			one := f.publication(store.Config{Base: base, Taggers: []millrace.Tagger{tagger("one")}})
			two := f.publication(store.Config{Base: localBase, Visibility: millrace.Visibility{Exclude: []string{"/private"}}})
			three := f.publication(store.Config{Base: base, EndpointBase: "https://docs.example/", Taggers: []millrace.Tagger{tagger("one")}})
			names := map[string]bool{f.pub.Name(): true, one.Name(): true, two.Name(): true, three.Name(): true}
			want(f, "names", len(names), 4)
			f.puts("/a", "/private/b")
			for _, p := range []store.Publication{one, two, three} {
				want(f, "edition", f.publish(p).Number, uint64(1))
			}
			first := f.headOf(one)
			want(f, "pages of the first", f.paths(first, millrace.Scan{}), set("/a", "/private/b"))
			want(f, "page of the second", f.page(f.headOf(two), "/a").URL, localBase+"a")
			want(f, "docs", []string{f.headOf(two).Site().EndpointBase, f.headOf(three).Site().EndpointBase}, []string{localBase, "https://docs.example/"})
			f.absent(f.headOf(two), "/private/b")
			if f.tag(first, "one", "/a").Value == f.tag(f.headOf(three), "one", "/a").Value {
				t.Error("two publications with different documents have one tag")
			}
			f.untagged(f.headOf(two), "one", "/a")

			f.pass(time.Hour)
			f.apply(put(article("/a", "edited")), gone("/private/b"), put(article("/c", "c")))
			want(f, "pages of the second", f.paths(f.refresh(two), millrace.Scan{}), set("/a", "/c"))
			want(f, "the first stays", f.headOf(one).Site(), first.Site())
			want(f, "its page", f.page(f.headOf(one), "/a").Text(), "Heading\n\nText of /a")
			want(f, "edition of the second", f.publish(two).Number, uint64(2))
			v, e := f.published(one)
			want(f, "edition of the first", []any{v.Site(), e.Number}, []any{first.Site(), uint64(1)})
			f.puts("/d")
			list, _ := f.changes(f.refresh(one), f.cursor(first))
			want(f, "changes of the first", list, set("~/a", "+/c", "-/private/b", "+/d"))
		}},
		{"cursors of a site and of its publications are not interchangeable", func(t *testing.T, f *fixture) {
			f.puts("/a")
			other := f.publication(store.Config{Base: localBase})
			views := []millrace.View{f.siteHead(), f.head(), f.refresh(other)}
			for i, v := range views {
				for j, w := range views {
					err := f.refusal(v, w.Site().At(w.Site().Seq))
					if (i == j) != (err == nil || !errors.Is(err, millrace.ErrConflict)) {
						t.Errorf("cursor of view %d at view %d: %v", j, i, err)
					}
				}
			}
		}},
		{"opening a publication twice returns the same one", func(t *testing.T, f *fixture) {
			f.configure(hide("/x"))
			f.puts("/a", "/x")
			site, name := f.head().Site(), f.pub.Name()
			c := f.config
			c.EndpointBase = c.Base
			again := f.publication(c)
			want(f, "name", again.Name(), name)
			want(f, "head", f.headOf(again).Site(), site)
			f.reopen()
			want(f, "name after reopening", f.pub.Name(), name)
			want(f, "head after reopening", f.headOf(f.pub).Site(), site)
			want(f, "an unneeded refresh", f.head().Site(), site)
		}},
		{"a change of a hidden field is no change", func(t *testing.T, f *fixture) {
			f.configure(func(c *store.Config) { c.Visibility.Authors = millrace.AuthorHidden })
			p := article("/a", "text")
			p.Author = "Ada"
			p.Known |= millrace.FieldAuthor
			future := dated("/future", "text", f.clock().Add(240*time.Hour))
			future.Known |= millrace.FieldAuthor
			f.apply(put(p), put(future))
			before := f.head()
			f.pass(time.Hour)
			p, future = p.Clone(), future.Clone()
			p.Author, future.Author = "Bob", "Bob"
			want(f, "counts", f.apply(put(p), put(future)), millrace.Counts{Updated: 2})
			list, _ := f.changes(f.head(), f.cursor(before))
			want(f, "changes", slices.Contains(list, "~/a"), false)
			want(f, "page", f.page(f.head(), "/a"), f.page(before, "/a"))
			if m := f.page(f.head(), "/future").Modified; m.After(f.clock()) {
				t.Errorf("a date in the future: %v", m)
			}
		}},
	}
}
