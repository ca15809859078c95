package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// cutOff refreshes the publication of a configuration. It cancels the Refresh when a tagger
// receives its n-th page.
func (f *fixture) cutOff(c store.Config, n int) {
	f.Helper()
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	c.Taggers = slices.Clone(c.Taggers)
	tag := c.Taggers[0].Tag
	var pages atomic.Int64
	c.Taggers[0].Tag = func(s millrace.Site, p *millrace.Page) (string, error) {
		if pages.Add(1) == int64(n) {
			cancel()
		}
		return tag(s, p)
	}
	if _, err := f.publication(c).Refresh(ctx, store.Lease{}, 0, nil); !errors.Is(err, context.Canceled) {
		f.Fatalf("a canceled refresh: %v", err)
	}
}

// agree checks that a publication's view has the visible pages of the site, and their tags.
func (f *fixture) agree(what string, v millrace.View, c store.Config) {
	f.Helper()
	exp, got := make(content), make(content)
	for p, err := range f.siteHead().Scan(f.Context(), millrace.Scan{WithBlocks: true}) {
		want(f, what+": error", err, nil)
		p.URL = relative(p.URL)
		if p, ok := c.Visibility.Apply(p); ok {
			exp[p.URL] = describe(p)
		}
	}
	for p, err := range v.Scan(f.Context(), millrace.Scan{WithBlocks: true}) {
		want(f, what+": error", err, nil)
		got[relative(p.URL)] = describe(p)
		for _, t := range c.Taggers {
			value, _ := t.Tag(v.Site(), p)
			tag := f.tag(v, t.Protocol, p.URL)
			want(f, what+": tag of "+p.URL, tag, millrace.Tag{URL: p.URL, Value: value, N: tag.N, Modified: p.Modified})
		}
	}
	want(f, what, got, exp)
	want(f, what+": count", v.Site().Pages, len(exp))
}

func refreshCases() []testCase {
	return []testCase{
		{"a publication has no head before a refresh", func(t *testing.T, f *fixture) {
			f.puts("/a")
			if _, err := f.pub.Head(t.Context()); !errors.Is(err, millrace.ErrNotFound) {
				t.Errorf("head: %v", err)
			}
			f.head()
			f.puts("/b")
			want(f, "head", f.headOf(f.pub).Site().Pages, 1)
			f.reopen()
			want(f, "head after reopening", f.headOf(f.pub).Site().Pages, 1)
		}},
		{"an empty site has an empty head", func(_ *testing.T, f *fixture) {
			want(f, "pages", f.paths(f.head(), millrace.Scan{}), set())
			want(f, "edition", f.publish(f.pub).Number, uint64(1))
		}},
		{"the entries of a late refresh have the time of the refresh", func(t *testing.T, f *fixture) {
			f.puts("/a")
			before := f.head()
			f.pass(time.Hour)
			f.puts("/b")
			f.pass(time.Hour)
			after := f.head()
			for d, exp := range map[time.Duration]uint64{-time.Minute: before.Site().Seq, time.Second: after.Site().Seq} {
				got, err := after.SeqAt(t.Context(), f.clock().Add(d))
				want(f, "error", err, nil)
				want(f, d.String(), got, exp)
			}
			for c, err := range after.Changes(t.Context(), f.cursor(before)) {
				want(f, "error", err, nil)
				if c.Kind == millrace.Put && c.Time.Before(f.clock()) {
					t.Errorf("%s changed at %v, before the refresh", c.URL, c.Time)
				}
			}
		}},
		{"an interrupted refresh leaves the head, and the next one completes it", func(t *testing.T, f *fixture) {
			f.taggers(slashes())
			page := func(i int, text string) millrace.Change { return put(article(fmt.Sprintf("/p%04d", i), text)) }
			var batch []millrace.Change
			for i := range 1500 {
				batch = append(batch, page(i, "text"))
			}
			f.apply(batch...)
			for _, n := range []int{1, 700} {
				f.cutOff(f.config, n)
				if _, err := f.pub.Head(t.Context()); !errors.Is(err, millrace.ErrNotFound) {
					t.Errorf("head after an interrupted first refresh: %v", err)
				}
			}
			first := f.head()
			cursor := f.cursor(first)
			f.agree("first", first, f.config)
			f.publish(f.pub)

			f.pass(time.Hour)
			for i := range batch {
				batch[i] = page(i, "edited")
			}
			f.apply(batch...)
			f.apply(gone("/p1499"), put(article("/z/", "new")))
			f.cutOff(f.config, 900)
			cut := f.clock()
			want(f, "head", f.headOf(f.pub).Site(), first.Site())
			v, _ := f.published(f.pub)
			want(f, "published", v.Site(), first.Site())
			f.reopen()
			f.pass(time.Hour)
			f.apply(gone("/p0000"), put(article("/p0001", "edited again")), put(article("/z", "new")), put(article("/p1499", "back")))
			want(f, "page of the head", f.page(f.headOf(f.pub), "/p0001").Text(), "Heading\n\ntext")
			second := f.head()
			f.agree("second", second, f.config)
			want(f, "tags", f.tags(second, "one", "/p1499"), set("/z 1", "/z/ 2"))
			list, _ := f.changes(second, cursor)
			want(f, "changes", len(list), 1502)
			got, err := second.SeqAt(t.Context(), cut.Add(time.Minute))
			want(f, "error", err, nil)
			want(f, "sequence number before the refresh ended", got, first.Site().Seq)
		}},
		{"progress counts pages", func(t *testing.T, f *fixture) {
			for i := range 40 {
				f.puts(fmt.Sprint("/", i))
			}
			refresh := func() (steps, all int) {
				last := 0
				_, err := f.pub.Refresh(t.Context(), store.Lease{}, 0, func(done, total int) {
					if steps++; done < last || done > total {
						t.Errorf("progress: %d of %d pages, previously %d", done, total, last)
					}
					last, all = done, total
				})
				want(f, "error", err, nil)
				return steps, all
			}
			if steps, all := refresh(); steps == 0 || all != 40 {
				t.Errorf("%d steps to %d pages", steps, all)
			}
			f.apply(put(article("/1", "edited")), put(article("/2", "edited")))
			if steps, all := refresh(); steps == 0 || all != 2 {
				t.Errorf("after two edits: %d steps to %d pages", steps, all)
			}
		}},
		{"a publication that was closed during compaction is complete again after a refresh", func(_ *testing.T, f *fixture) {
			f.taggers(slashes())
			f.puts("/same", "/edited", "/deleted", "/twice", "/back", "/hidden", "/r", "/r/", "/same/")
			before := f.publish(f.pub)
			old := f.headOf(f.pub)
			cursor := f.cursor(old)
			dates := map[string]time.Time{}
			for _, path := range f.paths(old, millrace.Scan{}) {
				dates[path] = f.page(old, path).Modified
			}
			hidden := article("/hidden", "h")
			hidden.Access.NoIndex = true
			second := f.publication(store.Config{Base: localBase}) // follows the site
			for _, batch := range [][]millrace.Change{
				{put(article("/edited", "1")), gone("/deleted"), gone("/twice"), put(hidden), put(article("/new", "n")), put(article("/brief", "b"))},
				{gone("/back"), put(article("/edited", "2")), gone("/brief"), gone("/r"), put(article("/new/", "n"))},
				{put(article("/back", "Text of /back")), put(article("/twice", "again"))},
				{gone("/twice")},
			} {
				f.pass(7 * 24 * time.Hour)
				f.apply(batch...)
				f.refresh(second)
				f.compact(time.Minute, time.Hour)
			}
			f.pass(24 * time.Hour)
			f.compact(time.Minute, time.Hour)
			f.reopen()
			_, e := f.published(f.pub)
			want(f, "edition", e, before)
			v := f.head()
			f.agree("pages", v, f.config)
			want(f, "tags", f.tags(v, "one", ""), set("/back 1", "/edited 1", "/new 1", "/new/ 2", "/r/ 1", "/same 1", "/same/ 2"))
			list, _ := f.changes(v, cursor)
			slices.Sort(list)
			same := func(c string) bool { return c == "~/back" } // the contract does not define whether this is a change
			want(f, "changes", slices.DeleteFunc(slices.Clone(list), same), set("+/new", "+/new/", "-/deleted", "-/hidden", "-/r", "-/twice", "~/edited"))
			for path, date := range dates {
				if p, err := v.Page(f.Context(), millrace.Ref{URL: path}); err == nil {
					changed := strings.Contains(strings.Join(list, " "), "~"+path)
					if got := p.Modified; changed && !got.After(date) || !changed && !got.Equal(date) {
						f.Errorf("modified of %s: %v, before %v", path, got, date)
					}
				}
			}
		}},
		{"a new publication of a compacted site is complete", func(_ *testing.T, f *fixture) {
			f.puts("/a", "/b", "/c")
			f.pass(48 * time.Hour)
			f.apply(gone("/b"), put(article("/c", "edited")))
			f.pass(48 * time.Hour)
			f.compact(time.Minute, time.Hour)
			f.taggers(tagger("one"))
			f.agree("pages", f.head(), f.config)
		}},
		{"a date rises across a compacted deletion", func(_ *testing.T, f *fixture) {
			old := time.Date(2020, 5, 5, 5, 5, 5, 0, time.UTC)
			f.apply(put(dated("/a", "one", old)))
			f.head()
			f.pass(time.Hour)
			f.apply(gone("/a"))
			removed := f.clock()
			f.head()
			for range 13 {
				f.pass(30 * 24 * time.Hour)
				f.puts("/" + f.clock().Format("2006-01-02"))
				f.head()
				f.compact(time.Minute, time.Hour)
			}
			f.apply(put(dated("/a", "one", old)))
			for what, v := range map[string]millrace.View{"site": f.siteHead(), "publication": f.head()} {
				if m := f.page(v, "/a").Modified; !m.After(removed) {
					f.Errorf("%s: modified %v, deleted at %v", what, m, removed)
				}
			}
		}},
		{"a change during a refresh is in the next one", func(_ *testing.T, f *fixture) {
			f.puts("/a", "/b")
			var once sync.Once
			tagger := slashes()
			tagger.Tag = func(s millrace.Site, p *millrace.Page) (string, error) {
				once.Do(func() { f.apply(put(article("/late", "late")), gone("/a"), put(article("/b", "edited"))) })
				return slashes().Tag(s, p)
			}
			f.taggers(tagger)
			f.head()
			f.agree("pages", f.head(), f.config)
		}},
		{"two concurrent refreshes write one log", func(t *testing.T, f *fixture) {
			f.taggers(slashes())
			second := f.pub
			c, pages := f.config, 0
			var between millrace.Cursor
			c.Taggers = []millrace.Tagger{slashes()}
			c.Taggers[0].Tag = func(s millrace.Site, p *millrace.Page) (string, error) {
				if pages++; pages%5 == 3 { // in the middle of the first Refresh
					f.puts("/late/", fmt.Sprint("/late", pages))
					f.apply(put(article("/0/0", fmt.Sprint("edited ", pages)))) // after the tag of the page was computed
					if _, err := second.Refresh(t.Context(), store.Lease{}, 0, nil); err != nil && !errors.Is(err, millrace.ErrConflict) {
						t.Errorf("the second refresh: %v", err)
					}
					between = f.cursor(f.headOf(second))
				}
				return slashes().Tag(s, p)
			}
			first := f.publication(c)
			for i := range 3 {
				for j := range 5 {
					f.puts(fmt.Sprint("/", i, "/", j))
				}
				if _, err := first.Refresh(t.Context(), store.Lease{}, 0, nil); err != nil && !errors.Is(err, millrace.ErrConflict) {
					t.Errorf("the first refresh: %v", err)
				}
				list, _ := f.changes(f.head(), between)
				want(f, "changes after the second refresh", list, set())
			}
			v := f.head()
			f.agree("pages", v, f.config)
			list, _ := f.changes(v, v.Site().At(0))
			want(f, "changes", len(list), v.Site().Pages)
		}},
		{"a publication that was opened and not refreshed for years is complete again after a refresh", func(_ *testing.T, f *fixture) {
			f.puts("/a", "/b", "/c")
			f.publish(f.pub)
			f.pass(time.Hour)
			f.apply(gone("/a"), put(article("/b", "edited")))
			for range 5 {
				f.pass(200 * 24 * time.Hour)
				f.puts("/" + f.clock().Format("2006-01"))
				f.reopen()
				f.compact(time.Minute, time.Hour)
			}
			f.agree("pages", f.head(), f.config)
		}},
	}
}
