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

func deriveCases() []testCase {
	hide := func(paths ...string) func(c *store.Config) {
		return func(c *store.Config) { c.Visibility.Exclude = paths }
	}
	return []testCase{
		{"the same configuration needs no derivation", func(t *testing.T, f *fixture) {
			f.puts("/a")
			seq := f.head().Site().Seq
			f.reopen(nil)
			want(f, "head before", f.head().Site().Seq, seq)
			f.derive()
			want(f, "head after", f.head().Site().Seq, seq)
		}},
		{"another configuration has to be derived first", func(t *testing.T, f *fixture) {
			f.puts("/a")
			f.publish(0)
			for name, mend := range map[string]func(c *store.Config){
				"base":       func(c *store.Config) { c.Base = "https://new.example/" },
				"docs":       func(c *store.Config) { c.Docs = "https://docs.example/" },
				"visibility": hide("/x"),
				"authors":    func(c *store.Config) { c.Visibility.Authors = millrace.AuthorHidden },
				"tagger":     func(c *store.Config) { c.Taggers = append(c.Taggers, tagger("one")) },
				"format":     func(c *store.Config) { c.Taggers[0].Format++ },
			} {
				if name == "format" && len(f.config.Taggers) == 0 {
					continue
				}
				f.reopen(mend)
				if _, err := f.site.Head(t.Context()); !errors.Is(err, millrace.ErrConflict) {
					t.Errorf("%s: head: %v", name, err)
				}
				if _, _, err := f.site.Published(t.Context()); !errors.Is(err, millrace.ErrNotFound) {
					t.Errorf("%s: published: %v", name, err)
				}
				f.derive()
				f.head()
			}
		}},
		{"a path that is hidden goes by deletions, and comes back", func(t *testing.T, f *fixture) {
			f.puts("/a", "/private/x", "/private/y")
			_, cursor := f.changes(f.head(), "")
			modified := f.page(f.head(), "/private/x").Modified
			f.pass(time.Hour)
			f.reopen(hide("/private"))
			f.derive()
			list, cursor2 := f.changes(f.head(), cursor)
			want(f, "hidden", list, set("-/private/x", "-/private/y"))
			want(f, "pages", f.paths(f.head(), millrace.Scan{}), set("/a"))
			want(f, "count", f.head().Site().Pages, 1)
			f.reopen(hide())
			f.derive()
			list, _ = f.changes(f.head(), cursor2)
			want(f, "back", list, set("+/private/x", "+/private/y"))
			if m := f.page(f.head(), "/private/x").Modified; !m.After(modified) {
				t.Errorf("modified %v, before %v", m, modified)
			}
			want(f, "text", f.page(f.head(), "/private/y").Blocks[1].Text, "Text of /private/y")
			want(f, "held", f.held(origin), set("/a=", "/private/x=", "/private/y="))
		}},
		{"authors that are hidden change only the pages that have one", func(t *testing.T, f *fixture) {
			p := article("/by-ada", "text")
			p.Author = "Ada"
			p.Known |= millrace.FieldAuthor
			f.apply(put(p), put(article("/by-nobody", "text")))
			_, cursor := f.changes(f.head(), "")
			f.reopen(func(c *store.Config) { c.Visibility.Authors = millrace.AuthorHidden })
			f.derive()
			list, _ := f.changes(f.head(), cursor)
			want(f, "changes", list, set("~/by-ada"))
			want(f, "author", f.page(f.head(), "/by-ada").Author, "")
			f.reopen(func(c *store.Config) { c.Visibility.Authors = millrace.AuthorName })
			f.derive()
			want(f, "author again", f.page(f.head(), "/by-ada").Author, "Ada")
		}},
		{"another base adds and deletes nothing", func(t *testing.T, f *fixture) {
			f.config.Taggers = []millrace.Tagger{tagger("one")}
			f.reopen(nil)
			f.derive()
			f.puts("/a", "/b")
			before := f.head()
			_, cursor := f.changes(before, "")
			site, version, value := before.Site(), f.page(before, "/a").Version, f.tag(before, "one", "/a").Value
			f.pass(time.Hour)
			f.reopen(func(c *store.Config) { c.Base = "http://localhost:8080/" })
			f.derive()
			v := f.head()
			list, _ := f.changes(v, cursor)
			want(f, "changes", list, set())
			want(f, "page", f.page(v, "/a").URL, "http://localhost:8080/a")
			want(f, "revision", f.page(v, "/a").Version, version)
			if !v.Site().Time.After(site.Time) {
				t.Error("the time of the site stands still")
			}
			tag := f.tag(v, "one", "/a")
			want(f, "URL of the tag", tag.URL, "http://localhost:8080/a")
			if tag.Value == value {
				t.Error("the tag is the old one")
			}
			want(f, "held", f.held(origin), set("/a=", "/b="))
			p := article("/a", "Text of /a")
			p.URL = "http://localhost:8080/a"
			want(f, "the same page again", f.apply(put(p)), millrace.Tally{Unchanged: 1})
			want(f, "without the old name", f.apply(gone("/a")), millrace.Tally{Unchanged: 1})
			want(f, "a name that means a page elsewhere now", f.apply(put(article("/b", "Text of /b"))), millrace.Tally{Added: 1, Deleted: 1})
			want(f, "pages", f.paths(f.head(), millrace.Scan{}), set("http://localhost:8080/a", "/b"))
		}},
		{"a new room gets its tags, a room that goes loses them", func(t *testing.T, f *fixture) {
			f.puts("/a", "/a/", "/b")
			seq := f.head().Site().Seq
			f.reopen(func(c *store.Config) { c.Taggers = []millrace.Tagger{slashes()} })
			f.derive()
			want(f, "tags", f.tags(f.head(), "one", ""), set("/a 1", "/a/ 2", "/b 1"))
			want(f, "one entry says so", f.head().Site().Seq, seq+1)
			f.reopen(func(c *store.Config) { c.Taggers = nil })
			f.derive()
			f.untagged(f.head(), "one", "/a")
			f.apply(gone("/a"), put(article("/c", "c")))
			f.reopen(func(c *store.Config) { c.Taggers = []millrace.Tagger{slashes()} })
			f.derive()
			want(f, "tags again", f.tags(f.head(), "one", ""), set("/a/ 1", "/b 1", "/c 1"))
		}},
		{"a derivation that is interrupted goes on", func(t *testing.T, f *fixture) {
			var batch []millrace.Change
			for i := range 1000 {
				batch = append(batch, put(article(fmt.Sprintf("/p%d/%03d", i%2, i), "text")))
			}
			f.apply(batch...)
			_, cursor := f.changes(f.head(), "")
			f.reopen(hide("/p0"))
			ctx, cancel := context.WithCancel(t.Context())
			err := f.site.Derive(ctx, func(done, total int) {
				want(f, "total", total, 1000)
				if done >= 200 {
					cancel()
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("a canceled derivation: %v", err)
			}
			if _, err := f.site.Head(t.Context()); !errors.Is(err, millrace.ErrConflict) {
				t.Errorf("head in between: %v", err)
			}
			f.reopen(nil)
			first := -1
			if err := f.site.Derive(t.Context(), func(done, _ int) {
				if first < 0 {
					first = done
				}
			}); err != nil {
				t.Fatal(err)
			}
			if first <= 200 {
				t.Errorf("it went on at %d", first)
			}
			v := f.head()
			want(f, "pages", v.Site().Pages, 500)
			want(f, "number", v.Site().Seq, uint64(1501))
			list, _ := f.changes(v, cursor)
			want(f, "changes", len(list), 500)
		}},
		{"what comes while a derivation is interrupted is right after it", func(t *testing.T, f *fixture) {
			f.config.Taggers = []millrace.Tagger{slashes()}
			f.reopen(nil)
			f.derive()
			var batch []millrace.Change
			for i := range 300 {
				batch = append(batch, put(article(fmt.Sprintf("/p%03d", i), "text")))
			}
			f.apply(append(batch, put(article("/z/", "z")), put(article("/private/a", "a")))...)
			f.reopen(func(c *store.Config) { c.Docs = "https://docs.example/" })
			interrupt := func() {
				ctx, cancel := context.WithCancel(t.Context())
				if err := f.site.Derive(ctx, func(int, int) { cancel() }); !errors.Is(err, context.Canceled) {
					t.Fatalf("a canceled derivation: %v", err)
				}
			}
			interrupt()
			f.apply(put(article("/z", "the rival of /z/")))
			f.derive()
			v := f.head()
			for _, path := range []string{"/z", "/z/", "/p000", "/p299"} {
				value, _ := tagger("").Tag(v.Site(), f.page(v, path))
				want(f, "tag of "+path, f.tag(v, "one", path).Value, value)
			}
			want(f, "N", f.tag(v, "one", "/z/").N, 2)

			// Derived by half, written under the old configuration, derived on.
			f.reopen(hide("/a", "/private"))
			interrupt()
			f.reopen(hide("/x"))
			f.apply(put(article("/a", "before where it stopped")))
			f.reopen(hide("/a", "/private"))
			f.derive()
			if _, err := f.head().Page(t.Context(), millrace.Ref{URL: "/a"}); !errors.Is(err, millrace.ErrNotFound) {
				t.Errorf("a hidden page: %v", err)
			}
		}},
		{"a derivation does not reach into older views", func(t *testing.T, f *fixture) {
			f.config.Taggers = []millrace.Tagger{slashes()}
			f.reopen(nil)
			f.derive()
			f.puts("/a", "/a/", "/x/b")
			f.publish(0)
			old := f.published()
			tag := f.tag(old, "one", "/a")
			c := f.config
			c.Docs, c.Visibility.Exclude = "https://docs.example/", []string{"/x"}
			second := f.another("main", c)
			if err := second.Derive(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			want(f, "tag", f.tag(old, "one", "/a"), tag)
			want(f, "tags", f.tags(old, "one", ""), set("/a 1", "/a/ 2", "/x/b 1"))
			want(f, "pages", f.paths(old, millrace.Scan{}), set("/a", "/a/", "/x/b"))
			want(f, "the published view for its own configuration", f.tags(f.published(), "one", ""), set("/a 1", "/a/ 2", "/x/b 1"))
			v, err := second.Head(t.Context())
			if err != nil || f.tag(v, "one", "/a").Value == tag.Value {
				t.Errorf("the new view has the old tag: %v", err)
			}
		}},
		{"a date in the future does not move by derivation", func(t *testing.T, f *fixture) {
			f.apply(put(dated("/a", "text", f.clock().Add(time.Hour))))
			_, cursor := f.changes(f.head(), "")
			modified := f.page(f.head(), "/a").Modified
			f.pass(30 * time.Minute)
			f.reopen(func(c *store.Config) { c.Docs = "https://docs.example/" })
			f.derive()
			list, _ := f.changes(f.head(), cursor)
			want(f, "changes", list, set())
			want(f, "modified", f.page(f.head(), "/a").Modified, modified)
		}},
		{"an interrupted derivation may be taken back", func(t *testing.T, f *fixture) {
			var batch []millrace.Change
			for i := range 600 {
				batch = append(batch, put(article(fmt.Sprintf("/p/%03d", i), "text")))
			}
			f.apply(batch...)
			f.reopen(hide("/p"))
			ctx, cancel := context.WithCancel(t.Context())
			_ = f.site.Derive(ctx, func(int, int) { cancel() })
			f.reopen(func(c *store.Config) { c.Visibility.Exclude = nil })
			if _, err := f.site.Head(t.Context()); !errors.Is(err, millrace.ErrConflict) {
				t.Errorf("head of what is half derived by another configuration: %v", err)
			}
			f.derive()
			want(f, "pages", f.head().Site().Pages, 600)
		}},
		{"changes that come before the derivation are right after it", func(t *testing.T, f *fixture) {
			f.config.Taggers = []millrace.Tagger{slashes()}
			f.reopen(nil)
			f.derive()
			f.puts("/a/", "/b", "/private/x", "/z/")
			f.reopen(func(c *store.Config) {
				c.Visibility.Exclude = []string{"/private"}
				c.Docs = "https://docs.example/"
			})
			f.apply(put(article("/a", "a")), put(article("/private/y", "y")), put(article("/b", "edited")), gone("/z/"))
			f.derive()
			v := f.head()
			want(f, "pages", f.paths(v, millrace.Scan{}), set("/a", "/a/", "/b"))
			want(f, "tags", f.tags(v, "one", ""), set("/a 1", "/a/ 2", "/b 1"))
			for _, path := range []string{"/a", "/a/", "/b"} {
				p := f.page(v, path)
				value, _ := tagger("").Tag(v.Site(), p)
				want(f, "tag of "+path, f.tag(v, "one", path), millrace.Tag{URL: p.URL, Value: value, N: f.tag(v, "one", path).N, Modified: p.Modified})
			}
		}},
		{"a page written under another configuration spoils the old one", func(t *testing.T, f *fixture) {
			f.puts("/a", "/x/b")
			f.reopen(hide("/x"))
			f.apply(put(article("/x/c", "c")))
			f.reopen(func(c *store.Config) { c.Visibility.Exclude = nil })
			if _, err := f.site.Head(t.Context()); !errors.Is(err, millrace.ErrConflict) {
				t.Errorf("head: %v", err)
			}
			f.derive()
			want(f, "pages", f.paths(f.head(), millrace.Scan{}), set("/a", "/x/b", "/x/c"))
		}},
	}
}
