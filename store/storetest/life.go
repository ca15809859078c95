package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

func lifeCases() []testCase {
	return []testCase{
		{"all data survives a restart", func(_ *testing.T, f *fixture) {
			f.taggers(slashes())
			library(f)
			f.apply(gone("/a"))
			f.publish(f.pub)
			v := f.head()
			site, pages, tags, refs := v.Site(), f.paths(v, millrace.Scan{Order: millrace.ByPublished}), f.tags(v, "one", ""), f.storedRefs(origin)
			of := f.siteHead().Site()
			f.reopen()
			v = f.headOf(f.pub)
			want(f, "view", v.Site(), site)
			want(f, "pages", f.paths(v, millrace.Scan{Order: millrace.ByPublished}), pages)
			want(f, "tags", f.tags(v, "one", ""), tags)
			want(f, "site", f.siteHead().Site(), of)
			want(f, "held", f.storedRefs(origin), refs)
			v, _ = f.published(f.pub)
			want(f, "published", v.Site(), site)
		}},
		{"compaction keeps the views that may be in use", func(_ *testing.T, f *fixture) {
			f.taggers(tagger("one"))
			library(f)
			f.publish(f.pub)
			f.pass(time.Hour)
			f.apply(put(article("/a", "edited")), gone("/b"))
			f.head()
			f.pass(time.Hour)
			old, _ := f.published(f.pub) // opened just before the next publication
			before := f.everything(old, "/a")
			f.publish(f.pub)
			f.pass(time.Second)
			f.compact(time.Minute, time.Minute)
			check := func() {
				want(f, "text", f.page(old, "/a").Blocks[1].Text, "Text of /a")
				want(f, "pages", len(f.paths(old, millrace.Scan{WithBlocks: true})), 7)
				want(f, "tags", len(f.tags(old, "one", "")), 7)
				list, _ := f.changes(old, "")
				want(f, "changes", len(list), 7)
			}
			check()
			f.pass(30 * time.Second)
			f.compact(time.Minute, time.Minute)
			check()
			f.pass(time.Hour)
			f.compact(time.Minute, 240*time.Hour)
			for range 2 { // the first pass drops the content of entries, the second deletes them
				f.checkGone(old, "/a", before)
				f.compact(time.Minute, time.Minute)
			}
			v, _ := f.published(f.pub)
			want(f, "published", v.Site(), f.head().Site())
			f.agree("head", v, f.config)
			want(f, "tags", len(f.tags(v, "one", "")), 6)
			f.puts("/b")
			want(f, "again", f.head().Site().Pages, 7)
		}},
		{"compaction keeps the views of a site that may be in use", func(_ *testing.T, f *fixture) {
			library(f)
			old := f.siteHead()
			f.pass(time.Hour)
			f.apply(put(article("/a", "edited")), gone("/b"))
			f.pass(time.Second)
			f.compact(time.Minute, time.Minute)
			want(f, "text", f.page(old, "/a").Blocks[1].Text, "Text of /a")
			want(f, "pages", len(f.paths(old, millrace.Scan{WithBlocks: true})), 7)
			f.pass(time.Hour)
			f.compact(time.Minute, time.Minute)
			if p, err := old.Page(f.Context(), millrace.Ref{URL: "/a"}); !errors.Is(err, millrace.ErrConflict) && (err != nil || p.Blocks[1].Text != "Text of /a") {
				f.Errorf("page of an old view: %v, %v", p, err)
			}
			want(f, "pages of the head", len(f.paths(f.siteHead(), millrace.Scan{WithBlocks: true})), 6)
		}},
		{"a second compaction writes nothing", func(t *testing.T, f *fixture) {
			if f.engine.Writes == nil {
				t.Skip("the engine does not count its writes")
			}
			for i := range 20 {
				f.apply(put(article("/a", strings.Repeat(fmt.Sprint(i), 1000))), put(article("/b", fmt.Sprint(i))))
				f.head()
				f.apply(gone("/b"))
				f.publish(f.pub)
				f.pass(time.Minute)
			}
			f.compact(time.Second, time.Second)
			rows := f.engine.Writes(t, f.store)
			f.compact(time.Second, time.Second)
			want(f, "rows written by a second compaction", f.engine.Writes(t, f.store), rows)
			want(f, "text", len(f.page(f.head(), "/a").Blocks[1].Text), 2000)
			want(f, "unchanged", f.apply(put(article("/a", strings.Repeat("19", 1000)))), millrace.Counts{Unchanged: 1})
		}},
		{"readers see whole batches while writers write", concurrency},
		{"a canceled context stops every call", func(t *testing.T, f *fixture) {
			library(f)
			v := f.head()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			calls := map[string]func() error{
				"Apply":       func() error { _, err := f.site.Apply(ctx, origin, []millrace.Change{gone("/a")}); return err },
				"Site":        func() error { _, err := f.store.Site(ctx, "another", base); return err },
				"Site.Head":   func() error { _, err := f.site.Head(ctx); return err },
				"Publication": func() error { _, err := f.site.Publication(ctx, store.Config{Base: localBase}); return err },
				"Refresh":     func() error { _, err := f.pub.Refresh(ctx, store.Lease{}, 0, nil); return err },
				"Head":        func() error { _, err := f.pub.Head(ctx); return err },
				"Published":   func() error { _, _, err := f.pub.Published(ctx); return err },
				"Publish":     func() error { _, err := f.pub.Publish(ctx, store.Lease{}, 0, 1, nil); return err },
				"Acquire":     func() error { _, err := f.store.Leases().Acquire(ctx, "a", "b", time.Hour); return err },
				"Release":     func() error { return f.store.Leases().Release(ctx, store.Lease{Name: "a"}) },
				"Compact":     func() error { return f.site.Compact(ctx, 0, 0) },
				"Swap":        func() error { return f.store.State().Swap(ctx, "a", "key", nil, []byte("x")) },
				"Cursor":      func() error { _, err := f.site.Cursor(ctx, origin); return err },
				"Page":        func() error { _, err := v.Page(ctx, millrace.Ref{URL: "/a"}); return err },
				"SeqAt":       func() error { _, err := v.SeqAt(ctx, f.clock()); return err },
				"Held": func() (err error) {
					for _, err = range f.site.KnownRefs(ctx, origin) {
					}
					return err
				},
				"Changes": func() (err error) {
					for _, err = range v.Changes(ctx, "") {
					}
					return err
				},
			}
			for name, call := range calls {
				if err := call(); !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", name, err)
				}
			}
			want(f, "pages", f.head().Site().Pages, 7)
		}},
	}
}

// everything returns the result of each method of a view, or ErrConflict.
func (f *fixture) everything(v millrace.View, path string) map[string]any {
	f.Helper()
	all := make(map[string]any)
	add := func(what string, says any, err error) {
		f.Helper()
		if all[what] = says; errors.Is(err, millrace.ErrConflict) {
			all[what] = millrace.ErrConflict
		} else if err != nil {
			f.Errorf("%s: %v", what, err)
		}
	}
	p, err := v.Page(f.Context(), millrace.Ref{URL: path})
	add("page", p, err)
	tag, err := v.Tag(f.Context(), "one", path)
	add("tag", tag, err)
	var pages []*millrace.Page
	for p, err = range v.Scan(f.Context(), millrace.Scan{WithBlocks: true}) {
		pages = append(pages, p)
	}
	add("scan", pages, err)
	var tags []millrace.Tag
	for tag, err = range v.Tags(f.Context(), "one", "") {
		tags = append(tags, tag)
	}
	add("tags", tags, err)
	var changes []millrace.Change
	var c millrace.Change
	for c, err = range v.Changes(f.Context(), "") {
		changes = append(changes, c)
	}
	add("changes", changes, err)
	return all
}

// checkGone checks that each method of a compacted view returns ErrConflict or its result in before.
func (f *fixture) checkGone(v millrace.View, path string, before map[string]any) {
	f.Helper()
	for what, says := range f.everything(v, path) {
		if says != millrace.ErrConflict { //nolint:errorlint // everything returns the plain error
			want(f, what+" of an old view", says, before[what])
		}
	}
}

// concurrency runs writers, readers, publishers and a compaction concurrently. Each batch sets
// the same text in all pages of a group, so that an incomplete batch is visible.
func concurrency(t *testing.T, f *fixture) {
	f.taggers(tagger("one"))
	const groups, pages, rounds = 3, 5, 25
	batch := func(group, round int) (b []millrace.Change) {
		for i := range pages {
			b = append(b, put(article(fmt.Sprintf("/g%d/%d", group, i), fmt.Sprint("round ", round))))
		}
		return b
	}
	for g := range groups {
		f.apply(batch(g, 0)...)
	}
	f.publish(f.pub)
	var writing, reading sync.WaitGroup
	for g := range groups {
		writing.Go(func() {
			for r := 1; r <= rounds; r++ {
				if _, err := f.site.Apply(t.Context(), fmt.Sprint("source ", g), batch(g, r)); err != nil {
					t.Errorf("apply: %v", err)
				}
				f.pass(time.Second)
			}
		})
	}
	done := make(chan struct{})
	for reader := range 4 {
		rng := rand.New(rand.NewPCG(1, uint64(reader)))
		reading.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if reader == 0 {
					if _, err := f.pub.Refresh(t.Context(), store.Lease{}, 0, nil); err != nil {
						t.Errorf("refresh: %v", err)
						return
					}
				}
				head := f.pub.Head
				if reader == 3 {
					head = f.site.Head
				}
				v, err := head(t.Context())
				if err != nil {
					t.Errorf("head: %v", err)
					return
				}
				texts := make(map[string]string)
				n := 0
				for p, err := range v.Scan(t.Context(), millrace.Scan{WithBlocks: true, Order: millrace.Order(rng.IntN(3))}) {
					if err != nil {
						t.Errorf("scan: %v", err)
						return
					}
					n++
					group, text := p.URL[:len(base)+2], p.Blocks[1].Text
					if old := texts[group]; old != "" && old != text {
						t.Errorf("%s: %q and %q in one view", group, old, text)
					}
					texts[group] = text
					if reader == 3 {
						continue // a site has no tags
					}
					tag, err := v.Tag(t.Context(), "one", p.URL)
					if err != nil || !tag.Modified.Equal(p.Modified) {
						t.Errorf("tag of %s: %+v, %v", p.URL, tag, err)
					}
				}
				if n != groups*pages {
					t.Errorf("%d pages in a view", n)
				}
				if reader == 0 {
					_, old, err := f.pub.Published(t.Context())
					if err == nil {
						_, err = f.pub.Publish(t.Context(), store.Lease{}, old.Number, v.Site().Seq, manifest(f.pub, v))
					}
					if err != nil {
						t.Errorf("publish: %v", err)
					}
				}
				if reader == 1 {
					if err := f.site.Compact(t.Context(), time.Hour, time.Hour); err != nil {
						t.Errorf("compact: %v", err)
					}
				}
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
	v := f.head()
	f.agree("pages", v, f.config)
	want(f, "text", f.page(v, "/g0/0").Blocks[1].Text, fmt.Sprint("round ", rounds))
}
