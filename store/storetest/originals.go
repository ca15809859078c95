package storetest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// withOriginal returns a copy of a page with an original.
func withOriginal(p *millrace.Page, original string) *millrace.Page {
	p = p.Clone()
	p.Original = []byte(original)
	return p
}

// original returns the stored original of a name, or "" if it is absent.
func (f *fixture) original(from, ref string) string {
	f.Helper()
	return f.originalOf(f.site, from, ref)
}

func (f *fixture) originalOf(s store.Site, from, ref string) string {
	f.Helper()
	b, err := s.Original(f.Context(), from, ref)
	switch {
	case errors.Is(err, millrace.ErrNotFound) && b == nil:
		return ""
	case err != nil, len(b) == 0:
		f.Fatalf("original of %s at %s: %q, %v", ref, from, b, err)
	}
	return string(b)
}

func originalCases() []testCase {
	return []testCase{
		{"the original of a page is stored unchanged", func(t *testing.T, f *fixture) {
			noise := make([]byte, 100_000)
			rng := rand.NewChaCha8([32]byte{1})
			_, _ = rng.Read(noise)
			all := map[string]string{
				"/byte": "\x00", "/html": "<p>Text of /html</p>", "/noise": string(noise),
				"/long": string(bytes.Repeat([]byte("<li>again</li>\n"), millrace.MaxOriginal/15)),
				"/most": string(make([]byte, millrace.MaxOriginal)),
			}
			for path, original := range all {
				f.apply(put(withOriginal(article(path, "text"), original)))
			}
			f.puts("/none")
			f.apply(put(withOriginal(article("/more", "text"), string(make([]byte, millrace.MaxOriginal+1)))))
			check := func() {
				t.Helper()
				for path, original := range all {
					if got := f.original(origin, base+path[1:]); got != original {
						t.Errorf("%s: %d bytes come back as %d", path, len(original), len(got))
					}
				}
				want(f, "of a page without an original", f.original(origin, base+"none"), "")
				want(f, "larger than the limit", f.original(origin, base+"more"), "")
				want(f, "of an unknown name", f.original(origin, base+"absent"), "")
				want(f, "of an unknown source", f.original(other, base+"html"), "")
			}
			check()
			f.reopen()
			check()
			if p := f.page(f.siteHead(), "/html"); p.Original != nil {
				t.Errorf("a view shows %q", p.Original)
			}
		}},
		{"the last original is stored, also for an unchanged page", func(t *testing.T, f *fixture) {
			p := article("/a", "text")
			f.apply(put(withOriginal(p, "first")))
			seq := f.siteHead().Site().Seq
			want(f, "counts", f.apply(put(withOriginal(p, "second"))), millrace.Counts{Unchanged: 1})
			want(f, "the second", f.original(origin, p.URL), "second")
			f.apply(millrace.Change{Ref: millrace.Ref{URL: p.URL, Version: "304"}})
			want(f, "after a Put without a page", f.original(origin, p.URL), "second")
			f.apply(put(p))
			want(f, "after a page without an original", f.original(origin, p.URL), "")
			f.apply(put(withOriginal(p, "third")), put(withOriginal(p, string(make([]byte, millrace.MaxOriginal+1)))))
			want(f, "after an original beyond the limit", f.original(origin, p.URL), "")
			f.apply(alias(base+"dup", withOriginal(&millrace.Page{URL: p.URL}, "fourth")))
			want(f, "original of an alias", f.original(origin, base+"dup"), "fourth")
			want(f, "sequence number", f.siteHead().Site().Seq, seq)
		}},
		{"an unchanged original is not written again", func(t *testing.T, f *fixture) {
			if f.engine.Writes == nil {
				t.Skip("the engine does not count its writes")
			}
			c := put(withOriginal(article("/a", "text"), "original"))
			f.apply(c)
			before := f.engine.Writes(t, f.store)
			f.apply(c)
			want(f, "rows written", f.engine.Writes(t, f.store)-before, int64(0))
		}},
		{"each name of each source has an original of its own", func(t *testing.T, f *fixture) {
			p := article("/a", "text")
			f.apply(put(withOriginal(p, "a")), alias(base+"b", withOriginal(p, "b")))
			f.from(other, put(withOriginal(p, "other")))
			second := f.openSite("second", base)
			if _, err := second.Apply(t.Context(), origin, []millrace.Change{put(withOriginal(p, "second"))}); err != nil {
				t.Fatal(err)
			}
			want(f, "by its own name", f.original(origin, base+"a"), "a")
			want(f, "by another name", f.original(origin, base+"b"), "b")
			want(f, "of another source", f.original(other, base+"a"), "other")
			want(f, "at another site", f.originalOf(second, origin, base+"a"), "second")
			f.apply(gone("/a"))
			want(f, "of a deleted name", f.original(origin, base+"a"), "")
			want(f, "of another source that keeps the page", f.original(other, base+"a"), "other")
			want(f, "at another site", f.originalOf(second, origin, base+"a"), "second")
		}},
		{"an original is deleted with its name and its version", func(t *testing.T, f *fixture) {
			p := article("/a", "text")
			p.Version = "v"
			f.apply(put(withOriginal(p, "a")), alias(base+"dup", withOriginal(&millrace.Page{URL: p.URL}, "dup")))
			f.from(other, put(withOriginal(p, "other")), alias(base+"more", withOriginal(p, "more")))
			f.apply(gone("/a"))
			for _, name := range []string{"a", "dup"} {
				want(f, name, f.original(origin, base+name), "")
			}
			for _, name := range []string{"a", "more"} {
				want(f, "of a deleted page: "+name+" of another source", f.original(other, base+name), "")
			}
			f.apply(put(p))
			want(f, "of a page that returns without one", f.original(origin, p.URL), "")
			f.apply(put(withOriginal(p, "again")), millrace.Change{Ref: millrace.Ref{URL: p.URL}})
			want(f, "held", f.storedRefs(origin), set("/a="))
			want(f, "after its version was deleted", f.original(origin, p.URL), "")

			f.apply(put(withOriginal(p, "a")), alias(base+"b", withOriginal(p, "b")))
			f.apply(gone("/b"))
			want(f, "held", f.storedRefs(origin), set("/a="))
			want(f, "after another name of the page was deleted", f.original(origin, p.URL), "")
			f.apply(put(withOriginal(p, "a")))
			f.apply(alias(p.URL, withOriginal(article("/b", "text"), "moved")))
			want(f, "of a name that moved to another page", f.original(origin, p.URL), "moved")
		}},
		{"a failed batch does not change originals", func(t *testing.T, f *fixture) {
			p := article("/a", "text")
			f.apply(put(withOriginal(p, "first")), put(withOriginal(article("/b", "text"), "b")))
			_, err := f.site.Apply(t.Context(), origin, []millrace.Change{put(withOriginal(p, "second")), gone("/b"), {Kind: millrace.Put}})
			if err == nil {
				t.Fatal("an invalid batch was accepted")
			}
			want(f, "of a page changed by the batch", f.original(origin, p.URL), "first")
			want(f, "of a page deleted by the batch", f.original(origin, base+"b"), "b")
		}},
	}
}
