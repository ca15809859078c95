package agent

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/discover"
)

func TestRetentionText(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]string{86_400: "a day", 30 * 86_400: "30 days", 90 * 60: "1h30m0s"} {
		if got := retentionText(seconds); got != want {
			t.Errorf("%v seconds: %q, want %q", seconds, got, want)
		}
	}
}

// A site without a sitemap may have more pages than its root links to.
func TestDiscoveryLowerBound(t *testing.T) {
	t.Parallel()
	d := Discovery{Plan: &discover.Plan{}, Ways: []DiscoveredWay{{Protocol: Crawl, Pages: -1, Carries: "blocks", FirstRequests: 3, RefreshRequests: 3}}}
	var b strings.Builder
	if err := d.WriteText(&b); err != nil || strings.Count(b.String(), "at least 3 req., 0 bytes") != 2 {
		t.Errorf("%v\n%s", err, b.String())
	}
}
