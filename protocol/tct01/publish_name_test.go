package tct01

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// Whatever pages a site has, each has a name of its own, no name is that of a
// page, and the store's view of rivals is symmetric.
func FuzzNames(f *testing.F) {
	f.Add("/post\n/post/\n/post/llm.json\n/post/llm.json/llm.json")
	f.Add("/~2\n/~2/\n/\n/~~2/\nhttps://2/\nhttp://2/")
	f.Add("/a//\n/a/\n/a\n/a?b\n/a/?b\n/a/llm.json?b")
	f.Fuzz(func(t *testing.T, urls string) {
		var pages []*millrace.Page
		have := map[string]bool{}
		for u := range strings.SplitSeq(urls, "\n") {
			d := draft.Document(millrace.Site{}, &millrace.Page{URL: u})
			if d == nil && strings.HasPrefix(u, "/") {
				d = draft.Document(millrace.Site{}, &millrace.Page{URL: "https://example.com" + u})
			}
			if d == nil || have[d.CanonicalURL] {
				continue
			}
			have[d.CanonicalURL] = true
			pages = append(pages, &millrace.Page{URL: d.CanonicalURL, Title: "T"})
		}
		v := protocoltest.NewView(millrace.Site{Base: base}, pages, Protocol().Tagger)
		p := NewPublisher(nil)
		seen := map[string]string{}
		for tag, err := range v.Tags(t.Context(), Name, "") {
			if err != nil {
				t.Fatal(err)
			}
			name := draft.Names.Of(canon.Relative(v.Site().Base, tag.URL), tag.N)
			if other, twice := seen[name]; twice {
				t.Fatalf("%s and %s are both %s", other, tag.URL, name)
			}
			seen[name] = tag.URL
			if page := base + name[1:]; tag.N == 1 && have[page] {
				t.Fatalf("the document of %s has the name of the page %s", tag.URL, page)
			}
			d, err := p.Find(t.Context(), v, httptest.NewRequest(http.MethodGet, "http://docs"+name, nil))
			if err != nil || d.ETag != tag.Value || d.Path != name {
				t.Fatalf("%s of %s: %v, %v", name, tag.URL, d, err)
			}
		}
		for _, page := range pages {
			id := strings.TrimPrefix(page.URL, strings.TrimSuffix(base, "/"))
			if strings.HasPrefix(id, "//") {
				id = page.URL
			}
			before, after := draft.Names.Rivals(id)
			for _, b := range before {
				if _, a := draft.Names.Rivals(b); !slices.Contains(a, id) && !strings.HasPrefix(b, "//") {
					t.Fatalf("%s waits for %s, which does not know: %q", id, b, a)
				}
			}
			for _, a := range after {
				if b, _ := draft.Names.Rivals(a); !slices.Contains(b, id) {
					t.Fatalf("%s decides about %s, which does not know: %q", id, a, b)
				}
			}
		}
	})
}
