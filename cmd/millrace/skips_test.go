package main

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/mirror"
)

// Pages with one reason are one group, whatever places the reasons name.
func TestGroupSkips(t *testing.T) {
	t.Parallel()
	skips := []mirror.Skip{{URL: "/x", Reason: "answered 404"}, {URL: "/y", Reason: "answered 500"}}
	for i := range 9 {
		skips = append(skips, mirror.Skip{URL: fmt.Sprint("/", i), Reason: fmt.Sprintf("open dir/%d.html: permission denied", i)},
			mirror.Skip{Reason: fmt.Sprintf("scp at line %d, column 3: no title", i)})
	}
	g := groupSkips(skips)
	if len(g) != 4 || g[0].pages != 9 || g[0].URL != "/0" || g[1].pages != 9 || g[2].pages != 1 || g[3].URL != "/y" {
		t.Errorf("%+v", g)
	}
	skips = nil
	for i := range 2 * maxReasons {
		skips = append(skips, mirror.Skip{Reason: fmt.Sprint("reason ", i)})
	}
	if g := groupSkips(skips); len(g) != maxReasons+1 || g[0].pages != maxReasons {
		t.Errorf("%d groups: %+v", len(g), g)
	}
}
