package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace"
)

func applyCases() []testCase {
	return []testCase{
		{"a stored page is read back unchanged", func(t *testing.T, f *fixture) {
			in := article("/full", "Body <b> & \"quotes\" \u2028 ü 漢字")
			in.Description, in.Summary, in.Author, in.Language = "D", "S", "A. Author", "en-GB"
			in.Published = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
			in.Modified = time.Date(2021, 1, 2, 3, 4, 5, 0, time.UTC)
			in.Section, in.Tags, in.Kind = "docs", []string{"a", "b"}, millrace.Documentation
			in.Schema = append(in.Schema, []byte(`{"@type":"Article"}`))
			in.Extra = map[string]rawJSON{"arc": rawJSON(`{"x":1}`)}
			in.Known = millrace.AllFields
			want(f, "counts", f.apply(put(in)), millrace.Counts{Added: 1})
			head := f.siteHead()
			at, err := f.site.HeadCursor(f.Context())
			want(f, "error of HeadCursor", err, nil)
			want(f, "the cursor of the head", at, head.Site().At(head.Site().Seq))
			got := f.page(head, "/full")
			exp := in.Clone()
			exp.Version = got.Version
			want(f, "page", got, exp)
			if got.Version == "" {
				t.Error("a page of a view has no version")
			}
		}},
		{"an unconfirmed page is marked until it is confirmed", func(t *testing.T, f *fixture) {
			in := article("/a", "same")
			in.Unconfirmed = true
			f.apply(put(in))
			want(f, "the mark", f.page(f.siteHead(), "/a").Unconfirmed, true)
			title := article("/a", "")
			title.Title, title.Known = "Another", millrace.FieldTitle
			f.apply(put(title))
			want(f, "the mark after a page without content", f.page(f.siteHead(), "/a").Unconfirmed, true)
			want(f, "counts", f.apply(put(article("/a", "same"))), millrace.Counts{Updated: 1})
			want(f, "the mark of the confirmed page", f.page(f.siteHead(), "/a").Unconfirmed, false)
		}},
		{"a page without a date gets the time of its arrival", func(t *testing.T, f *fixture) {
			f.puts("/a")
			p := f.page(f.siteHead(), "/a")
			want(f, "modified", p.Modified, f.clock())
			if !p.Known.Has(millrace.FieldModified) {
				t.Error("the date of a page in a view is not known")
			}
		}},
		{"an unchanged page writes nothing", func(t *testing.T, f *fixture) {
			if f.engine.Writes == nil {
				t.Skip("the engine does not count its writes")
			}
			p := article("/a", "same")
			p.Version = "v1"
			f.apply(put(p), put(article("/b", "other")))
			seq, rows := f.siteHead().Site().Seq, f.engine.Writes(t, f.store)
			f.pass(time.Hour)
			want(f, "counts", f.apply(put(p.Clone()), put(article("/b", "other"))), millrace.Counts{Unchanged: 2})
			want(f, "sequence number", f.siteHead().Site().Seq, seq)
			want(f, "rows written", f.engine.Writes(t, f.store), rows)
		}},
		{"a new version of an unchanged page is stored and is no change", func(t *testing.T, f *fixture) {
			p := article("/a", "same")
			p.Version = "v1"
			f.apply(put(p))
			seq := f.siteHead().Site().Seq
			p = p.Clone()
			p.Version = "v2"
			want(f, "counts", f.apply(put(p)), millrace.Counts{Unchanged: 1})
			want(f, "sequence number", f.siteHead().Site().Seq, seq)
			want(f, "held", f.storedRefs(origin), set("/a=v2"))
		}},
		{"Counts counts visible changes", func(t *testing.T, f *fixture) {
			f.puts("/a", "/b", "/c")
			counts := f.apply(put(article("/a", "new")), put(article("/b", "Text of /b")), put(article("/d", "d")), gone("/c"), gone("/never"))
			want(f, "counts", counts, millrace.Counts{Added: 1, Updated: 1, Deleted: 1, Unchanged: 2})
		}},
		{"the last change of a URL in a batch wins", func(t *testing.T, f *fixture) {
			f.apply(put(article("/a", "one")), put(article("/a", "two")), gone("/b"), put(article("/b", "kept")), put(article("/c", "c")), gone("/c"))
			v := f.siteHead()
			want(f, "pages", f.paths(v, millrace.Scan{}), set("/a", "/b"))
			want(f, "text", f.page(v, "/a").Blocks[1].Text, "two")
		}},
		{"two edits in one second have rising dates", func(t *testing.T, f *fixture) {
			var last time.Time
			for i := range 5 {
				f.apply(put(article("/a", fmt.Sprint("edit ", i))))
				m := f.page(f.siteHead(), "/a").Modified
				if !m.After(last) || m.Nanosecond() != 0 {
					t.Errorf("edit %d: modified %v after %v", i, m, last)
				}
				last = m
			}
		}},
		{"an edit without a date gets the time of the edit", func(t *testing.T, f *fixture) {
			f.puts("/a")
			f.pass(time.Hour)
			f.apply(put(article("/a", "edited")))
			want(f, "modified", f.page(f.siteHead(), "/a").Modified, f.clock())
		}},
		{"the date of the source is used when it is later", func(t *testing.T, f *fixture) {
			d := time.Date(2020, 5, 5, 5, 5, 5, 0, time.UTC)
			f.apply(put(dated("/a", "one", d)))
			want(f, "first", f.page(f.siteHead(), "/a").Modified, d)
			f.apply(put(dated("/a", "two", d.Add(time.Hour))))
			want(f, "later", f.page(f.siteHead(), "/a").Modified, d.Add(time.Hour))
			f.apply(put(dated("/a", "three", d.Add(-time.Hour))))
			want(f, "earlier, other content", f.page(f.siteHead(), "/a").Modified, d.Add(time.Hour+time.Second))
			seq := f.siteHead().Site().Seq
			f.apply(put(dated("/a", "three", d)))
			want(f, "earlier, same content", f.siteHead().Site().Seq, seq)
			want(f, "counts", f.apply(put(dated("/a", "three", d.Add(2*time.Hour)))), millrace.Counts{Updated: 1})
			want(f, "later, same content", f.page(f.siteHead(), "/a").Modified, d.Add(2*time.Hour))
		}},
		{"a date that is not in Known is a hint", func(t *testing.T, f *fixture) {
			p := article("/a", "one")
			p.Modified = time.Date(2020, 5, 5, 5, 5, 5, 0, time.UTC)
			f.apply(put(p))
			want(f, "modified", f.page(f.siteHead(), "/a").Modified, p.Modified)
			p = p.Clone()
			p.Modified = p.Modified.Add(time.Hour)
			want(f, "counts", f.apply(put(p)), millrace.Counts{Unchanged: 1})
		}},
		{"a date in the future becomes the present", func(t *testing.T, f *fixture) {
			f.apply(put(dated("/a", "one", f.clock().Add(240*time.Hour))))
			want(f, "modified", f.page(f.siteHead(), "/a").Modified, f.clock())
			f.pass(time.Hour)
			want(f, "again", f.apply(put(dated("/a", "one", f.clock().Add(239*time.Hour)))), millrace.Counts{Unchanged: 1})
		}},
		{"a page that returns gets a date after its deletion", func(t *testing.T, f *fixture) {
			old := time.Date(2020, 5, 5, 5, 5, 5, 0, time.UTC)
			f.apply(put(dated("/a", "one", old)))
			f.pass(time.Minute)
			f.apply(gone("/a"))
			removed := f.clock()
			f.apply(put(dated("/a", "one", old)))
			if m := f.page(f.siteHead(), "/a").Modified; !m.After(removed) {
				t.Errorf("modified %v, deleted at %v", m, removed)
			}
		}},
		{"Newer applies only newer pages", func(t *testing.T, f *fixture) {
			d := time.Date(2020, 5, 5, 5, 5, 5, 0, time.UTC)
			f.apply(put(dated("/a", "held", d)))
			for _, c := range []struct {
				at   time.Time
				text string
			}{{d.Add(-time.Second), "held"}, {d, "held"}, {d.Add(time.Second), "delta"}} {
				change := put(dated("/a", "delta", c.at))
				change.Newer = true
				f.apply(change)
				want(f, c.at.String(), f.page(f.siteHead(), "/a").Blocks[1].Text, c.text)
			}
			hint := article("/hint", "held")
			hint.Modified = d
			older := put(dated("/hint", "delta", d))
			older.Newer = true
			f.apply(put(hint))
			want(f, "as old as a date that is not in Known", f.apply(older), millrace.Counts{Unchanged: 1})
			change := put(dated("/new", "n", d))
			change.Newer = true
			want(f, "a page that is not stored", f.apply(change), millrace.Counts{Added: 1})
		}},
		{"a deleted page is gone", func(t *testing.T, f *fixture) {
			f.puts("/a", "/b")
			f.apply(gone("/a"))
			v := f.siteHead()
			if _, err := v.Page(t.Context(), millrace.Ref{URL: "/a"}); !errors.Is(err, millrace.ErrNotFound) {
				t.Errorf("page: %v", err)
			}
			want(f, "pages", f.paths(v, millrace.Scan{}), set("/b"))
			want(f, "count", v.Site().Pages, 1)
			want(f, "held", f.storedRefs(origin), set("/b="))
			want(f, "again", f.apply(gone("/a")), millrace.Counts{Unchanged: 1})
		}},
		{"an invalid change rejects the whole batch", func(t *testing.T, f *fixture) {
			f.puts("/a")
			seq := f.siteHead().Site().Seq
			for _, bad := range []millrace.Change{{Kind: millrace.Put}, {Kind: millrace.KindCheckpoint}, {Kind: 9, Ref: millrace.Ref{URL: "/x"}}} {
				_, err := f.site.Apply(t.Context(), origin, []millrace.Change{put(article("/b", "b")), gone("/a"), bad})
				if !errors.Is(err, millrace.ErrInvalid) {
					t.Errorf("%+v: %v", bad, err)
				}
			}
			if _, err := f.site.Apply(t.Context(), "", []millrace.Change{gone("/a")}); !errors.Is(err, millrace.ErrInvalid) {
				t.Errorf("without a source: %v", err)
			}
			v := f.siteHead()
			want(f, "sequence number", v.Site().Seq, seq)
			want(f, "pages", f.paths(v, millrace.Scan{}), set("/a"))
		}},
		{"a canceled Apply applies nothing", func(t *testing.T, f *fixture) {
			f.puts("/a")
			var batch []millrace.Change
			for i := range 2000 {
				batch = append(batch, put(article(fmt.Sprintf("/p%04d", i), strings.Repeat("word ", 100))))
			}
			for _, calls := range []int64{0, 100, 1900} {
				ctx := newEnding(t.Context(), calls)
				_, err := f.site.Apply(ctx, origin, batch)
				if !errors.Is(err, context.Canceled) {
					t.Errorf("canceled after %d checks of its context: %v", calls, err)
				}
				want(f, "pages", f.paths(f.siteHead(), millrace.Scan{}), set("/a"))
				want(f, "held", f.storedRefs(origin), set("/a="))
			}
			want(f, "after it", f.apply(put(article("/b", "b"))), millrace.Counts{Added: 1})
		}},
		{"a large page is stored", func(t *testing.T, f *fixture) {
			text := strings.Repeat("0123456789abcdef ", 1<<19) // 8.5 MB
			f.apply(put(article("/large", text)))
			want(f, "length", len(f.page(f.siteHead(), "/large").Blocks[1].Text), len(text))
			f.apply(put(article("/large", text+"!")))
			want(f, "length", len(f.page(f.siteHead(), "/large").Blocks[1].Text), len(text)+1)
		}},
		{"unusual URLs are stored", func(t *testing.T, f *fixture) {
			unusual := []string{
				"/", "/?q=1&r=%20", "/%E2%82%AC/%F0%9F%98%80", "/a%00b", "/a'b\"c", "/a;b,c=d", "/A", "/a", "/a/", "/a/b?x=/y",
				"/%", "/_%_", "/" + strings.Repeat("x", 8000), "/漢字", "/a b",
			}
			var batch []millrace.Change
			for _, u := range unusual {
				batch = append(batch, put(article(u, "Text of "+u)))
			}
			want(f, "counts", f.apply(batch...), millrace.Counts{Added: len(unusual)})
			v := f.siteHead()
			for _, u := range unusual {
				want(f, u, f.page(v, base+u[1:]).Blocks[1].Text, "Text of "+u)
			}
			want(f, "how many", len(f.paths(v, millrace.Scan{})), len(unusual))
			want(f, "number of stored refs", len(f.storedRefs(origin)), len(unusual))
			want(f, "again", f.apply(batch...), millrace.Counts{Unchanged: len(unusual)})
		}},
	}
}

// dated returns an article with a date from its source.
func dated(path, text string, modified time.Time) *millrace.Page {
	p := article(path, text)
	p.Modified = modified
	p.Known |= millrace.FieldModified
	return p
}

// ending is a context that ends after its error was read a given number of times.
type ending struct {
	context.Context
	cancel context.CancelFunc
	left   atomic.Int64
}

func newEnding(ctx context.Context, calls int64) *ending {
	e := new(ending)
	e.Context, e.cancel = context.WithCancel(ctx)
	e.left.Store(calls)
	return e
}

func (e *ending) Err() error {
	if e.left.Add(-1) < 0 {
		e.cancel()
	}
	return e.Context.Err()
}
