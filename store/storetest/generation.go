package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// conflict checks that a view rejects a cursor of another log.
func (f *fixture) conflict(what string, v millrace.View, c millrace.Cursor) {
	f.Helper()
	if err := f.refusal(v, c); !errors.Is(err, millrace.ErrConflict) {
		f.Errorf("%s: cursor %q: %v", what, c, err)
	}
}

func generationCases() []testCase {
	return []testCase{
		{"a page that a configuration hides is deleted", func(t *testing.T, f *fixture) {
			f.taggers(tagger("one"))
			f.puts("/a", "/private/x", "/private/y", "/gone")
			f.publish(f.pub)
			old, first := f.pub, f.head()
			f.apply(gone("/gone"))
			f.publish(f.pub)
			second := f.head()
			cursor := f.cursor(second)
			f.pass(time.Hour)
			f.configure(hide("/private"))
			v := f.head()
			f.agree("hidden", v, f.config)
			list, _ := f.changes(v, cursor)
			slices.Sort(list)
			want(f, "changes", list, set("-/private/x", "-/private/y"))
			list, _ = f.changes(v, f.cursor(first))
			slices.Sort(list)
			want(f, "changes of an older cursor", list, set("-/gone", "-/private/x", "-/private/y"))
			for _, path := range []string{"/private/x", "/gone"} {
				if _, err := v.Tag(t.Context(), "one", path); !errors.Is(err, millrace.ErrGone) {
					t.Errorf("tag of %s: %v", path, err)
				}
			}
			want(f, "tag", f.tag(v, "one", "/a"), f.tag(second, "one", "/a"))
			want(f, "page", f.page(v, "/a"), f.page(second, "/a"))
			if !v.Site().Time.After(second.Site().Time) || v.Site().Seq <= second.Site().Seq {
				t.Errorf("%d at %v after %d at %v", v.Site().Seq, v.Site().Time, second.Site().Seq, second.Site().Time)
			}
			want(f, "the old generation", f.headOf(old).Site(), second.Site())
			want(f, "its pages", f.paths(second, millrace.Scan{}), set("/a", "/private/x", "/private/y"))
			f.publish(f.pub)

			f.pass(time.Hour)
			hidden := f.clock().Add(-time.Hour)
			f.configure(hide())
			list, _ = f.changes(f.head(), f.cursor(v))
			slices.Sort(list)
			want(f, "shown again", list, set("+/private/x", "+/private/y"))
			if m := f.page(f.head(), "/private/x").Modified; m.Before(hidden) || !m.After(f.page(first, "/private/x").Modified) {
				t.Errorf("modified %v, hidden at %v", m, hidden)
			}
			f.agree("shown again", f.head(), f.config)
		}},
		{"a page that changes only in the publication gets a date one second later", func(_ *testing.T, f *fixture) {
			p := article("/by-ada", "text")
			p.Author = "Ada"
			p.Known |= millrace.FieldAuthor
			f.apply(put(p), put(article("/anonymous", "text")))
			f.publish(f.pub)
			before := f.head()
			for i, display := range []millrace.AuthorDisplay{millrace.AuthorHidden, millrace.AuthorName} {
				f.configure(func(c *store.Config) { c.Visibility.Authors = display })
				v := f.head()
				list, _ := f.changes(v, f.cursor(before))
				want(f, "changes", list, set("~/by-ada"))
				want(f, "author", f.page(v, "/by-ada").Author, []string{"", "Ada"}[i])
				want(f, "date", f.page(v, "/by-ada").Modified, f.page(before, "/by-ada").Modified.Add(time.Duration(i+1)*time.Second))
				want(f, "date of another", f.page(v, "/anonymous").Modified, f.page(before, "/anonymous").Modified)
				f.publish(f.pub)
			}
			want(f, "date at the site", f.page(f.siteHead(), "/by-ada").Modified, f.page(before, "/by-ada").Modified)
			last := f.page(f.head(), "/by-ada").Modified
			f.apply(gone("/by-ada"))
			f.head()
			f.apply(put(p))
			if m := f.page(f.head(), "/by-ada").Modified; !m.After(last) {
				f.Errorf("deleted and added again: %v, before %v", m, last)
			}
			f.pass(time.Hour)
			f.apply(put(article("/by-ada", "new text")))
			want(f, "the site's date again", f.page(f.head(), "/by-ada").Modified, f.clock())
		}},
		{"cursors are valid up to the fork", func(_ *testing.T, f *fixture) {
			f.puts("/a", "/private")
			f.publish(f.pub)
			old := f.pub
			early := f.cursor(f.head())
			f.puts("/b")
			at := f.publish(old)
			atFork := f.headOf(old)
			f.configure(hide("/private"))
			v := f.head()
			f.puts("/c")
			late := f.refresh(old)
			f.puts("/d")
			w := f.head()
			for what, c := range map[string]millrace.Cursor{"early": early, "at the fork": f.cursor(atFork)} {
				if err := f.refusal(w, c); err != nil {
					f.Errorf("%s: %v", what, err)
				}
			}
			f.conflict("after the fork", w, f.cursor(late))
			f.conflict("of the fork", late, f.cursor(v))
			earlier := v.Site().Earlier
			want(f, "earlier epochs", len(earlier), 1)
			want(f, "earlier epoch", earlier[0], millrace.Epoch{Name: atFork.Site().Epoch, Last: atFork.Site().Seq})
			want(f, "edition", f.unpublished(f.pub), at)
			list, _ := f.changes(w, early)
			slices.Sort(list)
			want(f, "changes", list, set("+/b", "+/c", "+/d", "-/private"))
		}},
		{"a fork shows nothing of its parent until it publishes", func(_ *testing.T, f *fixture) {
			f.puts("/a", "/private")
			parent := f.publish(f.pub)
			f.configure(hide("/private"))
			want(f, "before its refresh", f.unpublished(f.pub), parent)
			if _, err := f.pub.Head(f.Context()); !errors.Is(err, millrace.ErrNotFound) {
				f.Errorf("head: %v", err)
			}
			f.head()
			want(f, "after its refresh", f.unpublished(f.pub), parent)
			want(f, "manifests", f.manifests(), set(string(parent.Manifest)))
			f.reopen()
			want(f, "after reopening", f.unpublished(f.pub), parent)
			if _, err := f.pub.Publish(f.Context(), store.Lease{}, 0, f.head().Site().Seq, nil); !errors.Is(err, millrace.ErrConflict) {
				f.Errorf("publish after no edition: %v", err)
			}
			want(f, "number", f.publish(f.pub).Number, parent.Number+1)
			v, _ := f.published(f.pub)
			f.absent(v, "/private")
		}},
		{"generations publish independently", func(_ *testing.T, f *fixture) {
			f.puts("/a", "/private")
			f.publish(f.pub)
			one := f.pub
			f.configure(hide("/private"))
			two := f.pub
			f.publish(two)
			for i, path := range []string{"/b", "/c", "/d"} {
				f.pass(time.Hour)
				f.puts(path, "/private"+path)
				var last [2]uint64
				for j, p := range []store.Publication{one, two} {
					_, before := f.published(p)
					last[j] = f.publish(p).Number
					want(f, "number", last[j] > before.Number, true)
				}
				v, _ := f.published(one)
				w, _ := f.published(two)
				want(f, "pages of the first generation", v.Site().Pages, 4+2*i)
				want(f, "pages of the second generation", w.Site().Pages, 2+i)
				want(f, "manifests", len(f.manifests()), 2)
				f.conflict("of the other", w, f.cursor(v))
				f.conflict("of the other", v, f.cursor(w))
			}
			f.agree("the second generation", f.headOf(two), f.config)
			for _, last := range []store.Publication{one, two} {
				f.puts("/e/" + last.Name())
				f.publish(last)
				want(f, "the first, opened again", f.publication(store.Config{Base: base}).Name(), one.Name())
				want(f, "the second, opened again", f.publication(f.config).Name(), two.Name())
			}
		}},
		{"an unpublished generation is opened again", func(_ *testing.T, f *fixture) {
			f.puts("/a", "/private")
			f.publish(f.pub)
			first := f.pub.Name()
			f.configure(hide("/private"))
			f.head()
			tried := f.pub.Name()
			f.configure(func(c *store.Config) { c.Visibility.Exclude = nil })
			want(f, "the first configuration", f.pub.Name(), first)
			f.configure(hide("/private"))
			want(f, "the second generation", f.pub.Name(), tried)
		}},
		{"returning to an earlier configuration forks from the later one", func(_ *testing.T, f *fixture) {
			f.puts("/a", "/private")
			f.publish(f.pub)
			first, names := f.cursor(f.head()), []string{f.pub.Name()}
			f.configure(hide("/private"))
			f.publish(f.pub)
			f.puts("/b")
			parent := f.publish(f.pub)
			second, names := f.cursor(f.head()), append(names, f.pub.Name())
			f.configure(func(c *store.Config) { c.Visibility.Exclude = nil })
			v := f.head()
			names = append(names, f.pub.Name())
			slices.Sort(names)
			want(f, "names", len(slices.Compact(names)), 3)
			want(f, "edition", f.unpublished(f.pub), parent)
			list, _ := f.changes(v, second)
			want(f, "since the second", list, set("+/private"))
			list, _ = f.changes(v, first)
			slices.Sort(list)
			want(f, "since the first", list, set("+/b", "~/private"))
			f.reopen()
			want(f, "opened again", f.headOf(f.pub).Site(), v.Site())
		}},
		{"an earlier generation that publishes last is opened again", func(_ *testing.T, f *fixture) {
			f.puts("/a", "/private")
			f.publish(f.pub)
			first, config := f.pub, f.config
			f.configure(hide("/private"))
			f.publish(f.pub)
			second := f.pub.Name()
			f.pass(time.Hour)
			f.puts("/b")
			f.publish(first)
			f.configure(func(*store.Config) {})
			want(f, "the second, from which the first was not forked", f.pub.Name(), second)
			f.config = config
			f.reopen()
			want(f, "the first", f.pub.Name(), first.Name())
			v, last := f.published(f.pub)
			f.configure(hide("/b"))
			want(f, "a third is forked from the first", f.unpublished(f.pub), last)
			want(f, "its epochs", f.head().Site().Earlier[0].Name, v.Site().Epoch)
		}},
		{"a generation that never published leaves no epoch", func(_ *testing.T, f *fixture) {
			f.puts("/a")
			v := f.head()
			f.configure(hide("/x"))
			w := f.head()
			want(f, "earlier epochs", len(w.Site().Earlier), 0)
			f.conflict("of another generation", w, f.cursor(v))
			want(f, "edition", f.unpublished(f.pub), store.Edition{})
		}},
		{"a new protocol gets its tags, an old one loses them", func(t *testing.T, f *fixture) {
			f.puts("/a", "/a/", "/b")
			f.publish(f.pub)
			f.taggers(slashes())
			f.agree("new", f.head(), f.config)
			want(f, "tags", f.tags(f.head(), "one", ""), set("/a 1", "/a/ 2", "/b 1"))
			f.apply(gone("/b"))
			if _, err := f.head().Tag(t.Context(), "one", "/b"); !errors.Is(err, millrace.ErrNotFound) || errors.Is(err, millrace.ErrGone) {
				t.Errorf("a tag that no edition had: %v", err)
			}
			f.puts("/b")
			f.publish(f.pub)
			f.taggers()
			f.untagged(f.head(), "one", "/a")
			f.publish(f.pub)
			f.apply(gone("/a"), put(article("/c", "c")))
			f.taggers(slashes(), tagger("two"))
			f.agree("again", f.head(), f.config)
			want(f, "tags again", f.tags(f.head(), "one", ""), set("/a/ 1", "/b 1", "/c 1"))
			f.publish(f.pub)
			longer := slashes()
			longer.Format++
			longer.Tag = func(s millrace.Site, p *millrace.Page) (string, error) {
				v, err := tagger("").Tag(s, p)
				return v + "2", err
			}
			f.taggers(longer, tagger("two"))
			list, _ := f.changes(f.head(), f.cursor(f.head()))
			want(f, "another format changes no page", list, set())
			f.agree("another format", f.head(), f.config)
		}},
		{"a fork of old pages keeps the cursor of its parent's edition", func(_ *testing.T, f *fixture) {
			f.puts("/a", "/b")
			f.publish(f.pub)
			cursor := f.cursor(f.head())
			for range 3 {
				f.pass(30 * 24 * time.Hour)
				f.puts("/new")
				f.head()
				f.apply(gone("/new"), put(article("/b", f.clock().String())))
				f.head()
				f.compact(time.Minute, time.Hour)
			}
			f.configure(hide("/a"))
			list, _ := f.changes(f.head(), cursor)
			slices.Sort(list)
			list = slices.DeleteFunc(list, func(c string) bool { return c == "±/new" })
			want(f, "changes", list, set("-/a", "~/b"))
			f.agree("pages", f.head(), f.config)
		}},
		{"an interrupted fork is completed", func(_ *testing.T, f *fixture) {
			f.taggers(tagger("one"))
			var batch []millrace.Change
			for _, dir := range []string{"/p/", "/q/"} {
				for i := range 600 {
					p := article(dir+string(rune('a'+i%26))+"/"+time.Duration(i).String(), "text")
					p.Author = "Ada"
					p.Known |= millrace.FieldAuthor
					batch = append(batch, put(p))
				}
			}
			f.apply(batch...)
			f.publish(f.pub)
			cursor := f.cursor(f.head())
			f.configure(func(c *store.Config) {
				c.Visibility.Exclude, c.Visibility.Authors = []string{"/p"}, millrace.AuthorHidden
			})
			f.cutOff(f.config, 400)
			f.unpublished(f.pub)
			f.pass(time.Hour)
			f.puts("/p/late", "/q/late")
			f.reopen()
			f.agree("completed", f.head(), f.config)
			list, _ := f.changes(f.head(), cursor)
			want(f, "changes", len(list), 1201)
		}},
	}
}
