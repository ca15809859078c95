package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// publish refreshes a publication and publishes its head.
func (f *fixture) publish(p store.Publication) store.Edition {
	f.Helper()
	return f.publishView(p, f.refresh(p))
}

// publishView publishes a view of a publication after its newest edition, with
// the view's sequence number in the manifest.
func (f *fixture) publishView(p store.Publication, v millrace.View) store.Edition {
	f.Helper()
	_, last, err := p.Published(f.Context())
	if err != nil && !errors.Is(err, millrace.ErrNotFound) {
		f.Fatalf("published: %v", err)
	}
	e, err := p.Publish(f.Context(), store.Lease{}, last.Number, v.Site().Seq, manifest(p, v))
	if err != nil {
		f.Fatalf("publish %d after edition %d: %v", v.Site().Seq, last.Number, err)
	}
	if e.Number <= last.Number || string(e.Manifest) != string(manifest(p, v)) {
		f.Errorf("edition %d with manifest %q after edition %d", e.Number, e.Manifest, last.Number)
	}
	return e
}

// manifest returns the manifest of a view.
func manifest(p store.Publication, v millrace.View) []byte {
	return fmt.Appendf(nil, "%s: %d", p.Name(), v.Site().Seq)
}

// published returns the published view of a publication that has one.
func (f *fixture) published(p store.Publication) (millrace.View, store.Edition) {
	f.Helper()
	v, e, err := p.Published(f.Context())
	if err != nil {
		f.Fatalf("published: %v", err)
	}
	want(f, "manifest", string(e.Manifest), string(manifest(p, v)))
	return v, e
}

// unpublished checks that a publication has no edition of its own. It returns the edition from
// which the publication was forked.
func (f *fixture) unpublished(p store.Publication) store.Edition {
	f.Helper()
	v, e, err := p.Published(f.Context())
	if !errors.Is(err, millrace.ErrNotFound) {
		f.Errorf("published: %v, %v", v, err)
	}
	return e
}

// manifests returns the manifests in the store, each once.
func (f *fixture) manifests() []string {
	f.Helper()
	list := []string{}
	for m, err := range f.store.Manifests(f.Context()) {
		if err != nil {
			f.Fatalf("manifests: %v", err)
		}
		list = append(list, string(m))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func editionCases() []testCase {
	return []testCase{
		{"nothing is published at first", func(_ *testing.T, f *fixture) {
			f.puts("/a")
			want(f, "edition", f.unpublished(f.pub), store.Edition{})
			f.head()
			want(f, "edition", f.unpublished(f.pub), store.Edition{})
			want(f, "manifests", f.manifests(), set())
		}},
		{"the published view stays until the next edition", func(_ *testing.T, f *fixture) {
			library(f)
			site := f.head().Site()
			want(f, "first", f.publish(f.pub).Number, uint64(1))
			f.apply(gone("/a"), put(article("/new", "n")))
			f.head()
			v, e := f.published(f.pub)
			want(f, "edition", e.Number, uint64(1))
			want(f, "site", v.Site(), site)
			want(f, "pages", len(f.paths(v, millrace.Scan{})), 7)
			f.reopen()
			v, _ = f.published(f.pub)
			want(f, "after reopening", v.Site(), site)
			want(f, "second", f.publish(f.pub).Number, uint64(2))
			v, _ = f.published(f.pub)
			want(f, "the next one", v.Site(), f.head().Site())
			want(f, "the same view again", f.publish(f.pub).Number, uint64(3))
		}},
		{"a view that is no longer the head can be published", func(_ *testing.T, f *fixture) {
			library(f)
			home := article("/", "home")
			home.Title = "Old title"
			f.apply(put(home), put(article("/c", "edited, without a section")))
			v := f.head()
			moved := article("/b", "moved")
			moved.Section = "blog"
			moved.Known |= millrace.FieldSection
			f.apply(gone("/a"), put(article("/new", "n")), put(moved))
			f.head()
			f.apply(put(article("/", "home")), put(article("/new", "again")), gone("/Z"))
			f.puts("/Z")
			f.head()
			f.publishView(f.pub, v)
			p, _ := f.published(f.pub)
			want(f, "site", p.Site(), v.Site())
		}},
		{"publishing is a compare and swap", func(t *testing.T, f *fixture) {
			f.puts("/a")
			first := f.publish(f.pub)
			f.puts("/b")
			v := f.head()
			head := v.Site().Seq
			for _, c := range []struct {
				old, seq uint64
				want     error
			}{{0, head, millrace.ErrConflict}, {first.Number + 1, head, millrace.ErrConflict}, {first.Number, head + 7, millrace.ErrInvalid}} {
				if _, err := f.pub.Publish(t.Context(), store.Lease{}, c.old, c.seq, nil); !errors.Is(err, c.want) {
					t.Errorf("%d after %d: %v", c.seq, c.old, err)
				}
			}
			_, e := f.published(f.pub)
			want(f, "published", e, first)
			var won atomic.Int32
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					switch _, err := f.pub.Publish(t.Context(), store.Lease{}, first.Number, head, manifest(f.pub, v)); {
					case err == nil:
						won.Add(1)
					case !errors.Is(err, millrace.ErrConflict):
						t.Errorf("a concurrent publish: %v", err)
					}
				})
			}
			wg.Wait()
			want(f, "winners", won.Load(), 1)
			_, e = f.published(f.pub)
			want(f, "published", e.Number, first.Number+1)
		}},
		{"the cursor of the published view is valid at any age", func(_ *testing.T, f *fixture) {
			f.puts("/a", "/b")
			f.publish(f.pub)
			v, _ := f.published(f.pub)
			cursor := f.cursor(v)
			for i := range 3 {
				f.pass(24 * time.Hour)
				f.apply(put(article("/a", fmt.Sprint(i))), gone("/b"), put(article("/c", fmt.Sprint(i))))
				f.head()
			}
			f.pass(24 * time.Hour)
			f.compact(time.Hour, time.Hour)
			v, _ = f.published(f.pub)
			list, _ := f.changes(v, cursor)
			want(f, "changes of the published view", list, set())
			list, _ = f.changes(f.head(), cursor)
			slices.Sort(list)
			want(f, "changes of the head", list, set("+/c", "-/b", "~/a"))
		}},
		{"the store needs the newest manifest of each publication", func(_ *testing.T, f *fixture) {
			f.puts("/a")
			second := f.publication(store.Config{Base: localBase})
			f.publish(f.pub)
			f.publish(second)
			f.puts("/b")
			one := f.publish(f.pub)
			_, two := f.published(second)
			site := f.site
			f.site = f.openSite(folder, base)
			f.puts("/a")
			three := f.publish(f.publication(f.config))
			f.site = site
			exp := set(string(one.Manifest), string(two.Manifest), string(three.Manifest))
			slices.Sort(exp)
			want(f, "manifests", f.manifests(), exp)
			f.reopen()
			want(f, "manifests after reopening", f.manifests(), exp)
		}},
	}
}
