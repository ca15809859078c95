package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/protocol/web"
)

var hello = []*millrace.Page{{URL: "/hello-world/", Title: "Hello World", Blocks: millrace.TextBlocks("Hello.")}}

// Serve a page as Markdown to a request that prefers it to HTML.
func ExampleNewPublisher() {
	v := protocoltest.NewView(millrace.Site{Base: "https://example.com/"}, hello, web.Protocol().Tagger)
	r := httptest.NewRequest(http.MethodGet, "/hello-world/", nil)
	r.Header.Set("Accept", "text/markdown, text/html;q=0.9")
	doc, _ := web.NewPublisher(nil).Find(context.Background(), v, r)
	_ = doc.Write(context.Background(), os.Stdout)
	// Output:
	// ---
	// index: https://example.com/llms.txt
	// title: "Hello World"
	// url: "https://example.com/hello-world/"
	// ---
	//
	// # Hello World
	//
	// Hello.
}
