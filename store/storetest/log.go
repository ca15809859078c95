package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

func logCases() []testCase {
	return []testCase{
		{"from the start a view lists every page and is complete", func(t *testing.T, f *fixture) {
			library(f)
			f.apply(gone("/a"))
			v := f.head()
			list, _ := f.changes(v, "")
			want(f, "changes", list, set("+/Z", "+/b", "+/c", "+/c/d", "+/none", "+/old"))
			last := ""
			for c, err := range v.Changes(t.Context(), "") {
				if err != nil {
					t.Fatal(err)
				}
				if c.Kind == millrace.Put {
					want(f, c.URL, c.Version, f.page(v, c.URL).Version)
					want(f, c.URL+" after "+last, c.URL > last, true)
					last = c.URL
				}
			}
		}},
		{"since a cursor each page appears once with its latest change", func(t *testing.T, f *fixture) {
			f.puts("/a", "/b", "/c")
			cursor := f.cursor(f.head())
			for _, batch := range [][]millrace.Change{
				{put(article("/b", "1"))}, {put(article("/a", "1")), put(article("/d", "1"))}, {put(article("/b", "2"))}, {gone("/c")},
			} {
				f.apply(batch...)
				f.head()
			}
			list, next := f.changes(f.head(), cursor)
			want(f, "changes", list, set("~/a", "+/d", "~/b", "-/c"))
			list, same := f.changes(f.head(), next)
			want(f, "nothing since", list, set())
			want(f, "cursor", same, next)
		}},
		{"a page created and deleted between two views is a new deletion", func(t *testing.T, f *fixture) {
			f.puts("/a")
			_, cursor := f.changes(f.head(), "")
			f.apply(put(article("/b", "b")))
			f.head()
			f.apply(gone("/b"))
			list, _ := f.changes(f.head(), cursor)
			want(f, "changes", list, set("±/b"))
		}},
		{"a page that is deleted and returns is not new", func(t *testing.T, f *fixture) {
			f.puts("/a")
			_, cursor := f.changes(f.head(), "")
			f.apply(gone("/a"))
			_, between := f.changes(f.head(), cursor)
			f.apply(put(article("/a", "again")))
			list, _ := f.changes(f.head(), cursor)
			want(f, "since a view with the page", list, set("~/a"))
			list, _ = f.changes(f.head(), between)
			want(f, "since a view without the page", list, set("+/a"))
		}},
		{"changes have a time", func(t *testing.T, f *fixture) {
			f.puts("/a")
			_, cursor := f.changes(f.head(), "")
			f.pass(time.Hour)
			f.apply(put(article("/b", "b")), gone("/a"))
			for c, err := range f.head().Changes(t.Context(), cursor) {
				want(f, "error", err, nil)
				if c.Time.Before(f.clock()) || c.Time.After(f.clock().Add(time.Second)) {
					t.Errorf("%+v at %v", c, c.Time)
				}
			}
		}},
		{"a long log is read in pieces", func(t *testing.T, f *fixture) {
			f.puts("/first")
			_, cursor := f.changes(f.head(), "")
			var exp []string
			for i := range 3 {
				var batch []millrace.Change
				for j := range 400 {
					p := article(fmt.Sprintf("/p%d-%03d", i, j), "text")
					batch = append(batch, put(p))
					exp = append(exp, "+"+relative(p.URL))
				}
				f.apply(batch...)
				f.head()
			}
			list, _ := f.changes(f.head(), cursor)
			want(f, "changes", list, exp)
		}},
		{"unknown cursors are a conflict", func(t *testing.T, f *fixture) {
			f.puts("/a")
			old := f.head()
			f.puts("/b")
			_, ahead := f.changes(f.head(), "")
			if err := f.refusal(old, ahead); !errors.Is(err, millrace.ErrConflict) {
				t.Errorf("a cursor ahead of the view: %v", err)
			}
			for _, c := range []millrace.Cursor{"x", "0", ":1", "deadbeef:1", ahead + "x", "-" + ahead} {
				if err := f.refusal(f.head(), c); !errors.Is(err, millrace.ErrConflict) {
					t.Errorf("%q: %v", c, err)
				}
			}
		}},
		{"each log has an epoch of its own and keeps it", func(t *testing.T, f *fixture) {
			f.puts("/a")
			cursor, epoch := f.cursor(f.head()), f.head().Site().Epoch
			f.reopen()
			want(f, "epoch after reopening", f.head().Site().Epoch, epoch)
			list, _ := f.changes(f.head(), cursor)
			want(f, "changes after reopening", list, set())
			g := newFixture(t, f.engine)
			g.ofSite = f.ofSite
			g.puts("/a")
			if g.head().Site().Epoch == epoch {
				t.Error("two stores with one epoch")
			}
			if err := g.refusal(g.head(), cursor); !errors.Is(err, millrace.ErrConflict) {
				t.Errorf("a cursor of another store: %v", err)
			}
		}},
		{"a cursor from before the horizon is a conflict", func(t *testing.T, f *fixture) {
			f.puts("/a", "/b", "/c")
			_, old := f.changes(f.head(), "")
			f.pass(time.Hour)
			f.apply(gone("/a"), put(article("/b", "edited")))
			_, later := f.changes(f.head(), old)
			f.pass(time.Hour)
			f.apply(put(article("/c", "edited")))
			f.head()
			f.pass(time.Minute)
			f.compact(time.Second, 2*time.Hour)
			list, _ := f.changes(f.head(), old)
			want(f, "inside the horizon", list, set("~/b", "-/a", "~/c"))
			f.compact(time.Second, 30*time.Minute)
			if err := f.refusal(f.head(), old); !errors.Is(err, millrace.ErrConflict) {
				t.Errorf("before the horizon: %v", err)
			}
			list, _ = f.changes(f.head(), later)
			want(f, "at the horizon", list, set("~/c"))
			list, _ = f.changes(f.head(), "")
			want(f, "from the start", list, set("+/b", "+/c"))
		}},
		{"SeqAt returns the sequence number of a time", func(t *testing.T, f *fixture) {
			start := f.clock()
			var seqs []uint64
			for i := range 20 {
				f.apply(put(article(fmt.Sprint("/p", i%7), fmt.Sprint(i))), put(article("/both", fmt.Sprint(i))))
				seqs = append(seqs, f.head().Site().Seq)
				f.pass(time.Minute)
			}
			check := func(what string, from int) {
				v := f.head()
				for i := from; i < 20; i++ {
					for _, d := range []time.Duration{0, 30 * time.Second, 59 * time.Second} {
						got, err := v.SeqAt(t.Context(), start.Add(time.Duration(i)*time.Minute+d))
						want(f, "error", err, nil)
						want(f, fmt.Sprint(what, " at ", i), got, seqs[i])
					}
				}
				got, err := v.SeqAt(t.Context(), start.Add(-time.Second))
				want(f, "error", err, nil)
				want(f, "before everything", got, uint64(0))
				got, _ = v.SeqAt(t.Context(), start.Add(24*time.Hour))
				want(f, "after everything", got, seqs[19])
			}
			check("full log", 0)
			f.compact(time.Minute, 10*time.Minute)
			check("compacted log", 11)
		}},
	}
}
