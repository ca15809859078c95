package main

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/mirror"
)

// Pages with one reason are one group, whatever its text says of each.
func TestGroupSkips(t *testing.T) {
	t.Parallel()
	skips := []mirror.Skip{{URL: "/x", Code: "http-404", Reason: "answered 404"}, {URL: "/y", Code: "http-500", Reason: "answered 500"}}
	for i := range 9 {
		skips = append(skips, mirror.Skip{URL: fmt.Sprint("/", i), Code: "host-resting", Reason: fmt.Sprintf("the host is resting after %d failures", i)},
			mirror.Skip{Reason: "the name has a query"})
	}
	g := groupSkips(skips)
	if len(g) != 4 || g[0].pages != 9 || g[0].URL != "/0" || g[1].pages != 9 || g[2].pages != 1 || g[3].URL != "/y" {
		t.Errorf("%+v", g)
	}
}
