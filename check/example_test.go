package check_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/millrace/millrace/check"
)

var titled = check.Suite{Name: "title", Rules: []check.Rule{{
	ID: "title/1/typed", Level: check.Must, Section: "1", Sentence: "The home page is HTML.",
	Check: func(ctx context.Context, t *check.Target, fail check.Fail) error {
		r, err := t.Get(ctx, t.Root())
		if err == nil && r.Header.Get("Content-Type") != "text/html" {
			fail(r.URL, r.Header.Get("Content-Type"), "text/html")
		}
		return err
	},
}}}

func ExampleRun() {
	site := httptest.NewServer(http.NotFoundHandler())
	defer site.Close()
	t, _ := check.NewTarget("http://example.com/", site.Client(), nil) // the client connects to the test server
	report, _ := check.Run(context.Background(), t, []check.Suite{titled}, nil)
	_ = report.WriteText(os.Stdout)
	fmt.Println("failed:", report.Failed())
	// Output:
	// http://example.com/
	//   title  MUST 0 of 1 passed, SHOULD 0 of 0 passed, 0 not applicable, 0 not run
	//
	// MUST  title/1/typed
	//   rule  section 1: The home page is HTML.
	//   at    http://example.com/
	//   got   text/plain; charset=utf-8
	//   want  text/html
	// failed: true
}
