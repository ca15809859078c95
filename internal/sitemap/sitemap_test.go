package sitemap

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func parseAll(t *testing.T, doc string, o *Options) (entries []Entry, err error) {
	t.Helper()
	for e, got := range Parse(strings.NewReader(doc), o) {
		if err != nil {
			t.Fatalf("%v came after %v", e, err)
		}
		if err = got; err == nil {
			entries = append(entries, e)
		}
	}
	return entries, err
}

func TestURLSet(t *testing.T) {
	got, err := parseAll(t, `<?xml version="1.0" encoding="UTF-8"?>
<!-- made by hand -->
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1" xmlns:xhtml="http://www.w3.org/1999/xhtml">
 <url>
  <loc> https://example.com/a?b=1&amp;c=2
  </loc>
  <lastmod>2024-05-06T07:08:09+02:00</lastmod><changefreq>Daily</changefreq><priority>0.8</priority>
  <image:image><image:loc>https://example.com/a.jpg</image:loc></image:image>
  <xhtml:link rel="alternate" hreflang="de" href="https://example.com/de"/>
 </url>
 <url><loc><![CDATA[https://example.com/b?x=1&y=2]]></loc><priority>7</priority><changefreq>often</changefreq><lastmod>soon</lastmod></url>
 <url><lastmod>2999-01-01</lastmod><loc>/relative</loc><loc>https://example.com/second</loc></url>
</urlset> what follows is not read <`, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{
		{URL: "https://example.com/a?b=1&c=2", Modified: time.Date(2024, 5, 6, 5, 8, 9, 0, time.UTC), ChangeFreq: "daily", Priority: 0.8, Line: 4},
		{URL: "https://example.com/b?x=1&y=2", Priority: 0.5, Line: 11},
		{URL: "/relative", Modified: time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC), Priority: 0.5, Line: 12},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
