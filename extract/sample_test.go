package extract_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
)

func sampleOf(size int, urls ...string) []millrace.Ref {
	s := extract.Sample{Size: size}
	for _, u := range urls {
		s.Add(millrace.Ref{URL: u, Version: "of " + u})
	}
	return s.Refs()
}

func TestSample(t *testing.T) {
	var urls []string
	for i := range 1000 {
		urls = append(urls, fmt.Sprintf("/docs/page-%04d.html", i))
	}
	first := sampleOf(50, urls...)
	if len(first) != 50 || first[0].Version != "of "+first[0].URL {
		t.Fatalf("got %d pages, the first %+v", len(first), first[0])
	}
	slices.Reverse(urls)
	if !slices.Equal(sampleOf(50, urls...), first) {
		t.Error("another order gives another sample")
	}
	for i := range 100 {
		urls = append(urls, fmt.Sprintf("/news/%d/", i))
	}
	same := 0
	for _, r := range sampleOf(50, urls...) {
		if slices.Contains(first, r) {
			same++
		}
	}
	if same < 40 {
		t.Errorf("a site that has grown by a tenth keeps %d pages of the sample of 50", same)
	}
	// The sample is spread over the site, not taken from one end.
	low := 0
	for _, r := range first {
		if r.URL < "/docs/page-0500.html" {
			low++
		}
	}
	if low < 12 || low > 38 {
		t.Errorf("%d of 50 pages are in the first half", low)
	}
	if got := sampleOf(50, "/b", "/a"); len(got) != 2 || got[0].URL != "/a" {
		t.Errorf("a small site: %v", got)
	}
}
