package discover

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/canon"
)

func TestSpread(t *testing.T) {
	var list []string
	for i := range 90 {
		list = append(list, fmt.Sprint(i))
	}
	if d := cmp.Diff([]string{"15", "45", "75"}, spread(list)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"0", "1"}, spread(list[:2])); d != "" {
		t.Error(d)
	}
	k := &urlSample{}
	for i := range 10_000 {
		k.add(fmt.Sprint(i))
	}
	if n := len(k.urls); n < sampleSize/2 || n >= sampleSize || k.urls[0] != "0" || k.urls[1] != fmt.Sprint(k.stride) || k.urls[n-1] != fmt.Sprint((n-1)*k.stride) {
		t.Errorf("%d by %d: %v", n, k.stride, k.urls)
	}
	if k.stride*len(k.urls) < 10_000-k.stride {
		t.Errorf("no URL from the end of the list in %v", k.urls)
	}
}

// The links of any document are canonical, of the given origin, and distinct.
func FuzzPageLinks(f *testing.F) {
	for _, doc := range []string{
		`<a href="/a"><a href='b'><a href=//example.com/c#d><a href="http://example.com/"><a href="mailto:x">`,
		`<base href="https://elsewhere.example/"><a HREF="x"><a><a href><area href="/map"><A href="  /a  ">`,
		`<svg><a href="/svg"></a></svg><!-- <a href="/no"> --><script><a href="/no"></script><a title="x" href="/%zz?a=1&amp;b">`,
	} {
		f.Add(doc)
	}
	base := &url.URL{Scheme: "https", Host: "example.com", Path: "/docs/"}
	f.Fuzz(func(t *testing.T, doc string) {
		links := pageLinks([]byte(doc), base, "https://example.com")
		if len(links) > maxLinks {
			t.Errorf("%d links", len(links))
		}
		for i, u := range links {
			if c, err := canon.URL(u); err != nil || c != u || !strings.HasPrefix(u, "https://example.com/") || slices.Contains(links[:i], u) {
				t.Errorf("%q: %v", u, err)
			}
		}
	})
}
