package tct

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/docname"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// For any set of pages, each page has a unique name, no name is the path of a page, and the
// store's view of conflicts is symmetric.
func FuzzNames(f *testing.F) {
	f.Add("/post\n/post/\n/post/llm.json\n/post/llm.json/llm.json")
	f.Add("/post\n/post/\n/post/llm/\n/post/llm//llm/")
	f.Add("/~2\n/~2/\n/\n/~~2/\nhttps://2/\nhttp://2/")
	f.Add("/a//\n/a/\n/a\n/a?b\n/a/?b\n/a/llm.json?b")
	canonical := func(url string) string { // of both drafts
		if d := draft01.Document(millrace.Site{}, &millrace.Page{URL: url}); d != nil {
			return d.CanonicalURL
		}
		return ""
	}
	f.Fuzz(func(t *testing.T, urls string) {
		checkNames(t, Draft00(), draft00.Names, canonical, urls)
		checkNames(t, Draft01(), draft01.Names, canonical, urls)
		checkNames(t, Draft03(), draft03.Names, canonical, urls)
	})
}

// checkNames reports an error unless each page of a site has a document with a unique name that is
// not the path of a page, and the conflicts of a name refer to each other. urls are URLs or
// paths, one a line. canonical returns the URL of a page in its document, or "".
func checkNames(t *testing.T, p protocol.Protocol, names docname.Names, canonical func(url string) string, urls string) {
	t.Helper()
	const base = "https://example.com/"
	var pages []*millrace.Page
	have := map[string]bool{}
	for u := range strings.SplitSeq(urls, "\n") {
		c := canonical(u)
		if c == "" && strings.HasPrefix(u, "/") {
			c = canonical(strings.TrimSuffix(base, "/") + u)
		}
		if c == "" || have[c] {
			continue
		}
		have[c] = true
		pages = append(pages, &millrace.Page{URL: c, Title: "T"})
	}
	v := protocoltest.NewView(millrace.Site{Base: base}, pages, p.Tagger)
	publisher := p.NewPublisher(nil)
	seen := map[string]string{}
	for tag, err := range v.Tags(t.Context(), p.Name, "") {
		if err != nil {
			t.Fatal(err)
		}
		name := names.Of(canon.Relative(v.Site().Base, tag.URL), tag.N)
		if other, twice := seen[name]; twice {
			t.Fatalf("%s and %s have the same name %s", other, tag.URL, name)
		}
		seen[name] = tag.URL
		if page := base + name[1:]; tag.N == 1 && have[page] {
			t.Fatalf("the document of %s has the name of the page %s", tag.URL, page)
		}
		d, err := publisher.Find(t.Context(), v, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://docs"+name, nil))
		if err != nil || d.ETag != tag.Value || d.Path != name {
			t.Fatalf("%s of %s: %v, %v", name, tag.URL, d, err)
		}
	}
	for _, page := range pages {
		id := strings.TrimPrefix(page.URL, strings.TrimSuffix(base, "/"))
		if strings.HasPrefix(id, "//") {
			id = page.URL
		}
		before, after := names.Conflicts(id)
		for _, b := range before {
			if _, a := names.Conflicts(b); !slices.Contains(a, id) && !strings.HasPrefix(b, "//") {
				t.Fatalf("conflicts of %s include %s, but not the reverse: %q", id, b, a)
			}
		}
		for _, a := range after {
			if b, _ := names.Conflicts(a); !slices.Contains(b, id) {
				t.Fatalf("conflicts after %s include %s, but not the reverse: %q", id, a, b)
			}
		}
	}
}
