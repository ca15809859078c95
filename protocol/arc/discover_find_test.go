package arc

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/weblink"
	"github.com/millrace/millrace/protocol/protocoltest"
)

func TestPointers(t *testing.T) {
	at, err := url.Parse("https://example.com/en/")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, head string
		want       []string
	}{
		{"as in the specification", `<script type="application/ld+json">{"@context":"https://schema.org","@type":"Dataset","name":"ARC Sitemap","url":"https://example.com/arc-sitemap.json","distribution":[{"@type":"DataDownload","encodingFormat":"application/json"}]}</script>`, []string{"/arc-sitemap.json"}},
		{"content URLs come first", `<script type="application/ld+json">{"@type":["Dataset"],"name":"arc sitemap","url":"/about","distribution":{"contentUrl":"/list.json"}}</script>`, []string{"/list.json", "/about"}},
		{"known by its address", `<script type="application/ld+json">[1,{"@type":"Dataset","distribution":[{"contentUrl":"ARC-Sitemap.json"},null,"x"]}]</script>`, []string{"/en/ARC-Sitemap.json"}},
		{"in a graph", `<script type="application/ld+json">{"@graph":[{"@type":"WebSite","url":"/arc-sitemap.json"},{"@type":"schema:Dataset","url":"/arc-sitemap.json"}]}</script>`, []string{"/arc-sitemap.json"}},
		{"another data set", `<script type="application/ld+json">{"@type":"Dataset","name":"Rain","url":"/rain.json"}</script>`, nil},
		{"no JSON", `<script type="application/ld+json">{"@type":"Dataset",</script>`, nil},
		{"link by name", `<link rel="alternate" href="../arc-sitemap.json?v=2"><link rel=alternate href="/feed.json">`, []string{"/arc-sitemap.json?v=2"}},
		{"link by relation", `<link rel="ARC-Sitemap" href="/list">`, []string{"/list"}},
		{"link to a page about it", `<link rel="help" href="/about-arc-sitemap/">`, nil},
	} {
		var want []string
		for _, w := range c.want {
			want = append(want, "https://example.com"+w)
		}
		if diff := cmp.Diff(want, pointers(weblink.HTML(strings.NewReader("<head>"+c.head), at), at)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestRestriction(t *testing.T) {
	for directive, want := range map[string]string{
		"": "", "index, follow": "", "nofollow": "", "NOINDEX": "noindex", "nofollow,noindex": "noindex", "none": "none", "all; noai": "noai", "noindexing": "",
	} {
		if got := restriction(directive); got != want {
			t.Errorf("%q: %q", directive, got)
		}
	}
}

func TestDeltaURL(t *testing.T) {
	for list, want := range map[string]string{
		"https://example.com/arc-sitemap.json":             "https://example.com/arc-sitemap-deltas/2026-01-02.json",
		"https://example.com/.well-known/arc-sitemap.json": "https://example.com/arc-sitemap-deltas/2026-01-02.json",
		"https://example.com/docs/arc-sitemap.json":        "https://example.com/docs/arc-sitemap-deltas/2026-01-02.json",
	} {
		if got := deltaURL(list, scriptStart); got != want {
			t.Errorf("%s: %s", list, got)
		}
	}
}

func FuzzPointers(f *testing.F) {
	f.Add(`{"@type":"Dataset","name":"ARC Sitemap","url":"/a","distribution":[{"contentUrl":"/b"}]}`)
	f.Add(`[{"@graph":[{"@graph":[]}]},{"@type":{}}]`)
	f.Fuzz(func(t *testing.T, data string) {
		at := &url.URL{Scheme: "https", Host: "example.com", Path: "/"}
		for _, u := range pointers(weblink.Head{Data: []string{data}}, at) {
			if p, err := url.Parse(u); err != nil || p.Host == "" {
				t.Errorf("%q leads to %q", data, u)
			}
		}
	})
}

// Any list is either refused without a page, or read to its checkpoint. Then its pages belong
// to the site, each is yielded once, and the cursor is accepted.
func FuzzChanges(f *testing.F) {
	f.Add([]byte(`{"arc_sitemap_version":"2.1","site":"https://example.com","generated_at":"2026-01-01T00:00:00Z","pages":[{"url":"https://example.com/a","ai_indexable":true,"ai_snapshot":{"page":"a"}},{"url":"https://example.com/b","ai_indexable":true},{"url":"https://example.com/b","ai_indexable":true}]}`), false)
	f.Add([]byte("arc_sitemap_version: 2.1\nsite: https://example.com\ngenerated_at: 2026-01-01T00:00:00Z\npages:\n- url: https://example.com/a\n  ai_indexable: true\n"), true)
	f.Fuzz(func(t *testing.T, list []byte, yaml bool) {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != pathList {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", map[bool]string{true: yamlType, false: contentType}[yaml])
			_, _ = w.Write(list)
		})
		src := NewReader(&http.Client{Transport: protocoltest.Answer(h)}, "https://example.com/", nil)
		seen, marks := map[string]bool{}, 0
		for c, err := range src.Changes(t.Context(), "") {
			skip := (*millrace.SkipError)(nil)
			switch {
			case err != nil && !asSkip(err, &skip):
				if len(seen) > 0 || marks > 0 {
					t.Fatalf("%d pages before %v", len(seen), err)
				}
			case err == nil && c.Kind == millrace.KindCheckpoint:
				marks++
				for _, err := range src.Changes(t.Context(), c.Checkpoint.Cursor) {
					if err != nil && !asSkip(err, &skip) {
						t.Fatal(err)
					}
				}
			case err == nil:
				if seen[c.URL] || !strings.HasPrefix(c.URL, "https://example.com/") {
					t.Fatalf("page %q", c.URL)
				}
				seen[c.URL] = true
			}
		}
	})
}

func asSkip(err error, skip **millrace.SkipError) bool {
	s, ok := err.(*millrace.SkipError) //nolint:errorlint // a stream gives them as they are
	*skip = s
	return ok
}
