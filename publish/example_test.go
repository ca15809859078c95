package publish_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/publish"
)

// stones yields the pages of a program, such as the rows of a query.
func stones(context.Context) iter.Seq2[*millrace.Page, error] {
	return func(yield func(*millrace.Page, error) bool) {
		yield(&millrace.Page{
			URL: "https://mill.example/stones", Title: "Stones", Language: "en",
			Blocks: []millrace.Block{{Type: millrace.TextBlock, Text: "French stones from a quarry in the Marne."}},
		}, nil)
	}
}

// markdown requests a page as Markdown, and removes the front matter.
func markdown(h http.Handler, url string) string {
	r := httptest.NewRequest(http.MethodGet, url, nil)
	r.Header.Set("Accept", "text/markdown")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	_, text, _ := strings.Cut(w.Body.String(), "\n---\n\n")
	return text
}

// A program publishes its own pages. Its mux gets all other requests.
func Example() {
	site, err := publish.New(context.Background(), publish.Pages(stones), &publish.Options{BaseURL: "https://mill.example/", Next: http.DefaultServeMux})
	if err == nil {
		err = site.Ready(context.Background())
	}
	fmt.Println(markdown(site, "https://mill.example/stones"), err)
	fmt.Println(site.Close()) // a real program calls http.ListenAndServe("localhost:8080", site) first
	// Output:
	// # Stones
	//
	// French stones from a quarry in the Marne.
	//  <nil>
	// <nil>
}
