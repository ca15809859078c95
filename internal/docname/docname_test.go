package docname_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/docname"
)

const base = "https://example.com/"

// drafts has the document names of draft-00 and draft-01.
var drafts = []docname.Names{"/llm/", "/llm.json"}

// named replaces DOC with the name of a draft's documents.
func named(doc docname.Names, s string) string { return strings.ReplaceAll(s, "DOC", string(doc)) }

func TestNames(t *testing.T) {
	for _, doc := range drafts {
		for _, c := range []struct {
			pagePath string
			n        int
			want     string
		}{
			{"/", 1, "DOC"},
			{"/", 2, "/~2DOC"},
			{"/post/", 1, "/postDOC"},
			{"/post", 1, "/postDOC"},
			{"/post/", 2, "/post/~2DOC"},
			{"/a.html", 1, "/a.htmlDOC"},
			{"/post/?x=1", 1, "/postDOC?x=1"},
			{"/post?x=1/2", 3, "/post/~3DOC?x=1/2"},
			{"/?x", 1, "DOC?x"},
			{"/postDOC", 1, "/post" + strings.TrimSuffix(string(doc), "/") + "DOC"},
			{"/post/~2/", 1, "/post/~~2DOC"},
			{"/post/~~2", 2, "/post/~~~2/~2DOC"},
			{"/~bob/", 1, "/~bobDOC"},
			{"/~/", 1, "/~DOC"},
			{"/~2x/", 1, "/~2xDOC"},
			{"https://other.example/p?q=1", 1, "/~other.example/pDOC?q=1"},
			{"https://other.example/", 1, "/~other.exampleDOC"},
			{"http://h:8080/", 2, "/~h:8080/~2DOC"},
			{"https://[::1]/a/", 1, "/~%5B::1%5D/aDOC"},
			{"https://7/", 1, "/~~7DOC"},
			{base + "/odd", 1, "/~example.com//oddDOC"},
		} {
			c.pagePath, c.want = named(doc, c.pagePath), named(doc, c.want)
			got := doc.Of(c.pagePath, c.n)
			if got != c.want {
				t.Errorf("name %d of %s is %s, want %s", c.n, c.pagePath, got, c.want)
			}
			back, n := doc.Wanting(base, got)
			if n != c.n || !slices.Contains(back, c.pagePath) {
				t.Errorf("%s is name %d of %q, want %d of %s", got, n, back, c.n, c.pagePath)
			}
		}
		for _, none := range []string{
			"/", "DOCx", "/post/", "/post/~1DOC", "/post/~0DOC", "/post/~02DOC", "/post/~2/~2DOC",
			"/post/~99999999999999999999DOC", "/" + strings.Repeat("x", 9000) + "DOC", "", strings.TrimPrefix(string(doc), "/"),
		} {
			if got, _ := doc.Wanting(base, named(doc, none)); len(got) != 0 {
				t.Errorf("%.40s is a name of %q", none, got)
			}
		}
		if got, _ := doc.Wanting(base, named(doc, "/~example.com/postDOC")); slices.Contains(got, base+"post") {
			t.Errorf("a page of the site has the name of another site's page: %q", got)
		}
	}
}

func TestRivals(t *testing.T) {
	for _, c := range []struct {
		doc           docname.Names
		pagePath      string
		before, after []string
	}{
		{drafts[0], "/post", []string{"/post/llm/"}, []string{"/post/"}},
		{drafts[0], "/post/", []string{"/post/llm/", "/post"}, nil},
		{drafts[0], "/post/?x", []string{"/post/llm/?x", "/post?x"}, nil},
		{drafts[0], "/", []string{"/llm/"}, nil},
		{drafts[0], "/post/llm/", []string{"/post/llm/llm/", "/post/llm"}, []string{"/post", "/post/"}},
		{drafts[0], "/post/llm", []string{"/post/llm/llm/"}, []string{"/post/llm/"}},
		{drafts[0], "/llm/", []string{"/llm/llm/", "/llm"}, []string{"/"}},
		{drafts[0], "https://o/p", []string{"/~o/p/llm/", "/~o/p", "/~o/p/"}, []string{"https://o/p/", "http://o/p", "http://o/p/"}},
		{drafts[1], "/post", []string{"/post/llm.json"}, []string{"/post/"}},
		{drafts[1], "/post/", []string{"/post/llm.json", "/post"}, nil},
		{drafts[1], "/post/?x", []string{"/post/llm.json?x", "/post?x"}, nil},
		{drafts[1], "/", []string{"/llm.json"}, nil},
		{drafts[1], "/post/llm.json", []string{"/post/llm.json/llm.json"}, []string{"/post/llm.json/", "/post", "/post/"}},
		{drafts[1], "/llm.json", []string{"/llm.json/llm.json"}, []string{"/llm.json/", "/"}},
		{drafts[1], "https://o/p", []string{"/~o/p/llm.json", "/~o/p", "/~o/p/"}, []string{"https://o/p/", "http://o/p", "http://o/p/"}},
	} {
		before, after := c.doc.Conflicts(c.pagePath)
		if !cmp.Equal(before, c.before) || len(after)+len(c.after) > 0 && !cmp.Equal(after, c.after) {
			t.Errorf("%s: after %q and before %q, want %q and %q", c.pagePath, before, after, c.before, c.after)
		}
	}
}

func ExampleNames() {
	fmt.Println(docname.Names("/llm.json").Of("/post/?page=2", 1))
	fmt.Println(docname.Names("/llm/").Of("/post", 2))
	// Output:
	// /post/llm.json?page=2
	// /post/~2/llm/
}
