package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/protocol/arc"
)

// arcFlags holds the flags of the ARC sitemap.
type arcFlags struct {
	ARCListed        []string `name:"arc-listed" placeholder:"URL" help:"URLs or paths of hidden pages that the ARC sitemap lists by URL only, marked as not to be indexed (default: none)." hidden:""`
	CrawlPriority    []string `placeholder:"PATH=N" help:"Crawl priority of the pages below a path, from 0 to 1, such as /docs=0.8 (default: none)." hidden:""`
	HideARCInRobots  bool     `name:"hide-arc-in-robots" help:"Omit the ARC sitemap from robots.txt, because some crawlers expect XML at every Sitemap line." hidden:""`
	crawlPriorityMap map[string]float64
}

// validate rejects invalid values.
func (c *arcFlags) validate() error {
	for _, page := range c.ARCListed {
		if _, err := canon.URL(page); err != nil && !strings.HasPrefix(page, "/") {
			return usageError(fmt.Sprintf("--arc-listed %q: not a URL or a path; a path starts with /, such as /members", page))
		}
	}
	c.crawlPriorityMap = make(map[string]float64, len(c.CrawlPriority))
	for _, p := range c.CrawlPriority {
		path, value, ok := cutLast(p, "=")
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case !ok || !strings.HasPrefix(path, "/"):
			return usageError(fmt.Sprintf("--crawl-priority: %q is not PATH=N, such as /docs=0.8", p))
		case err != nil && !errors.Is(err, strconv.ErrRange) || !(n >= 0 && n <= 1):
			return usageError(fmt.Sprintf("--crawl-priority: %q of %s is not a number from 0 to 1", value, path))
		}
		if _, twice := c.crawlPriorityMap[strings.TrimRight(path, "/")]; twice {
			return usageError("--crawl-priority: " + path + " has two priorities")
		}
		c.crawlPriorityMap[strings.TrimRight(path, "/")] = n
	}
	return nil
}

// on rejects values of --arc-listed that are not on the origin of the base URL.
func (c *arcFlags) on(base string) error {
	for _, page := range c.ARCListed {
		if u, err := canon.URL(page); err == nil && canon.Origin(u) != canon.Origin(base) {
			return usageError(fmt.Sprintf("--arc-listed %s: not a page of %s", page, base))
		}
	}
	return nil
}

// cutLast is like [strings.Cut], but cuts at the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func (c *arcFlags) options() *arc.PublisherOptions {
	return &arc.PublisherOptions{Listed: c.ARCListed, Priorities: c.crawlPriorityMap, NoSitemapLine: c.HideARCInRobots}
}
