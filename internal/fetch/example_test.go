package fetch_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/fetch"
)

// The server runs on this machine, so AllowPrivate must be set. One of the two requests is for
// robots.txt.
func Example() {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer site.Close()
	client := fetch.New(&fetch.Options{AllowPrivate: true})
	req, _ := http.NewRequest(http.MethodGet, site.URL, nil)
	resp, err := fetch.Do(context.Background(), client.HTTP(), req)
	if err == nil {
		body, err := fetch.ReadBody(resp, 1000)
		fmt.Println(string(body), err, client.Stats().Requests)
	}
	// Output: hello <nil> 2
}

// The same server without AllowPrivate.
func ExampleAddressError() {
	client := fetch.New(nil).HTTP()
	req, _ := http.NewRequest(http.MethodGet, "http://127.0.0.1:9", nil)
	_, err := fetch.Do(context.Background(), client, req)
	fmt.Println(millrace.ErrorCode(err))
	// Output: address-loopback
}
