package tct01_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/protocol/tct01"
)

var hello = []*millrace.Page{{URL: "/hello-world/", Title: "Hello World", Blocks: millrace.TextBlocks("Hello World")}}

func ExampleNewPublisher() {
	v := protocoltest.NewView(millrace.Site{Base: "https://example.com/"}, hello, tct01.Protocol().Tagger)
	r := httptest.NewRequest(http.MethodGet, "/hello-world/llm.json", nil)
	doc, _ := tct01.NewPublisher(nil).Find(context.Background(), v, r)
	doc.Write(context.Background(), os.Stdout)
	// Output: {"canonical_url":"https://example.com/hello-world/","content":"Hello World","hash":"sha256-af976cac6d5c89428a724e456311081ddbf3bab73cc4de7c85119b185ffbdab8","profile":"tct-1","title":"Hello World"}
}

func ExampleNewReader() {
	site := serve(hello)
	defer site.Close()
	src := tct01.NewReader(site.Client(), site.URL, nil)
	page, _ := src.Page(context.Background(), millrace.Ref{URL: site.URL + "/hello-world/"})
	fmt.Println(page.Title, page.Detail == millrace.DetailText, len(page.Version))
	// Output: Hello World true 73
}

// serve serves a site of pages.
func serve(pages []*millrace.Page) *httptest.Server {
	p := tct01.Protocol()
	s := protocoltest.Serve(p, nil)
	srv := httptest.NewServer(s)
	v := protocoltest.NewView(millrace.Site{Base: srv.URL + "/"}, pages, p.Tagger)
	if err := s.Show(context.Background(), v); err != nil {
		panic(err)
	}
	return srv
}
