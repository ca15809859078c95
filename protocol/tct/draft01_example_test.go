package tct_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/protocol/tct"
)

var hello01 = []*millrace.Page{{URL: "/hello-world/", Title: "Hello World", Blocks: millrace.TextBlocks("Hello World")}}

func ExampleDraft01_publish() {
	v := protocoltest.NewView(millrace.Site{Base: "https://example.com/"}, hello01, tct.Draft01().Tagger)
	r := httptest.NewRequest(http.MethodGet, "/hello-world/llm.json", nil)
	doc, _ := tct.Draft01().NewPublisher(nil).Find(context.Background(), v, r)
	doc.Write(context.Background(), os.Stdout)
	// Output: {"canonical_url":"https://example.com/hello-world/","content":"Hello World","hash":"sha256-af976cac6d5c89428a724e456311081ddbf3bab73cc4de7c85119b185ffbdab8","profile":"tct-1","title":"Hello World"}
}

func ExampleDraft01_read() {
	site := serve01(hello01)
	defer site.Close()
	src := tct.Draft01().NewReader(site.Client(), site.URL, nil)
	page, _ := src.Page(context.Background(), millrace.Ref{URL: site.URL + "/hello-world/"})
	fmt.Println(page.Title, page.Detail == millrace.DetailText, len(page.Version))
	// Output: Hello World true 73
}

// serve01 serves a site of pages.
func serve01(pages []*millrace.Page) *httptest.Server {
	p := tct.Draft01()
	s := protocoltest.Serve(p, nil)
	srv := httptest.NewServer(s)
	v := protocoltest.NewView(millrace.Site{Base: srv.URL + "/"}, pages, p.Tagger)
	if err := s.Show(context.Background(), v); err != nil {
		panic(err)
	}
	return srv
}
