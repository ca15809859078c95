package openfeeder

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
)

// Every query returns a document whose path leads to the same document, or an error for the
// client.
func FuzzQuery(f *testing.F) {
	for _, q := range []string{
		"", "url=/gate/&limit=3&page=2", "q=water&min_score=0.25", "since=2026-01-06T00:00:00Z&until=2026-01-08T00:00:00Z",
		"until=2026-01-06T00:00:00Z&cursor=" + resumePoint{Epoch: "epoch", Edition: 5, Seq: 5, Scan: true, After: base + "gate/"}.String(),
		"since=" + tokenAt(millrace.Site{Epoch: "epoch"}, 5, "2026-01-06T00:00:00Z"), "url=%252e%252e&page=NaN&limit=[]", "a;b&=&&%zz",
		"url=https://mill.example//odd&q=%00", "since=2026-01-06T00:00:00+01:00",
	} {
		f.Add(q)
	}
	pub, v := NewPublisher(nil), view(mill())
	f.Fuzz(func(t *testing.T, text string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, endpoint, nil)
		r.URL.RawQuery = text
		d, err := pub.Find(t.Context(), v, r)
		if err != nil {
			if _, ok := errors.AsType[*millrace.RequestError](err); !ok {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		u, err := url.Parse(d.Path)
		if err != nil || !strings.HasPrefix(d.Path, endpoint) {
			t.Fatalf("%q: path %q, %v", text, d.Path, err)
		}
		r.URL = u
		again, err := pub.Find(t.Context(), v, r)
		if err != nil || again.Path != d.Path || again.ETag != d.ETag {
			t.Fatalf("%q results in %s, and this in %v, %v", text, d.Path, again, err)
		}
		if one, two := body(t, d), body(t, again); one != two || indent(t, one) == "" {
			t.Errorf("%q: %s, then %s", text, one, two)
		}
	})
}

// The name of a page's file identifies the page.
func FuzzStaticName(f *testing.F) {
	for _, s := range []string{"/", "/a", "/a/", "/a/~d", "/~q/x~~", "/a?x=1", "/?~d", "/a/?b", "/~dq?c", "//odd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := canon.URL("https://mill.example/" + strings.TrimPrefix(s, "/"))
		if err != nil {
			t.Skip()
		}
		name := staticName(targetOf(u))
		if back, ok := staticTarget(name); !ok || back != targetOf(u) {
			t.Errorf("%s has the file %s, which belongs to %q, %v", targetOf(u), name, back, ok)
		}
	})
}
