package web

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/sitemap"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/protocoltest"
)

// large writes the sitemaps of a view.
func large(t *testing.T, v millrace.View, o *protocol.PublisherOptions) (map[string][]byte, []string) {
	t.Helper()
	bodies := map[string][]byte{}
	pub := NewPublisher(o)
	for d, err := range pub.All(t.Context(), v) {
		if err != nil {
			t.Fatal(err)
		}
		if !d.Large || d.Header.Get("Content-Type") != "application/xml; charset=utf-8" {
			continue
		}
		var b bytes.Buffer
		if err := d.Write(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		bodies[d.Path] = b.Bytes()
	}
	return bodies, pub.Advertise(v).Robots
}

// Every page with Markdown is in one sitemap, and the index names them all.
func TestSitemaps(t *testing.T) {
	var pages []*millrace.Page
	for i := range 40 {
		kind := millrace.Article
		if i == 7 {
			kind = millrace.Archive
		}
		pages = append(pages, &millrace.Page{
			URL: fmt.Sprintf("/p/%d?a&b", i), Title: "P", Kind: kind, Blocks: millrace.TextBlocks("text"), Known: millrace.AllFields, Detail: millrace.DetailBlocks,
		})
	}
	v := protocoltest.NewView(millrace.Site{Base: "https://x.test/"}, pages, Protocol().Tagger)
	bodies, robots := large(t, v, &protocol.PublisherOptions{ListItems: 10})
	if len(bodies) != 9 || !slices.Contains(robots, "Sitemap: https://x.test/sitemap.xml") || !slices.Contains(robots, "Sitemap: https://x.test/sitemap-index.xml") {
		t.Fatalf("%d sitemaps, %q", len(bodies), robots)
	}
	seen := map[string]int{}
	for e, err := range sitemap.Parse(bytes.NewReader(bodies[sitemap.IndexPath]), nil) {
		if err != nil {
			t.Fatal(err)
		}
		body := bodies[e.URL[len("https://x.test"):]]
		for e, err := range sitemap.Parse(bytes.NewReader(body), nil) {
			if err != nil {
				t.Fatalf("%v: %s", err, body)
			}
			seen[e.URL]++
		}
	}
	for i := range 40 {
		if n, want := seen[fmt.Sprintf("https://x.test/p/%d?a&b", i)], 1; i != 7 && n != want || i == 7 && n != 0 {
			t.Errorf("page %d is listed %d times", i, n)
		}
	}

	// No sitemaps are published if SCP publishes them, or if they could name no page of the
	// site.
	elsewhere := protocoltest.NewView(millrace.Site{Base: "https://x.test/", EndpointBase: "https://y.test/"}, nil, Protocol().Tagger)
	for name, c := range map[string]struct {
		v millrace.View
		o protocol.PublisherOptions
	}{"beside SCP": {v, protocol.PublisherOptions{Protocols: []string{"scp", "web"}}}, "elsewhere": {elsewhere, protocol.PublisherOptions{}}} {
		if bodies, robots := large(t, c.v, &c.o); len(bodies) > 0 || slices.ContainsFunc(robots, func(s string) bool { return s[:1] == "S" }) {
			t.Errorf("%s: %d sitemaps, %q", name, len(bodies), robots)
		}
	}
}
