package agent_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing/fstest"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/agent"
	"github.com/millrace/millrace/store"
	"github.com/millrace/millrace/store/memory"
)

// mill is a site that speaks no protocol.
var mill = fstest.MapFS{
	"index.html": {Data: []byte(`<title>Mill</title><p>The mill has <a href="wheel.html">a wheel</a>, which turns the stone day and night.</p>`)},
	"wheel.html": {Data: []byte(`<title>Wheel</title><p>The wheel has forty buckets, each of which holds eight litres of water.</p>`)},
}

// text returns the text of all pages of a site.
func text(ctx context.Context, st store.Store, name string) (text string, err error) {
	site, err := st.Site(ctx, name, "")
	if err != nil {
		return "", err
	}
	view, err := site.Head(ctx)
	if err != nil {
		return "", err
	}
	for page, err := range view.Scan(ctx, millrace.Scan{Bodies: true}) {
		if err != nil {
			return "", err
		}
		text += page.Title + ": " + page.Text() + "\n"
	}
	return text, nil
}

// Pull reads a site into a store, here one in memory.
func Example() {
	server, st := httptest.NewServer(http.FileServerFS(mill)), memory.New(nil)
	defer server.Close()
	a, _ := agent.New(st, &agent.Options{AllowPrivate: true}) // a server of this machine
	reports, _ := a.Pull(context.Background(), server.URL)    // each report has its error
	fmt.Println(reports[0].Via, reports[0].Added, reports[0].Err)
	fmt.Println(text(context.Background(), st, reports[0].Site))
	// Output:
	// crawl 2 <nil>
	// Mill: The mill has a wheel, which turns the stone day and night.
	// Wheel: The wheel has forty buckets, each of which holds eight litres of water.
	//  <nil>
}
