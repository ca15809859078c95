package openfeeder

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/protocoltest"
	"github.com/millrace/millrace/store"
)

// BenchmarkFind measures the cost of a request to a publisher over a store of 5,000 pages:
// finding the document, as for a 304, and writing it.
func BenchmarkFind(b *testing.B) {
	site := protocoltest.Open(b, store.Config{Base: base, Taggers: []millrace.Tagger{Protocol().Tagger}}, nil)
	var before millrace.Site
	for i := range 50 {
		var batch []millrace.Change
		for n := range 100 {
			u := fmt.Sprintf("/%d/%d/", i, n)
			batch = append(batch, millrace.Change{Ref: millrace.Ref{URL: u}, Page: &millrace.Page{
				URL: u, Title: "Page " + u, Published: day(1).Add(time.Duration(i*n) * time.Minute),
				Blocks: millrace.TextBlocks(strings.Repeat("The water turns the wheel. ", 40) + "\n\n" + strings.Repeat("The wheel turns the stone. ", 40)),
				Known:  millrace.AllFields, Detail: millrace.DetailBlocks,
			}})
		}
		if i == 49 {
			v, err := protocoltest.Publish(b.Context(), site.Pub)
			if err != nil {
				b.Fatal(err)
			}
			before = v.Site()
		}
		if _, err := site.Apply(b.Context(), "bench", batch); err != nil {
			b.Fatal(err)
		}
	}
	v, err := site.Pub.Head(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	now := v.Site()
	for name, query := range map[string]string{
		"page":      "?url=/7/7/",
		"index":     "",
		"index-400": "?page=400",
		"new":       "?since=" + tokenAt(before, before.Seq, asOf(before)),
		"nothing":   "?since=" + tokenAt(now, now.Seq, asOf(now)),
		"until":     "?until=2026-01-01T20:00:00Z",
	} {
		pub := NewPublisher(nil)
		r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, endpoint+query, nil)
		b.Run(name+"/find", func(b *testing.B) {
			for b.Loop() {
				if _, err := pub.Find(b.Context(), v, r); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/write", func(b *testing.B) {
			for b.Loop() {
				d, err := pub.Find(b.Context(), v, r)
				if err != nil {
					b.Fatal(err)
				}
				if err := d.Write(b.Context(), io.Discard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
