package ingest

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/mirror"
)

// Pages with the same code form one group, even if their texts differ.
func TestGroupSkips(t *testing.T) {
	t.Parallel()
	skips := []mirror.Skip{{URL: "/x", Code: "http-404", Reason: "answered 404"}, {URL: "/y", Code: "http-500", Reason: "answered 500"}}
	for i := range 9 {
		skips = append(skips, mirror.Skip{URL: fmt.Sprint("/", i), Code: "host-paused", Reason: fmt.Sprintf("the host is paused after %d failures", i)},
			mirror.Skip{Code: "invalid", Reason: "the name has a query"})
	}
	skips = append(skips, mirror.Skip{URL: "/z", Code: "invalid", Reason: "the page of an HTTP error"})
	g := GroupSkips(skips)
	if len(g) != 5 || g[0].Pages != 9 || g[0].URL != "/0" || g[1].Pages != 9 || g[2].Pages != 1 || g[3].URL != "/y" {
		t.Errorf("%+v", g)
	}
	skips = nil
	for i := range 2 * maxReasons {
		skips = append(skips, mirror.Skip{Reason: fmt.Sprint("reason ", i)})
	}
	if g := GroupSkips(skips); len(g) != maxReasons+1 || g[0].Pages != maxReasons {
		t.Errorf("%d groups: %+v", len(g), g)
	}
}
