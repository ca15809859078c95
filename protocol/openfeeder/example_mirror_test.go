package openfeeder_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/mirror"
	"github.com/millrace/millrace/protocol/openfeeder"
	"github.com/millrace/millrace/protocol/protocoltest"
)

var mills = []*millrace.Page{
	{URL: "/", Title: "The mill", Language: "en", Description: "What turns here.", Modified: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC), Known: millrace.AllFields, Blocks: millrace.TextBlocks("A wheel.")},
	{URL: "/gate/", Title: "The gate", Language: "en", Description: "How to open it.", Modified: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), Known: millrace.AllFields, Blocks: millrace.TextBlocks("Lift the paddle.")},
}

// published returns a server of a site with these pages.
func published(pages []*millrace.Page) *httptest.Server {
	p := openfeeder.Protocol()
	s := protocoltest.Serve(p, nil)
	srv := httptest.NewServer(s)
	v := protocoltest.NewView(millrace.Site{Base: srv.URL + "/"}, pages, p.Tagger)
	if err := s.Show(context.Background(), v); err != nil {
		panic(err)
	}
	return srv
}

// Reads the pages of a site with this protocol alone, and stores them in memory.
func ExampleNewReader() {
	site := published(mills)
	defer site.Close()
	var pages mirror.Pages
	report, err := mirror.Sync(context.Background(), site.URL, openfeeder.NewReader(site.Client(), site.URL, nil), &pages, nil)
	fmt.Println(report.Added, pages.Page(site.URL+"/gate/").Text(), err)
	// Output: 2 Lift the paddle. <nil>
}
