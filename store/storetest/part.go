package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// part refreshes the publication with a limit.
func (f *fixture) part(limit int) (v millrace.View, more bool) {
	f.Helper()
	more, err := f.pub.Refresh(f.Context(), store.Lease{}, limit, nil)
	want(f, "refresh", err, nil)
	return f.headOf(f.pub), more
}

func partCases() []testCase {
	return []testCase{
		{"a refresh with a limit takes whole batches", func(t *testing.T, f *fixture) {
			f.taggers(slashes())
			f.puts("/a", "/b", "/c", "/e")
			f.publish(f.pub)
			v := f.headOf(f.pub)
			f.pass(time.Hour)
			f.apply(put(article("/a", "1")), put(article("/b", "1")), put(article("/c", "1")))
			f.apply(put(article("/a", "2")), gone("/b"), put(article("/e/", "2")))
			f.apply(put(article("/a", "3")), put(article("/b", "3")))
			f.apply(gone("/c"))
			for _, exp := range []struct {
				limit         int
				changes, tags []string
				text          string
				more          bool
			}{
				{1, set("~/a", "~/b", "~/c"), set("/a 1", "/b 1", "/c 1", "/e 1"), "1", true},
				{4, set("+/e/", "~/a", "~/b"), set("/a 1", "/b 1", "/c 1", "/e 1", "/e/ 2"), "3", true},
				{1, set("-/c"), set("/a 1", "/b 1", "/e 1", "/e/ 2"), "3", false},
				{1, set(), set("/a 1", "/b 1", "/e 1", "/e/ 2"), "3", false},
			} {
				last, cursor := v.Site(), f.cursor(v)
				f.pass(time.Minute)
				var more bool
				v, more = f.part(exp.limit)
				want(f, "more", more, exp.more)
				list, _ := f.changes(v, cursor)
				want(f, "changes", list, exp.changes)
				want(f, "text", f.page(v, "/a").Text(), "Heading\n\n"+exp.text)
				want(f, "tags", f.tags(v, "one", ""), exp.tags)
				now := f.clock()
				if len(list) == 0 {
					now = last.Time
				}
				want(f, "time", v.Site().Time, now)
				f.publishView(f.pub, v)
				f.reopen()
				got, _ := f.published(f.pub)
				want(f, "published", got.Site(), v.Site())
				v = f.headOf(f.pub)
				want(f, "head", v.Site(), got.Site())
			}
			f.agree("at the end", v, f.config)
		}},
		{"a refresh that compares all pages has no limit", func(_ *testing.T, f *fixture) {
			batch := func(text string) {
				for i := range 3 {
					f.apply(put(article(fmt.Sprint("/", i), text)), put(article(fmt.Sprint("/hidden/", i), text)))
				}
			}
			complete := func(what string) {
				f.Helper()
				v, more := f.part(1)
				want(f, what+": more", more, false)
				f.agree(what, v, f.config)
			}
			batch("first")
			complete("first")
			f.publish(f.pub)
			batch("second")
			f.configure(func(c *store.Config) { c.Visibility.Exclude = []string{"/hidden"} })
			complete("another configuration")
			f.publish(f.pub)
			for range 3 {
				f.pass(48 * time.Hour)
				batch(f.clock().String())
			}
			f.pass(48 * time.Hour)
			f.compact(time.Minute, time.Hour)
			complete("compacted")
		}},
		{"a refresh with a limit shows no part of an interrupted refresh", func(t *testing.T, f *fixture) {
			f.taggers(slashes())
			batch := func(from, to int, text string) {
				var changes []millrace.Change
				for i := from; i < to; i++ {
					changes = append(changes, put(article(fmt.Sprintf("/p%04d", i), text)))
				}
				f.apply(changes...)
			}
			batch(0, 600, "old")
			f.publish(f.pub)
			batch(0, 300, "new")
			batch(300, 600, "new")
			batch(0, 1, "newer")
			f.cutOff(f.config, 250) // the Refresh skips the older change of the first page
			v, more := f.part(1)
			if one, two := f.page(v, "/p0000").Text(), f.page(v, "/p0299").Text(); one == "Heading\n\nold" || two == "Heading\n\nold" {
				t.Errorf("one page has %q, and one of the same batch %q", one, two)
			}
			for more {
				v, more = f.part(1)
			}
			f.agree("at the end", v, f.config)
		}},
	}
}
