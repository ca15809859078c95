package crawl_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/origin/crawl"
)

// start starts a website on this machine, and returns a client that may connect to it. The
// default client may not.
func start() (*http.Client, string) {
	site := httptest.NewServer(http.FileServer(http.Dir("../../testdata/sites/handbook")))
	return site.Client(), site.URL + "/"
}

func ExampleNew() {
	client, site := start()
	c, err := crawl.New(client, site, &crawl.Options{MaxPages: 1000})
	fmt.Println(err)
	p, err := c.Page(context.Background(), millrace.Ref{URL: site + "about/"})
	fmt.Println(p.Title, err)
	// Output:
	// <nil>
	// About <nil>
}

// ExampleNew_mirror crawls a site into memory.
func ExampleNew_mirror() {
	client, site := start()
	c, _ := crawl.New(client, site, nil)
	var pages mirror.Pages
	report, err := mirror.Sync(context.Background(), site, c, &pages, nil)
	fmt.Println(report.Added == pages.Len(), pages.Page(site+"about/").Title, err)
	// Output: true About <nil>
}
