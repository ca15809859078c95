package scp

import (
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol/kit"
)

// Advertise says nothing on pages: a sitemap is found by its name, and by
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

// foreign reports whether the pages of a site are on another origin than its
// documents: there a sitemap can name none of them, and readers take none.
func foreign(site millrace.Site) bool { return !kit.SameOrigin(site.Base, site.EndpointBase) }
