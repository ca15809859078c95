package wordpress_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/origin/wordpress"
)

// mill starts a WordPress site with one post. The site contains only what the examples need.
func mill() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := "http://" + r.Host
		w.Header().Set("Link", `<`+at+`/wp-json/>; rel="https://api.w.org/", <`+at+`/wp-json/wp/v2/posts/7>; rel="alternate"; type="application/json"`)
		fmt.Fprint(w, strings.ReplaceAll(map[string]string{
			"/wp-json/":              `{"home":"AT","namespaces":["wp/v2"]}`,
			"/wp-json/wp/v2/types":   `{"post":{"slug":"post","name":"Posts","rest_base":"posts"}}`,
			"/wp-json/wp/v2/posts":   `[{"id":7,"link":"AT/2026/leats/","date_gmt":"2026-03-01T12:00:00","modified_gmt":"2026-03-01T12:00:00","title":{"rendered":"Leats &amp; sluices"},"content":{"rendered":"<p>Water."}}]`,
			"/wp-json/wp/v2/posts/7": `{"id":7,"link":"AT/2026/leats/","title":{"rendered":"Leats &amp; sluices"},"content":{"rendered":"<p>Water."}}`,
		}[r.URL.Path], "AT", at))
	}))
}

func ExampleFind() {
	site := mill()
	root, _ := wordpress.Find(context.Background(), site.Client(), site.URL+"/2026/leats/")
	s, _ := wordpress.New(site.Client(), root, nil)
	p, err := s.Page(context.Background(), millrace.Ref{URL: "/2026/leats/"})
	fmt.Println(p.Title, err)
	// Output: Leats & sluices <nil>
}

// ExampleNew_mirror reads a WordPress site into memory.
func ExampleNew_mirror() {
	site := mill()
	s, _ := wordpress.New(site.Client(), site.URL, nil)
	var pages mirror.Pages
	report, err := mirror.Sync(context.Background(), site.URL, s, &pages, nil)
	fmt.Println(report.Added, pages.Page(site.URL+"/2026/leats/").Title, err)
	// Output: 1 Leats & sluices <nil>
}
