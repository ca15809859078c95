package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// manifestsAre checks that the store has the manifests of the given editions.
func (f *fixture) manifestsAre(what string, editions ...store.Edition) {
	f.Helper()
	exp := []string{}
	for _, e := range editions {
		exp = append(exp, string(e.Manifest))
	}
	slices.Sort(exp)
	want(f, what+": manifests", f.manifests(), slices.Compact(exp))
}

func dropCases() []testCase {
	const day = 24 * time.Hour
	return []testCase{
		{"a generation that was continued is dropped after a day", func(t *testing.T, f *fixture) {
			f.taggers(tagger("one"))
			f.puts("/a", "/private")
			one := f.publish(f.pub)
			cursor := f.cursor(f.head())
			old := f.pub
			f.configure(hide("/private"))
			two := f.publish(f.pub)
			f.compact(time.Minute, 2*day)
			f.manifestsAre("at once", one, two)
			f.pass(23 * time.Hour)
			f.compact(time.Minute, 2*day)
			f.manifestsAre("before a day", one, two)
			f.pass(2 * time.Hour)
			f.pub = f.publication(f.config)
			f.compact(time.Minute, 2*day)
			f.manifestsAre("after a day", two)
			_, errHead := old.Head(t.Context())
			_, _, errPublished := old.Published(t.Context())
			_, errRefresh := old.Refresh(t.Context(), store.Lease{}, 0, nil)
			for method, err := range map[string]error{"head": errHead, "published": errPublished, "refresh": errRefresh} {
				if !errors.Is(err, millrace.ErrConflict) {
					t.Errorf("%s of a generation that was dropped: %v", method, err)
				}
			}
			f.agree("the second", f.headOf(f.pub), f.config)
			list, _ := f.changes(f.headOf(f.pub), cursor)
			want(f, "changes since the first", list, set("-/private"))
			f.puts("/b")
			f.agree("refreshed", f.head(), f.config)
		}},
		{"an unpublished generation does not drop the edition of its parent", func(_ *testing.T, f *fixture) {
			f.puts("/a", "/private")
			one := f.publish(f.pub)
			f.configure(hide("/private"))
			f.head()
			f.pass(2 * day)
			f.reopen()
			f.compact(time.Minute, time.Hour)
			want(f, "edition", f.unpublished(f.pub), one)
			f.manifestsAre("unpublished fork", one)
			want(f, "number", f.publish(f.pub).Number, one.Number+1)
		}},
		{"a generation in use is not dropped", func(_ *testing.T, f *fixture) {
			f.puts("/a", "/private")
			f.publish(f.pub)
			one := f.pub
			f.configure(hide("/private"))
			two := f.pub
			f.publish(two)
			for _, path := range []string{"/b", "/c", "/d", "/e"} {
				f.pass(20 * time.Hour)
				f.puts(path)
				first, second := f.publish(one), f.publish(two)
				f.compact(time.Minute, time.Hour)
				f.manifestsAre(path, first, second)
				v, _ := f.published(one)
				f.agree(path, v, store.Config{Base: base})
				w, _ := f.published(two)
				f.agree(path, w, f.config)
			}
		}},
		{"a fork that was opened and not refreshed is opened again after compaction", func(_ *testing.T, f *fixture) {
			f.taggers(tagger("one"))
			f.puts("/a", "/private", "/gone")
			f.publish(f.pub)
			one := f.pub
			f.configure(hide("/private"))
			f.apply(put(article("/a", "edited")), gone("/gone"))
			f.publish(one)
			f.pass(2 * day)
			f.apply(put(article("/a", "edited again")))
			f.publish(one)
			f.pass(2 * day)
			f.compact(time.Minute, time.Hour)
			f.reopen()
			f.agree("the fork", f.head(), f.config)
		}},
		{"a publication that is not opened for 400 days is dropped", func(_ *testing.T, f *fixture) {
			f.puts("/a")
			f.publish(f.pub)
			c := store.Config{Base: localBase, Taggers: []millrace.Tagger{tagger("one")}}
			second := f.publication(c)
			two := f.publish(second)
			cursor := f.cursor(f.headOf(second))
			one := store.Edition{}
			for range 41 {
				f.manifestsAre("before", f.publish(f.pub), two)
				f.pass(day * 399 / 41)
				f.puts("/a" + f.clock().Format("0102"))
				f.reopen()
				one = f.publish(f.pub)
				f.compact(time.Minute, time.Hour)
			}
			f.manifestsAre("before 400 days", one, two)
			f.pass(2 * day)
			f.reopen()
			f.compact(time.Minute, time.Hour)
			f.manifestsAre("after 400 days", one)
			f.agree("the other", f.headOf(f.pub), f.config)
			second = f.publication(c)
			want(f, "begins again", f.unpublished(second), store.Edition{})
			v := f.refresh(second)
			f.agree("begins again", v, c)
			f.conflict("of the dropped one", v, cursor)
			want(f, "number", f.publish(second).Number, uint64(1))
		}},
	}
}
