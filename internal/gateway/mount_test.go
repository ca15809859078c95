package gateway

import (
	"net/http"
	"testing"

	"github.com/millrace/millrace"
)

// Hides reports the hidden pages for each kind of site.
func TestHides(t *testing.T) {
	t.Parallel()
	pages := func() (out []*millrace.Page) {
		for _, p := range []string{"/", "/a!", "/a-b", "/a.html", "/a/b/c", "/ab", "/d", "/d.html", "/e~/"} {
			out = append(out, page(p, "Page "+p))
		}
		return out
	}
	for base, want := range map[string]map[string]string{
		"https://x.test/": {
			"/a": "/a/b/c", "/a/b": "/a/b/c", "/a/b/c": "/a/b/c", "/d": "/d", "/d.html": "/d.html", "/e~": "/e~/", "/e": "", "/z": "", "/A": "",
			"/llm-pages.json": "/llm-pages.json", "/llm-pages": "",
		},
		"https://x.test/in/": {"/a": "", "/in/a": "/in/a/b/c", "/in/z": "", "/in/llm-pages.json": "/in/llm-pages.json"},
	} {
		for at, path := range want {
			g := setup{base: base, pages: pages(), o: Options{Dashboard: http.NotFoundHandler(), DashboardPath: at}}.gateway(t)
			if got, err := g.HiddenPath(t.Context()); err != nil || got != path {
				t.Errorf("%s of %s: %q %v, want %q", at, base, got, err, path)
			}
		}
	}
}
