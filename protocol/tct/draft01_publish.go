package tct

import (
	"cmp"
	"context"
	"iter"
	"net/http"

	"github.com/millrace/millrace"

	"github.com/millrace/millrace/protocol"
)

// docName01 is the name of M-URLs, each in the folder of its page.
const docName01 = "/llm.json"

// publisher01 serves, all under the documents' base:
//
//	/llm-pages.json            M-Sitemap (1.7); /llm-pages-1-of-4.json … when sharded
//	/llm.json                  the home page's M-URL, or the site overview
//	PATH/llm.json[?QUERY]      M-URL (1.5)
//	PATH/~N/llm.json[?QUERY]   M-URL of the Nth page that wants one name
//	/~HOST/PATH/llm.json       M-URL of a page whose C-URL is elsewhere
type publisher01 struct {
	listItems int
}

// newPublisher01 returns the publisher of the draft; nil options are the zero value.
func newPublisher01(o *protocol.PublisherOptions) millrace.Publisher {
	if o == nil {
		o = new(protocol.PublisherOptions)
	}
	return &publisher01{listItems: max(1, cmp.Or(o.ListItems, 50_000))}
}

// Find looks up the M-URL that a request names.
func (p *publisher01) Find(ctx context.Context, v millrace.View, r *http.Request) (*millrace.Document, error) {
	return draft01.Find(ctx, v, r)
}

// All yields the lists, the overview of a site without a home page, and every
// page's document.
func (p *publisher01) All(ctx context.Context, v millrace.View) iter.Seq2[*millrace.Document, error] {
	return draft01.All(ctx, v, func(over *overview) ([]*millrace.Document, error) { return p.lists(v, over), nil })
}
