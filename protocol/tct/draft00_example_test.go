package tct_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/protocol/tct"
)

var hello00 = []*millrace.Page{{URL: "/hello-world/", Title: "Hello World", Blocks: millrace.TextBlocks("Water is patient.")}}

func ExampleDraft00_publish() {
	v := protocoltest.NewView(millrace.Site{Base: "https://example.com/"}, hello00, tct.Draft00().Tagger)
	r := httptest.NewRequest(http.MethodGet, "/hello-world/llm/", nil)
	doc, _ := tct.Draft00().NewPublisher(nil).Find(context.Background(), v, r)
	doc.Write(context.Background(), os.Stdout)
	// Output: {"profile":"tct-1","canonical_url":"https://example.com/hello-world/","title":"Hello World","content":"Hello World\n\nWater is patient.","hash":"3625828aab08d2b9d0a9cb6792ccc85058ec9e6dc988eb2ad882b5dfd9ad5911"}
}

func ExampleDraft00_read() {
	site := serve00(hello00, nil)
	defer site.Close()
	src := tct.Draft00().NewReader(site.Client(), site.URL, nil)
	page, _ := src.Page(context.Background(), millrace.Ref{URL: site.URL + "/hello-world/"})
	fmt.Println(page.Title, page.Text(), len(page.Version))
	// Output: Hello World Water is patient. 73
}

func ExampleDraft00_policy() {
	site := serve00(hello00, &millrace.Policy{Purposes: map[millrace.Purpose]bool{millrace.AITrain: false}})
	defer site.Close()
	src := tct.Draft00().NewReader(site.Client(), site.URL, nil).(protocol.PolicyReader)
	policy, _ := src.Policy(context.Background())
	allowed, stated := policy.Purposes[millrace.AITrain]
	fmt.Println(allowed, stated)
	// Output: false true
}

// serve00 serves a site of pages.
func serve00(pages []*millrace.Page, policy *millrace.Policy) *httptest.Server {
	p := tct.Draft00()
	s := protocoltest.Serve(p, &protocol.PublisherOptions{Policy: policy})
	srv := httptest.NewServer(s)
	v := protocoltest.NewView(millrace.Site{Base: srv.URL + "/"}, pages, p.Tagger)
	if err := s.Show(context.Background(), v); err != nil {
		panic(err)
	}
	return srv
}
