package web

import (
	"testing"

	"github.com/millrace/millrace"
)

// These benchmarks measure the cost of a 20 kB page: that of its tag when the page is written, and
// that of its Markdown at the first request.
func BenchmarkPage(b *testing.B) {
	p := benchPage()
	b.Run("tag", func(b *testing.B) {
		for b.Loop() {
			if _, err := tag(testSite, p); err != nil {
				b.Fatal(err)
			}
		}
	})
	value, err := tag(testSite, p)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("markdown", func(b *testing.B) {
		for b.Loop() {
			if _, err := markdownOf(testSite, p, value); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func benchPage() *millrace.Page {
	p := textPage("/docs/a", "")
	for range 40 {
		text := "The wheel turns as long as the water runs, and the *stones* grind what is between them; see the gate."
		p.Blocks = append(p.Blocks,
			millrace.Block{Type: millrace.HeadingBlock, Level: 2, Text: "How the mill race carries water"},
			millrace.Block{Type: millrace.TextBlock, Text: text + " " + text, Spans: []millrace.Span{{Type: millrace.LinkSpan, Start: 4, End: 9, URL: "https://example.com/wheel"}}},
			millrace.Block{Type: millrace.ListBlock, Items: []millrace.Item{{Text: text}, {Text: "a gate"}}},
			millrace.Block{Type: millrace.CodeBlock, Text: "open(gate)\nturn(wheel)\n", Language: "go"},
		)
	}
	return p
}
