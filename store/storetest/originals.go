package storetest

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// made sets the original of a page.
func made(p *millrace.Page, original string) *millrace.Page {
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
		{"what a page was made of is kept as it was given", func(t *testing.T, f *fixture) {
			noise := make([]byte, 100_000)
			rng := rand.NewChaCha8([32]byte{1})
			_, _ = rng.Read(noise)
			all := map[string]string{
				"/byte": "\x00", "/html": "<p>Text of /html</p>", "/noise": string(noise),
				"/long": string(bytes.Repeat([]byte("<li>again</li>\n"), millrace.MaxOriginal/15)),
				"/most": string(make([]byte, millrace.MaxOriginal)),
			}
			for path, original := range all {
				f.apply(put(made(article(path, "text"), original)))
			}
			f.puts("/none")
			f.apply(put(made(article("/more", "text"), string(make([]byte, millrace.MaxOriginal+1)))))
			check := func() {
				t.Helper()
				for path, original := range all {
					if got := f.original(origin, base+path[1:]); got != original {
						t.Errorf("%s: %d bytes come back as %d", path, len(original), len(got))
					}
				}
				want(f, "of a page without", f.original(origin, base+"none"), "")
				want(f, "larger than the limit", f.original(origin, base+"more"), "")
				want(f, "of a name that is not held", f.original(origin, base+"absent"), "")
				want(f, "of an unknown source", f.original(other, base+"html"), "")
			}
			check()
			f.reopen()
			check()
			if p := f.page(f.siteHead(), "/html"); p.Original != nil {
				t.Errorf("a view shows %q", p.Original)
			}
		}},
		{"what a page was made of is the last one's, if that says nothing new, too", func(t *testing.T, f *fixture) {
			p := article("/a", "text")
			f.apply(put(made(p, "first")))
			seq := f.siteHead().Site().Seq
			want(f, "counts", f.apply(put(made(p, "second"))), millrace.Counts{Unchanged: 1})
			want(f, "the second", f.original(origin, p.URL), "second")
			f.apply(millrace.Change{Ref: millrace.Ref{URL: p.URL, Version: "304"}})
			want(f, "a Put without a page leaves it", f.original(origin, p.URL), "second")
			f.apply(put(p))
			want(f, "a page without it takes it away", f.original(origin, p.URL), "")
			f.apply(put(made(p, "third")), put(made(p, string(make([]byte, millrace.MaxOriginal+1)))))
			want(f, "as does one that is too large", f.original(origin, p.URL), "")
			f.apply(alias(base+"dup", made(&millrace.Page{URL: p.URL}, "fourth")))
			want(f, "one that speaks for nothing has one", f.original(origin, base+"dup"), "fourth")
			want(f, "sequence number", f.siteHead().Site().Seq, seq)
		}},
		{"what is kept already is not written again", func(t *testing.T, f *fixture) {
			if f.engine.Writes == nil {
				t.Skip("the engine does not count its writes")
			}
			c := put(made(article("/a", "text"), "original"))
			f.apply(c)
			before := f.engine.Writes(t, f.store)
			f.apply(c)
			want(f, "rows written", f.engine.Writes(t, f.store)-before, int64(0))
		}},
		{"each name of each source has an original of its own", func(t *testing.T, f *fixture) {
			p := article("/a", "text")
			f.apply(put(made(p, "a")), alias(base+"b", made(p, "b")))
			f.from(other, put(made(p, "other")))
			second := f.openSite("second", base)
			if _, err := second.Apply(t.Context(), origin, []millrace.Change{put(made(p, "second"))}); err != nil {
				t.Fatal(err)
			}
			want(f, "by its own name", f.original(origin, base+"a"), "a")
			want(f, "by another name", f.original(origin, base+"b"), "b")
			want(f, "of another source", f.original(other, base+"a"), "other")
			want(f, "at another site", f.originalOf(second, origin, base+"a"), "second")
			f.apply(gone("/a"))
			want(f, "the name has gone", f.original(origin, base+"a"), "")
			want(f, "of another source, of a page that stays", f.original(other, base+"a"), "other")
			want(f, "at another site", f.originalOf(second, origin, base+"a"), "second")
		}},
		{"an original goes with its name and its version", func(t *testing.T, f *fixture) {
			p := article("/a", "text")
			p.Version = "v"
			f.apply(put(made(p, "a")), alias(base+"dup", made(&millrace.Page{URL: p.URL}, "dup")))
			f.from(other, put(made(p, "other")), alias(base+"more", made(p, "more")))
			f.apply(gone("/a"))
			for _, name := range []string{"a", "dup"} {
				want(f, name, f.original(origin, base+name), "")
			}
			for _, name := range []string{"a", "more"} {
				want(f, "the page is gone: "+name+" of another source", f.original(other, base+name), "")
			}
			f.apply(put(p))
			want(f, "of a page that comes back without", f.original(origin, p.URL), "")
			f.apply(put(made(p, "again")), millrace.Change{Ref: millrace.Ref{URL: p.URL}})
			want(f, "held", f.held(origin), set("/a="))
			want(f, "its version is forgotten", f.original(origin, p.URL), "")

			f.apply(put(made(p, "a")), alias(base+"b", made(p, "b")))
			f.apply(gone("/b"))
			want(f, "held", f.held(origin), set("/a="))
			want(f, "because another name of the page went", f.original(origin, p.URL), "")
			f.apply(put(made(p, "a")))
			f.apply(alias(p.URL, made(article("/b", "text"), "moved")))
			want(f, "of a name that means another page now", f.original(origin, p.URL), "moved")
		}},
		{"a batch that fails leaves what pages were made of", func(t *testing.T, f *fixture) {
			p := article("/a", "text")
			f.apply(put(made(p, "first")), put(made(article("/b", "text"), "b")))
			_, err := f.site.Apply(t.Context(), origin, []millrace.Change{put(made(p, "second")), gone("/b"), {Kind: millrace.Put}})
			if err == nil {
				t.Fatal("a bad batch was taken")
			}
			want(f, "one that was to change", f.original(origin, p.URL), "first")
			want(f, "one that was to go", f.original(origin, base+"b"), "b")
		}},
	}
}
