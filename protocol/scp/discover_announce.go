package scp

import (
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/kit"
)

// Advertise returns the sitemap, but no links on pages: clients find the sitemap by its name and in
// robots.txt.
func (p *publisher) Advertise(v millrace.View) millrace.Advertisement {
	if foreign(v.Site()) {
		return millrace.Advertisement{}
	}
	docs := strings.TrimSuffix(v.Site().EndpointBase, "/")
	n := millrace.Advertisement{
		Robots:  []string{"Sitemap: " + docs + sitemapPath},
		Entries: []millrace.Entry{{URL: docs + sitemapPath, Type: "application/xml"}},
		Allow:   []string{sitemapPath, "/sitemap-*.xml$", "/scp/"},
	}
	if p.shards(v.Site()) > 1 {
		n.Robots = append(n.Robots, "Sitemap: "+docs+indexPath)
	}
	return n
}

// foreign reports whether a site's pages are on a different origin from its documents. A sitemap
// must not list such pages, and readers ignore them.
func foreign(site millrace.Site) bool { return !kit.SameOrigin(site.Base, site.EndpointBase) }
