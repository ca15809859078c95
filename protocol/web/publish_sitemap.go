package web

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/sitemap"
)

// shards returns the number of sitemaps. It is 0 if another protocol publishes the sitemaps, or if
// pages and documents are on different origins, because a sitemap may list only URLs of its own
// origin.
func (d *siteDocuments) shards(site millrace.Site) int {
	if !d.sitemaps || siteOf(site.Base) != siteOf(site.EndpointBase) {
		return 0
	}
	return sitemap.Shards(site.Pages, max(1, min(cmp.Or(d.listItems, sitemap.MaxURLs), sitemap.MaxURLs)))
}

// siteOf returns the scheme and host of a URL.
func siteOf(u string) string {
	at, err := url.Parse(u)
	if err != nil {
		return u
	}
	return at.Scheme + "://" + at.Host
}

func sitemapHeader() http.Header {
	return http.Header{"Content-Type": {"application/xml; charset=utf-8"}, "Cache-Control": {revalidate}}
}

// large returns the sitemaps.
func (d *siteDocuments) large(v millrace.View) []*millrace.Document {
	shards := d.shards(v.Site())
	if shards == 0 {
		return nil
	}
	var out []*millrace.Document
	for i := range shards {
		parts := sitemap.Parts(v, Name, i, shards, "")
		out = append(out, &millrace.Document{
			Path: sitemap.ShardName(i, shards), Header: sitemapHeader(), Large: true, Subject: millrace.Subject{PageCount: int64(v.Site().Pages / shards)},
			Parts: parts, Write: parts.Write,
		})
	}
	if shards == 1 {
		return out
	}
	parts := sitemap.Index(v.Site(), shards)
	return append(out, &millrace.Document{Path: sitemap.IndexPath, Header: sitemapHeader(), Large: true, Parts: parts, Write: parts.Write})
}

// advertiseSitemaps adds the sitemaps to robots.txt.
func (d *siteDocuments) advertiseSitemaps(site millrace.Site, n *millrace.Advertisement) {
	docs := strings.TrimSuffix(site.EndpointBase, "/")
	shards := d.shards(site)
	if shards > 0 {
		n.Robots = append(n.Robots, "Sitemap: "+docs+sitemap.Path)
	}
	if shards > 1 {
		n.Robots = append(n.Robots, "Sitemap: "+docs+sitemap.IndexPath)
	}
}
