package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// publish publishes the head, with its number as the manifest.
func (f *fixture) publish(from uint64) uint64 {
	f.Helper()
	seq := f.head().Site().Seq
	if err := f.site.Publish(f.Context(), from, seq, fmt.Append(nil, seq)); err != nil {
		f.Fatalf("publish %d after %d: %v", seq, from, err)
	}
	return seq
}

func (f *fixture) published() millrace.View {
	f.Helper()
	v, manifest, err := f.site.Published(f.Context())
	if err != nil {
		f.Fatalf("published: %v", err)
	}
	want(f, "manifest", string(manifest), fmt.Sprint(v.Site().Seq))
	return v
}

func lifeCases() []testCase {
	return []testCase{
		{"everything is there after a restart", func(t *testing.T, f *fixture) {
			f.config.Taggers = []millrace.Tagger{slashes()}
			f.reopen(nil)
			f.derive()
			library(f)
			f.apply(gone("/a"))
			v := f.head()
			site, pages, tags, held := v.Site(), f.paths(v, millrace.Scan{Order: millrace.ByPublished}), f.tags(v, "one", ""), f.held(origin)
			f.reopen(nil)
			v = f.head()
			want(f, "site", v.Site(), site)
			want(f, "pages", f.paths(v, millrace.Scan{Order: millrace.ByPublished}), pages)
			want(f, "tags", f.tags(v, "one", ""), tags)
			want(f, "held", f.held(origin), held)
		}},
		{"nothing is published at first", func(t *testing.T, f *fixture) {
			f.puts("/a")
			if _, _, err := f.site.Published(t.Context()); !errors.Is(err, millrace.ErrNotFound) {
				t.Errorf("published: %v", err)
			}
		}},
		{"the published view stands until the next one", func(t *testing.T, f *fixture) {
			library(f)
			site := f.head().Site()
			first := f.publish(0)
			f.apply(gone("/a"), put(article("/new", "n")))
			v := f.published()
			want(f, "site", v.Site(), site)
			want(f, "pages", len(f.paths(v, millrace.Scan{})), 7)
			f.reopen(nil)
			want(f, "after a restart", f.published().Site(), site)
			second := f.publish(first)
			want(f, "the next one", f.published().Site(), f.head().Site())
			if err := f.site.Publish(t.Context(), second, second, []byte(fmt.Sprint(second))); err != nil {
				t.Errorf("the same view with another manifest: %v", err)
			}
		}},
		{"a view that is no longer the head can be published", func(t *testing.T, f *fixture) {
			library(f)
			home := article("/", "home")
			home.Title = "Old title"
			f.apply(put(home), put(article("/c", "edited, without a section")))
			v := f.head()
			moved := article("/b", "moved")
			moved.Section = "blog"
			moved.Known |= millrace.FieldSection
			f.apply(gone("/a"), put(article("/new", "n")), put(moved))
			f.apply(put(article("/", "home")), put(article("/new", "again")), gone("/Z"))
			f.puts("/Z")
			seq := v.Site().Seq
			if err := f.site.Publish(t.Context(), 0, seq, fmt.Append(nil, seq)); err != nil {
				t.Fatal(err)
			}
			want(f, "site", f.published().Site(), v.Site())
		}},
		{"publishing is a compare and swap", func(t *testing.T, f *fixture) {
			f.puts("/a")
			first := f.publish(0)
			f.puts("/b")
			for _, c := range []struct {
				from, to uint64
				want     error
			}{{0, first, millrace.ErrConflict}, {first + 1, first + 1, millrace.ErrConflict}, {first, first + 7, millrace.ErrInvalid}} {
				if err := f.site.Publish(t.Context(), c.from, c.to, nil); !errors.Is(err, c.want) {
					t.Errorf("from %d to %d: %v", c.from, c.to, err)
				}
			}
			want(f, "published", f.published().Site().Seq, first)
			var won atomic.Int32
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					switch err := f.site.Publish(t.Context(), first, first+1, []byte(fmt.Sprint(first+1))); {
					case err == nil:
						won.Add(1)
					case !errors.Is(err, millrace.ErrConflict):
						t.Errorf("a loser: %v", err)
					}
				})
			}
			wg.Wait()
			want(f, "winners", won.Load(), 1)
			want(f, "published", f.published().Site().Seq, first+1)
		}},
		{"what another configuration published counts as none", func(t *testing.T, f *fixture) {
			f.puts("/a")
			f.publish(0)
			f.reopen(func(c *store.Config) { c.Docs = "https://docs.example/" })
			if err := f.site.Publish(t.Context(), 0, 1, nil); !errors.Is(err, millrace.ErrConflict) {
				t.Errorf("before it is derived: %v", err)
			}
			f.derive()
			f.publish(0)
			want(f, "docs", f.published().Site().Docs, "https://docs.example/")
		}},
		{"compaction keeps the views that somebody may hold", func(t *testing.T, f *fixture) {
			f.config.Taggers = []millrace.Tagger{tagger("one")}
			f.reopen(nil)
			f.derive()
			library(f)
			first := f.publish(0)
			f.pass(time.Hour)
			f.apply(put(article("/a", "edited")), gone("/b"))
			f.pass(time.Hour)
			old := f.published() // given out just before the next one
			f.publish(first)
			f.pass(time.Second)
			f.compact(time.Minute, time.Minute)
			check := func() {
				want(f, "text", f.page(old, "/a").Blocks[1].Text, "Text of /a")
				want(f, "pages", len(f.paths(old, millrace.Scan{Bodies: true})), 7)
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
			for range 2 { // the entries first lose what they say, then go
				f.checkGone(old, "/a")
				f.compact(time.Minute, time.Minute)
			}
			v := f.head()
			want(f, "text of the head", f.page(v, "/a").Blocks[1].Text, "edited")
			want(f, "published", f.published().Site(), v.Site())
			want(f, "pages", len(f.paths(v, millrace.Scan{Bodies: true})), 6)
			want(f, "tags", len(f.tags(v, "one", "")), 6)
			f.puts("/b")
			want(f, "again", f.head().Site().Pages, 7)
		}},
		{"compaction frees what nobody needs", func(t *testing.T, f *fixture) {
			if f.engine.Writes == nil {
				t.Skip("the engine cannot tell its writes")
			}
			for i := range 20 {
				f.apply(put(article("/a", strings.Repeat(fmt.Sprint(i), 1000))), put(article("/b", fmt.Sprint(i))))
				f.apply(gone("/b"))
				f.pass(time.Minute)
			}
			f.compact(time.Second, time.Second)
			rows := f.engine.Writes(t, f.store)
			f.compact(time.Second, time.Second)
			want(f, "rows written by a second compaction", f.engine.Writes(t, f.store), rows)
			want(f, "text", len(f.page(f.head(), "/a").Blocks[1].Text), 2000)
			want(f, "unchanged", f.apply(put(article("/a", strings.Repeat("19", 1000)))), millrace.Tally{Unchanged: 1})
		}},
		{"readers see whole batches while writers write", concurrency},
		{"a canceled context stops every call", func(t *testing.T, f *fixture) {
			library(f)
			v := f.head()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			calls := map[string]func() error{
				"Apply":     func() error { _, err := f.site.Apply(ctx, origin, []millrace.Change{gone("/a")}); return err },
				"Derive":    func() error { return f.site.Derive(ctx, nil) },
				"Head":      func() error { _, err := f.site.Head(ctx); return err },
				"Published": func() error { _, _, err := f.site.Published(ctx); return err },
				"Publish":   func() error { return f.site.Publish(ctx, 0, 1, nil) },
				"Compact":   func() error { return f.site.Compact(ctx, 0, 0) },
				"Swap":      func() error { return f.store.State().Swap(ctx, "main", "key", nil, []byte("x")) },
				"Cursor":    func() error { _, err := f.site.Cursor(ctx, origin); return err },
				"Page":      func() error { _, err := v.Page(ctx, millrace.Ref{URL: "/a"}); return err },
				"SeqAt":     func() error { _, err := v.SeqAt(ctx, f.clock()); return err },
				"Held": func() (err error) {
					for _, err = range f.site.Held(ctx, origin) {
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
		{"a bad configuration is refused", func(t *testing.T, f *fixture) {
			for name, c := range map[string]store.Config{
				"no base":       {},
				"relative":      {Base: "/x/"},
				"no slash":      {Base: "https://example.com"},
				"bad docs":      {Base: base, Docs: "docs"},
				"two of a kind": {Base: base, Taggers: []millrace.Tagger{tagger("one"), tagger("one")}},
			} {
				if _, err := f.store.Site(t.Context(), "bad", c); !errors.Is(err, millrace.ErrInvalid) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if _, err := f.store.Site(t.Context(), "", f.config); !errors.Is(err, millrace.ErrInvalid) {
				t.Errorf("no name: %v", err)
			}
		}},
	}
}

// checkGone checks that a view that has been compacted away says so, rather
// than that there is less than there was.
func (f *fixture) checkGone(v millrace.View, path string) {
	f.Helper()
	check := func(what string, err error) {
		f.Helper()
		if !errors.Is(err, millrace.ErrConflict) {
			f.Errorf("%s of a view that is gone: %v", what, err)
		}
	}
	_, err := v.Page(f.Context(), millrace.Ref{URL: path})
	check("page", err)
	_, err = v.Tag(f.Context(), "one", path)
	check("tag", err)
	for _, err = range v.Scan(f.Context(), millrace.Scan{}) {
	}
	check("scan", err)
	for _, err = range v.Tags(f.Context(), "one", "") {
	}
	check("tags", err)
	for _, err = range v.Changes(f.Context(), "") {
	}
	check("changes", err)
}

// concurrency runs writers, readers, publishers and a compaction at once. Each
// batch gives all pages of one group one text, so that a torn batch shows.
func concurrency(t *testing.T, f *fixture) {
	f.config.Taggers = []millrace.Tagger{tagger("one")}
	f.reopen(nil)
	f.derive()
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
	f.publish(0)
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
				v, err := f.site.Head(t.Context())
				if err != nil {
					t.Errorf("head: %v", err)
					return
				}
				texts := make(map[string]string)
				n := 0
				for p, err := range v.Scan(t.Context(), millrace.Scan{Bodies: true, Order: millrace.Order(rng.IntN(3))}) {
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
					tag, err := v.Tag(t.Context(), "one", p.URL)
					if err != nil || !tag.Modified.Equal(p.Modified) {
						t.Errorf("tag of %s: %+v, %v", p.URL, tag, err)
					}
				}
				if n != groups*pages {
					t.Errorf("%d pages in a view", n)
				}
				if reader == 0 {
					switch old, _, err := f.site.Published(t.Context()); {
					case err != nil:
						t.Errorf("published: %v", err)
					default:
						err := f.site.Publish(t.Context(), old.Site().Seq, v.Site().Seq, []byte("m"))
						if err != nil && !errors.Is(err, millrace.ErrConflict) {
							t.Errorf("publish: %v", err)
						}
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
	want(f, "number", v.Site().Seq, uint64(groups*pages*(rounds+1)))
	want(f, "text", f.page(v, "/g0/0").Blocks[1].Text, fmt.Sprint("round ", rounds))
}
