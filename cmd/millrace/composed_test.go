package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/fetch"
)

// The policy refuses a purpose in every document and every response, of serve and of
// build. The site's own files are kept, and cannot allow the purpose.
func TestPolicyEverywhere(t *testing.T) {
	t.Parallel()
	src, conf := copySite(t, "handbook"), filepath.Join(t.TempDir(), "millrace.yaml")
	write(t, conf, "policy:\n  purposes: {ai-train: false, ai-input: false, search: true}\n  consumers: [CCBot]\n")
	write(t, filepath.Join(src, "robots.txt"), "User-agent: GPTBot\nAllow: /\n\nUser-agent: *\nContent-Signal: ai-train=yes\nDisallow: /private/\n")
	write(t, filepath.Join(src, "sitemap.xml"), `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>https://example.com/login/x</loc></url>`+
		`<url><loc>https://example.com/about/</loc><changefreq>yearly</changefreq></url></urlset>`)
	for how, get := range map[string]func(*testing.T, string) (http.Header, string){
		"served": func() func(*testing.T, string) (http.Header, string) {
			s := serve(t, src, "--config", conf, "--store", filepath.Join(t.TempDir(), "s.db"))
			return func(t *testing.T, name string) (http.Header, string) {
				status, h, body := get(t, s.url+name)
				if status != http.StatusOK {
					t.Fatalf("%s: %d", name, status)
				}
				return h, body
			}
		}(),
		"built": func() func(*testing.T, string) (http.Header, string) {
			out := filepath.Join(t.TempDir(), "out")
			built(t, src, out, "https://example.com/", "--complete", "--config", conf, "--store", filepath.Join(t.TempDir(), "b.db"))
			return func(t *testing.T, name string) (http.Header, string) {
				b, err := os.ReadFile(filepath.Join(out, name))
				if err != nil {
					t.Fatal(err)
				}
				return nil, string(b)
			}
		}(),
	} {
		t.Run(how, func(t *testing.T) {
			h, robots := get(t, "robots.txt")
			for token, want := range map[string]bool{"GPTBot": false, "Google-Extended": false, "ChatGPT-User": false, "Googlebot": true, "CCBot": true, "OtherBot": true} {
				if fetch.ParseRobots([]byte(robots), token).Allowed("/about/") != want {
					t.Errorf("robots.txt allows %s: %t\n%s", token, !want, robots)
				}
			}
			const signal, usage = "search=yes, ai-input=no, ai-train=no", "search=y, ai-use=n, train-ai=n"
			for _, line := range []string{"Content-Signal: " + signal, "Disallow: /private/", "/sitemap.xml"} {
				if !strings.Contains(robots, line) {
					t.Errorf("%q is missing in robots.txt:\n%s", line, robots)
				}
			}
			if strings.Contains(robots, "Content-Usage:") || strings.Contains(robots, "License:") {
				t.Errorf("robots.txt has lines that validators do not know:\n%s", robots)
			}
			if strings.Contains(robots, "ai-train=yes") {
				t.Errorf("robots.txt allows training:\n%s", robots)
			}
			for name, says := range map[string][]string{
				"license.xml":                 {`<prohibits type="usage">ai-train ai-input ai-index</prohibits>`, `<permits type="usage">search</permits>`},
				"llm-policy.json":             {`"allow_ai_train":false`, `"allow_ai_input":false`, `"allow_search_indexing":true`},
				".well-known/arc-policy.json": {`"ai-train":false`, `"ai-input":false`, `"search":true`},
				".well-known/api-catalog":     {`/license.xml","type":"application/rsl+xml"`, "/sitemap.xml", "/llms.txt", "/llm-pages.json", "/.well-known/openfeeder.json", "arc-sitemap.json"},
				"sitemap.xml":                 {"<scp:collection ", "<changefreq>yearly</changefreq>"},
			} {
				fields, body := get(t, name)
				for _, want := range says {
					if !strings.Contains(body, want) {
						t.Errorf("%q is missing in %s:\n%.2000s", want, name, body)
					}
				}
				if strings.Contains(body, "/login/x") {
					t.Errorf("%s names a hidden page: %s", name, body)
				}
				if fields != nil && (fields.Get("Content-Signal") != signal || fields.Get("Content-Usage") != usage) {
					t.Errorf("%s: %v", name, fields)
				}
			}
			if h == nil {
				return
			}
			home, _ := get(t, "")
			if link := strings.Join(home["Link"], ", "); !strings.Contains(link, `rel="license"; type="application/rsl+xml"`) || !strings.Contains(link, `rel="api-catalog"`) {
				t.Errorf("the home page links to %s", link)
			}
		})
	}
}
