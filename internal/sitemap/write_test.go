package sitemap

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace"
)

// Parse reads what this package writes, with unusual URLs and foreign elements.
func TestWrite(t *testing.T) {
	at := time.Date(2026, 11, 21, 8, 54, 18, 0, time.FixedZone("", 3600))
	b := begin("urlset", "<x:note at=\""+Escape(`"<&'`)+"\"/>\n", []Namespace{{Prefix: "x", URI: "https://x.example/?a=1&b=2"}})
	b = appendEntry(b, "url", "https://example.com/?a=1&b=%22'", at)
	b = appendEntry(b, "url", "https://example.com/plain", time.Time{})
	b = append(b, end("urlset")...)
	var got []string
	for e, err := range Parse(bytes.NewReader(b), nil) {
		if err != nil {
			t.Fatalf("%v in\n%s", err, b)
		}
		got = append(got, e.URL+" "+e.Modified.Format(time.RFC3339))
	}
	want := []string{"https://example.com/?a=1&b=%22' 2026-11-21T07:54:18Z", "https://example.com/plain 0001-01-01T00:00:00Z"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = nil
	var index bytes.Buffer
	if err := Index(millrace.Site{EndpointBase: "https://example.com/"}, 2).Write(t.Context(), &index); err != nil {
		t.Fatal(err)
	}
	for e, err := range Parse(&index, nil) {
		if err != nil || !e.Sitemap {
			t.Errorf("%+v, %v", e, err)
		}
		got = append(got, e.URL)
	}
	if diff := cmp.Diff([]string{"https://example.com/sitemap.xml", "https://example.com/sitemap-2-of-2.xml"}, got); diff != "" {
		t.Error(diff)
	}
}
