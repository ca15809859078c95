package scp

import (
	"strings"

	"github.com/millrace/millrace"
)

// Announce says nothing on pages: a sitemap is found by its name, and by
// robots.txt.
func (p *publisher) Announce(v millrace.View) millrace.Notice {
	docs := strings.TrimSuffix(v.Site().Docs, "/")
	n := millrace.Notice{Robots: []string{"Sitemap: " + docs + sitemapPath}}
	if p.shards(v.Site()) > 1 {
		n.Robots = append(n.Robots, "Sitemap: "+docs+indexPath)
	}
	return n
}
