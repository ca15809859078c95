package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// acquire acquires a lease for a minute. The lease must be free or belong to the holder.
func (f *fixture) acquire(name, holder string) store.Lease {
	f.Helper()
	l, err := f.store.Leases().Acquire(f.Context(), name, holder, time.Minute)
	if err != nil {
		f.Fatalf("acquire %s for %s: %v", name, holder, err)
	}
	want(f, "lease", []string{l.Name, l.Holder}, []string{name, holder})
	if l.Fence == 0 || !l.Expires.Equal(f.clock().Add(time.Minute)) {
		f.Errorf("%+v at %v", l, f.clock())
	}
	return l
}

// taken checks that a lease has the given holder, and returns it.
func (f *fixture) taken(name, by string) store.Lease {
	f.Helper()
	l, err := f.store.Leases().Acquire(f.Context(), name, "a stranger", time.Minute)
	if !errors.Is(err, millrace.ErrConflict) || l.Name != name || l.Holder != by {
		f.Errorf("acquire %s, held by %s: %+v, %v", name, by, l, err)
	}
	return l
}

func (f *fixture) release(l store.Lease) {
	f.Helper()
	if err := f.store.Leases().Release(f.Context(), l); err != nil {
		f.Errorf("release: %v", err)
	}
}

func leaseCases() []testCase {
	return []testCase{
		{"a lease has one holder until it expires", func(_ *testing.T, f *fixture) {
			first := f.acquire("a", "one")
			want(f, "holder", f.taken("a", "one"), first)
			other := f.acquire("b", "two")
			f.pass(59 * time.Second)
			f.taken("a", "one")
			f.pass(time.Second)
			second := f.acquire("a", "two")
			want(f, "rises", second.Fence > first.Fence, true)
			f.reopen()
			want(f, "after reopening", f.taken("a", "two"), second)
			f.release(other)
			f.taken("a", "two")
		}},
		{"the time is that of the clock of the store", func(t *testing.T, f *fixture) {
			for range 2 {
				now, err := f.store.Now(t.Context())
				if err != nil || !now.Equal(f.clock()) {
					t.Errorf("it is %v, want %v (%v)", now, f.clock(), err)
				}
				f.pass(time.Hour)
			}
		}},
		{"renewal extends a lease and keeps its fence", func(_ *testing.T, f *fixture) {
			first := f.acquire("a", "one")
			for range 5 {
				f.pass(45 * time.Second)
				want(f, "fence", f.acquire("a", "one").Fence, first.Fence)
			}
			f.taken("a", "one")
		}},
		{"a released lease is free, and the next fence is higher", func(_ *testing.T, f *fixture) {
			first := f.acquire("a", "one")
			f.release(first)
			second := f.acquire("a", "two")
			want(f, "rises", second.Fence > first.Fence, true)
			f.release(first)
			f.taken("a", "two")
			f.release(second)
			f.release(second)
			f.release(store.Lease{Name: "absent", Holder: "one", Fence: 1})
			f.pass(1000 * time.Hour)
			f.compact(time.Minute, time.Minute)
			want(f, "rises", f.acquire("a", "one").Fence > second.Fence, true)
		}},
		{"an incomplete lease is refused", func(t *testing.T, f *fixture) {
			for _, c := range []struct {
				name, holder string
				d            time.Duration
			}{{"", "one", time.Minute}, {"a", "", time.Minute}, {"a", "one", 0}, {"a", "one", -time.Minute}} {
				if _, err := f.store.Leases().Acquire(t.Context(), c.name, c.holder, c.d); !errors.Is(err, millrace.ErrInvalid) {
					t.Errorf("%+v: %v", c, err)
				}
			}
		}},
		{"of several concurrent Acquires of one lease, one succeeds", func(t *testing.T, f *fixture) {
			var won atomic.Int32
			var wg sync.WaitGroup
			for _, holder := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
				wg.Go(func() {
					switch _, err := f.store.Leases().Acquire(t.Context(), "a", holder, time.Minute); {
					case err == nil:
						won.Add(1)
					case !errors.Is(err, millrace.ErrConflict):
						t.Errorf("acquire: %v", err)
					}
				})
			}
			wg.Wait()
			want(f, "holders", won.Load(), 1)
		}},
		{"a holder whose lease has expired writes nothing", func(t *testing.T, f *fixture) {
			f.taggers(tagger("one"))
			f.puts("/a")
			f.publish(f.pub)
			f.puts("/b")
			if f.usage != nil {
				f.record(siteName, fetched(f.clock(), "/a", 200))
			}
			stale := f.acquire("a", "one")
			sink := f.site.Fenced(stale)
			refused := func(what string, l store.Lease, sink store.Site) {
				t.Helper()
				pages, head := f.siteHead().Site(), f.headOf(f.pub).Site()
				_, e := f.published(f.pub)
				_, err := sink.Apply(t.Context(), origin, []millrace.Change{
					put(article("/x", "x")), gone("/a"), {Kind: millrace.KindCheckpoint, Checkpoint: &millrace.Checkpoint{Cursor: "x"}},
				})
				_, errPublish := f.pub.Publish(t.Context(), l, e.Number, head.Seq, []byte("stale"))
				_, errRefresh := f.pub.Refresh(t.Context(), l, 0, nil)
				errs := map[string]error{
					"apply": err, "refresh": errRefresh, "publish": errPublish, "compact": sink.Compact(t.Context(), 0, 0),
				}
				if f.usage != nil {
					errs["tidy"] = f.usage.Tidy(t.Context(), l, siteName, f.clock().Add(time.Hour), f.clock())
					want(f, what+": events", len(f.events(siteName, store.EventQuery{})), 1)
				}
				for method, err := range errs {
					if !errors.Is(err, millrace.ErrConflict) {
						t.Errorf("%s: %s: %v", what, method, err)
					}
				}
				want(f, what+": site", f.siteHead().Site(), pages)
				want(f, what+": head", f.headOf(f.pub).Site(), head)
				_, now := f.published(f.pub)
				want(f, what+": edition", now, e)
				c, err := f.site.Cursor(t.Context(), origin)
				want(f, what+": cursor", []any{c, err}, []any{millrace.Cursor(""), nil})
			}
			accepted := func(what string, l store.Lease) {
				t.Helper()
				if _, err := f.site.Fenced(l).Apply(t.Context(), origin, []millrace.Change{put(article("/"+what, "text"))}); err != nil {
					t.Errorf("%s: apply: %v", what, err)
				}
				if _, err := f.pub.Refresh(t.Context(), l, 0, nil); err != nil {
					t.Errorf("%s: refresh: %v", what, err)
				}
				_, e := f.published(f.pub)
				v := f.headOf(f.pub)
				if _, err := f.pub.Publish(t.Context(), l, e.Number, v.Site().Seq, manifest(f.pub, v)); err != nil {
					t.Errorf("%s: publish: %v", what, err)
				}
				f.page(v, "/"+what)
				f.puts("/more-" + what) // changes for the next Refresh
			}
			accepted("unchecked", store.Lease{})
			accepted("first", stale)
			f.pass(time.Minute)
			refused("expired", stale, sink)
			second := f.acquire("a", "two")
			refused("of another holder", stale, sink)
			accepted("second", second)
			other := second
			other.Name = "b"
			refused("of another name", other, f.site.Fenced(other))
			f.pass(time.Minute)
			third := f.acquire("a", "one")
			refused("of an earlier fence", stale, sink)
			accepted("third", third)
			f.release(third)
			refused("released", third, f.site.Fenced(third))
		}},
		{"a lease that expires in the middle of a refresh leaves the head", func(t *testing.T, f *fixture) {
			f.puts("/a", "/b")
			lease := f.acquire("a", "one")
			c := f.config
			c.Taggers = []millrace.Tagger{tagger("one")}
			tag := c.Taggers[0].Tag
			c.Taggers[0].Tag = func(s millrace.Site, p *millrace.Page) (string, error) {
				f.pass(2 * time.Minute)
				return tag(s, p)
			}
			p := f.publication(c)
			if _, err := p.Refresh(t.Context(), lease, 0, nil); !errors.Is(err, millrace.ErrConflict) {
				t.Errorf("refresh: %v", err)
			}
			if _, err := p.Head(t.Context()); !errors.Is(err, millrace.ErrNotFound) {
				t.Errorf("head: %v", err)
			}
		}},
		{"a clock that steps back does not keep a lease for its holder", func(t *testing.T, f *fixture) {
			first := f.acquire("a", "one")
			f.pass(10*time.Second - time.Hour)
			_, err := f.store.Leases().Acquire(t.Context(), "a", "two", time.Minute)
			if err != nil && !errors.Is(err, millrace.ErrConflict) {
				t.Fatal(err)
			}
			f.pass(time.Minute)
			want(f, "rises", f.acquire("a", "three").Fence > first.Fence, true)
		}},
	}
}
