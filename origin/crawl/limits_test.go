package crawl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/fetch"
	"github.com/millrace/millrace/mirror"
)

// If a limit or a rule of robots.txt is relaxed, the crawl finds the addresses that were excluded,
// although requests for the pages that link to them result in a 304.
func TestLifted(t *testing.T) {
	sitewide := func(s *site) { chain(s, 100) }
	secret := func(s *site) {
		s.set("/robots.txt", text("User-agent: *\nDisallow: /p/7\nDisallow: /p/8\n"))
		chain(s, 100)
	}
	for _, c := range []struct {
		name          string
		site, between func(s *site)
		before, after Options
		most, want    int // numbers of pages
		why           string
		runs          int // number of runs until all pages are found
	}{
		{"max-pages", sitewide, nil, Options{MaxPages: 10}, Options{}, 40, 100, "max-pages", 1},
		{"max-pages in steps", sitewide, nil, Options{MaxPages: 10}, Options{MaxPages: 30}, 40, 100, "max-pages", 9},
		{"max-depth", sitewide, nil, Options{MaxDepth: 2}, Options{}, 7, 100, "max-depth", 1},
		{"max-depth in steps", sitewide, nil, Options{MaxDepth: 2}, Options{MaxDepth: 5, MaxPages: 50, Concurrency: 1}, 7, 63, "max-depth", 6},
		{"robots.txt", secret, func(s *site) { s.set("/robots.txt", nil) }, Options{}, Options{}, 70, 100, "robots-disallow", 1},
		{"less of robots.txt", secret, func(s *site) { s.set("/robots.txt", text("User-agent: *\nDisallow: /p/8\n")) }, Options{}, Options{}, 70, 75, "robots-disallow", 1},
		{"ignore robots.txt", secret, nil, Options{}, Options{IgnoreRobots: true}, 70, 100, "robots-disallow", 1},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			s := newSite(t)
			c.site(s)
			m := newMill(t, s.URL+"/")
			run := func(o Options) *mirror.Report {
				return m.run(m.through(fetch.New(&fetch.Options{AllowPrivate: true, IgnoreRobots: o.IgnoreRobots}).HTTP(), o))
			}
			reported := false
			for range 6 {
				for _, skip := range run(c.before).Skipped {
					reported = reported || skip.Code == c.why
				}
			}
			if !reported {
				t.Error("the reason was not reported")
			}
			if got := len(m.pages()); got > c.most {
				t.Errorf("%d pages at first, want at most %d", got, c.most)
			}
			if c.between != nil {
				c.between(s)
			}
			for range c.runs {
				run(c.after)
			}
			if got := len(m.pages()); got != c.want {
				t.Errorf("%d pages, want %d", got, c.want)
			}
			// Later runs send conditional requests again.
			s.asked()
			run(c.after)
			n := s.cond
			if all := len(s.asked()); n < all-6 {
				t.Errorf("%d of %d requests are conditional", n, all)
			}
		})
	}
}

func TestLimits_lifted(t *testing.T) {
	for _, c := range []struct {
		l, by limits
		want  bool
	}{
		{limits{}, limits{Pages: 5, Depth: 5, Robots: "x"}, false},
		{limits{Pages: 5}, limits{Pages: 5, Depth: 9, Robots: "x"}, false},
		{limits{Pages: 5}, limits{Pages: 4}, false},
		{limits{Pages: 5}, limits{Pages: 6}, true},
		{limits{Depth: 5}, limits{Depth: 6}, true},
		{limits{Robots: "x"}, limits{Robots: "x"}, false},
		{limits{Robots: "x"}, limits{Robots: noRules}, true},
		{limits{Robots: lostCount}, limits{Robots: noRules}, true},
	} {
		if got := c.l.relaxed(c.by); got != c.want {
			t.Errorf("%v by %v: %v", c.l, c.by, got)
		}
	}
	if got := (limits{Pages: 5, Robots: "x"}).with(limits{Pages: 7, Depth: 3}); fmt.Sprint(got) != "{5 3 x}" {
		t.Errorf("%v", got)
	}
}
