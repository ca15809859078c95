package storetest

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// withHTMLSize returns a copy of a page with an HTML size.
func withHTMLSize(p *millrace.Page, bytes, received int64) *millrace.Page {
	p = p.Clone()
	p.HTMLSize = millrace.HTMLSize{Bytes: bytes, Received: received}
	return p
}

// htmlSizes returns the HTML sizes of pages, such as "/a 10 5".
func (f *fixture) htmlSizes(urls ...string) (list []string) {
	f.Helper()
	ws, err := f.site.HTMLSizes(f.Context(), urls)
	if err != nil || len(ws) != len(urls) {
		f.Fatalf("HTML sizes of %q: %v, %v", urls, ws, err)
	}
	for i, w := range ws {
		list = append(list, fmt.Sprint(urls[i], " ", w.Bytes, " ", w.Received))
	}
	return list
}

// meanHTMLSize returns the mean HTML size, such as "10 5 of 2".
func (f *fixture) meanHTMLSize(s store.Site) string {
	f.Helper()
	mean, n, err := s.MeanHTMLSize(f.Context())
	if err != nil {
		f.Fatalf("mean HTML size: %v", err)
	}
	return fmt.Sprint(mean.Bytes, " ", mean.Received, " of ", n)
}

func weightCases() []testCase {
	return []testCase{
		{"the HTML size is stored with the page", func(t *testing.T, f *fixture) {
			want(f, "of no page", f.meanHTMLSize(f.site), "0 0 of 0")
			f.apply(put(withHTMLSize(article("/a", "text"), 1000, 300)), put(withHTMLSize(article("/b", "text"), 1<<40, 0)))
			f.puts("/c")
			check := func() {
				t.Helper()
				want(f, "HTML sizes", f.htmlSizes("/b", base+"a", "/c", "/absent", "https://elsewhere.example/", "/b"), set(
					"/b 1099511627776 0", base+"a 1000 300", "/c 0 0", "/absent 0 0", "https://elsewhere.example/ 0 0", "/b 1099511627776 0"))
				want(f, "mean", f.meanHTMLSize(f.site), fmt.Sprint(int64(1<<40+1000)/2, " 300 of 2"))
			}
			check()
			f.reopen()
			check()
			if ws, err := f.site.HTMLSizes(t.Context(), nil); len(ws) != 0 || err != nil {
				t.Errorf("of nothing: %v, %v", ws, err)
			}
			if p := f.page(f.siteHead(), "/a"); p.HTMLSize != (millrace.HTMLSize{}) {
				t.Errorf("a view shows %v", p.HTMLSize)
			}
			want(f, "of another site", f.meanHTMLSize(f.openSite("second", base)), "0 0 of 0")
		}},
		{"the last known HTML size is stored, also for an unchanged page", func(t *testing.T, f *fixture) {
			p := article("/a", "text")
			f.apply(put(withHTMLSize(p, 1000, 300)))
			seq := f.siteHead().Site().Seq
			next := func(what string, in *millrace.Page, want string) {
				t.Helper()
				c := put(in)
				c.URL = p.URL
				if counts := f.from(other, c); counts != (millrace.Counts{Unchanged: 1}) {
					t.Errorf("%s: %+v", what, counts)
				}
				if got := f.htmlSizes("/a")[0]; got != "/a "+want {
					t.Errorf("%s: %s, want %s", what, got, want)
				}
			}
			next("unknown size", p, "1000 300")
			next("unknown size on the wire", withHTMLSize(p, 1000, 0), "1000 300")
			next("another size on the wire", withHTMLSize(p, 1000, 200), "1000 200")
			next("another size, unknown on the wire", withHTMLSize(p, 1001, 0), "1001 0")
			next("both", withHTMLSize(p, 2000, 500), "2000 500")
			next("known only on the wire", withHTMLSize(p, 0, 400), "2000 500")
			next("below nothing", withHTMLSize(p, -1, -1), "2000 500")
			next("negative size on the wire", withHTMLSize(p, 2001, -1), "2001 0")
			f.apply(alias(base+"dup", withHTMLSize(&millrace.Page{URL: p.URL}, 7, 7)))
			want(f, "of a duplicate", f.htmlSizes("/a"), set("/a 2001 0"))
			want(f, "sequence number", f.siteHead().Site().Seq, seq)
			f.apply(put(withHTMLSize(article("/a", "other text"), 3000, 0)))
			want(f, "of a changed page", f.htmlSizes("/a"), set("/a 3000 0"))
			f.apply(put(article("/a", "text")))
			want(f, "of a changed page without a known size", f.htmlSizes("/a"), set("/a 3000 0"))
		}},
		{"an unchanged HTML size is not written again", func(t *testing.T, f *fixture) {
			if f.engine.Writes == nil {
				t.Skip("the engine does not count its writes")
			}
			c := put(withHTMLSize(article("/a", "text"), 1000, 300))
			f.apply(c)
			before := f.engine.Writes(t, f.store)
			f.apply(c)
			want(f, "rows written", f.engine.Writes(t, f.store)-before, int64(0))
		}},
		{"the HTML size is deleted with the page", func(t *testing.T, f *fixture) {
			f.apply(put(withHTMLSize(article("/a", "text"), 1000, 300)), put(withHTMLSize(article("/b", "text"), 2000, 500)))
			f.apply(gone("/a"))
			want(f, "HTML sizes", f.htmlSizes("/a", "/b"), set("/a 0 0", "/b 2000 500"))
			want(f, "mean", f.meanHTMLSize(f.site), "2000 500 of 1")
			f.puts("/a")
			want(f, "of a page that returns", f.htmlSizes("/a"), set("/a 0 0"))
			_, err := f.site.Apply(t.Context(), origin, []millrace.Change{put(withHTMLSize(article("/b", "text"), 1, 1)), {Kind: millrace.Put}})
			if err == nil {
				t.Fatal("an invalid batch was accepted")
			}
			want(f, "after a failed batch", f.htmlSizes("/b"), set("/b 2000 500"))
		}},
	}
}
