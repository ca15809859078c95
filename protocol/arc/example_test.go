package arc_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/arc"
	"github.com/millrace/millrace/protocol/protocoltest"
)

var wheel = &millrace.Page{
	URL: "/wheel/", Title: "The wheel", Kind: millrace.Article, Modified: time.Date(2026, 3, 31, 8, 0, 0, 0, time.UTC),
	Blocks: []millrace.Block{
		{Type: millrace.TextBlock, Text: "The wheel turns."},
		{Type: millrace.HeadingBlock, Level: 2, Text: "Its paddles"},
		{Type: millrace.TextBlock, Text: "There are twelve of them."},
	},
}

func ExampleNewPublisher() {
	v := protocoltest.NewView(millrace.Site{Base: "https://example.com/"}, []*millrace.Page{wheel}, arc.Protocol().Tagger)
	for list := range arc.NewPublisher(nil).All(context.Background(), v) {
		list.Write(context.Background(), os.Stdout)
		break
	}
	// Output:
	// {"arc_sitemap_version":"2.1","site":"https://example.com","generated_at":"2026-03-31T08:00:00Z","pages":[
	// {"url":"https://example.com/wheel/","lastmod":"2026-03-31T08:00:00Z","ai_indexable":true,"ai_summary":"The wheel turns. There are twelve of them.","ai_checksum":"sha256:65d4009975545a58b1f7e9530fb839e5e8bfe284180131e38d26a90a86c069b9","ai_snapshot":{"page":"article","sections":[{"name":"its-paddles","summary":"There are twelve of them.","title":"Its paddles"}],"summary":"The wheel turns. There are twelve of them.","title":"The wheel"},"auth_required":false,"robots_directive":"index"}]}
}

func ExampleSnapshot() {
	fmt.Printf("%s\n", arc.Snapshot(wheel))
	// Output: {"page":"article","sections":[{"name":"its-paddles","summary":"There are twelve of them.","title":"Its paddles"}],"summary":"The wheel turns. There are twelve of them.","title":"The wheel"}
}
