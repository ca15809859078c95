package sitemap_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/sitemap"
)

// What is written is read again, odd URLs and foreign elements included.
func TestWriter(t *testing.T) {
	at := time.Date(2026, 11, 21, 8, 54, 18, 0, time.FixedZone("", 3600))
	var b strings.Builder
	w := sitemap.NewWriter(&b, "<x:note at=\""+sitemap.Escape(`"<&'`)+"\"/>\n", sitemap.Namespace{Prefix: "x", URI: "https://x.example/?a=1&b=2"})
	w.Page("https://example.com/?a=1&b=%22'", at)
	w.Page("https://example.com/plain", time.Time{})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range sitemap.Parse(strings.NewReader(b.String()), nil) {
		if err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
		got = append(got, e.URL+" "+e.Modified.Format(time.RFC3339))
	}
	want := []string{"https://example.com/?a=1&b=%22' 2026-11-21T07:54:18Z", "https://example.com/plain 0001-01-01T00:00:00Z"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	b.Reset()
	w = sitemap.NewIndexWriter(&b)
	w.Sitemap("https://example.com/sitemap-2-of-4.xml", at)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for e, err := range sitemap.Parse(strings.NewReader(b.String()), nil) {
		if err != nil || !e.Sitemap || e.URL != "https://example.com/sitemap-2-of-4.xml" {
			t.Errorf("%+v, %v", e, err)
		}
	}
}
