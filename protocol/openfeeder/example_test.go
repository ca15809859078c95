package openfeeder_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/openfeeder"
	"github.com/millrace/millrace/protocol/protocoltest"
)

var gates = []*millrace.Page{{
	URL: "/gate/", Title: "The gate", Language: "en", Summary: "How to open it.",
	Blocks: millrace.TextBlocks("Lift the paddle.\n\nWait for the water."),
}}

func ExampleNewPublisher() {
	v := protocoltest.NewView(millrace.Site{Base: "https://example.com/"}, gates, openfeeder.Protocol().Tagger)
	r := httptest.NewRequest(http.MethodGet, "/openfeeder?url=/gate/", nil)
	doc, _ := openfeeder.NewPublisher(nil).Find(context.Background(), v, r)
	fmt.Println(doc.Path)
	doc.Write(context.Background(), os.Stdout)
	// Output:
	// /openfeeder?url=%2Fgate%2F
	// {"schema":"openfeeder/1.0","url":"https://example.com/gate/","title":"The gate","author":null,"published":null,"updated":null,"language":"en","summary":"How to open it.","revision":"868ed4d5b3488151c8d55189f38387cb76ed0007c0d37cd01a632ac6905e1c6c","chunks":[{"id":"e8khp3rbjuuhc","text":"Lift the paddle.\n\nWait for the water.","type":"paragraph","relevance":null}],"meta":{"total_chunks":1,"returned_chunks":1,"page":1,"total_pages":1,"cached":false,"cache_age_seconds":null}}
}

func ExampleNewPublisher_refuse() {
	v := protocoltest.NewView(millrace.Site{Base: "https://example.com/"}, gates, openfeeder.Protocol().Tagger)
	r := httptest.NewRequest(http.MethodGet, "/openfeeder?since=yesterday", nil)
	pub := openfeeder.NewPublisher(nil)
	_, err := pub.Find(context.Background(), v, r)
	_, body, _ := pub.(millrace.ErrorRenderer).RenderError(r, millrace.Status(err), err)
	fmt.Println(millrace.Status(err), millrace.ErrorCode(err), len(body) > 0)
	// Output: 400 invalid-param true
}
