package scp

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/sitemap"
)

const (
	sitemapPath = sitemap.Path
	indexPath   = sitemap.IndexPath
)

// namespace is the namespace of the sitemap extension (Appendix A).
const namespace = "https://scp-protocol.org/schemas/sitemap/1.0"

func (p *publisher) shards(site millrace.Site) int { return sitemap.Shards(site.Pages, p.listItems) }

func sitemapHeader() http.Header {
	return http.Header{"Content-Type": {"application/xml; charset=utf-8"}, "Cache-Control": {"max-age=0, must-revalidate"}}
}

// sitemapDocument returns the sitemap with index i, starting at 0. head is the XML of its extension
// elements.
func sitemapDocument(v millrace.View, i, shards int, head string, in ...sitemap.Namespace) *millrace.Document {
	parts := sitemap.Parts(v, Name, i, shards, head, in...)
	return &millrace.Document{
		Path: sitemap.ShardName(i, shards), Header: sitemapHeader(), Large: true, Subject: millrace.Subject{PageCount: int64(v.Site().Pages / shards)},
		Parts: parts, Write: parts.Write,
	}
}

// indexDocument returns the index of all sitemaps.
func indexDocument(v millrace.View, shards int) *millrace.Document {
	parts := sitemap.Index(v.Site(), shards)
	return &millrace.Document{Path: indexPath, Header: sitemapHeader(), Large: true, Parts: parts, Write: parts.Write}
}

// sitemap generates the sitemap with the SCP elements and the first pages.
func (pl *plan) sitemap(ctx context.Context) error {
	return pl.artifacts.Put(ctx, sitemapDocument(pl.view, 0, pl.shards(pl.site), pl.elements(), sitemap.Namespace{Prefix: "scp", URI: namespace}))
}

// elements returns the SCP elements of the sitemap (Discovery via Sitemap).
func (pl *plan) elements() string {
	var b strings.Builder
	element := func(name string, attributes ...string) {
		b.WriteString("<scp:" + name)
		for i := 0; i < len(attributes); i += 2 {
			b.WriteString(" " + attributes[i] + `="` + sitemap.Escape(attributes[i+1]) + `"`)
		}
		b.WriteString("/>\n")
	}
	b.WriteString("<scp:version>" + version + "</scp:version>\n<scp:compression>zstd,gzip</scp:compression>\n")
	for _, s := range pl.sections {
		element("section", "name", s.name, "updateFreq", pl.period.frequency, "pages", strconv.Itoa(s.pages))
	}
	for _, delta := range []bool{false, true} {
		for _, s := range pl.sections {
			for _, g := range s.listed {
				if g.delta() != delta {
					continue
				}
				plain := g.files[len(g.files)-1].Size
				for _, f := range g.files {
					if f.Coding != "" && plain > maxRatio*f.Size {
						continue // readers reject it (Resource Exhaustion Attacks)
					}
					attributes := []string{
						"url", pl.address(f.Path), "generated", g.Generated.Format(time.RFC3339), "expires", g.Expires.Format(time.RFC3339),
						"pages", strconv.Itoa(g.Pages), "size", strconv.FormatInt(f.Size, 10),
					}
					if delta {
						element("delta", append([]string{"section", s.name, "period", g.Period, "since", g.Since.Format(time.RFC3339)}, attributes...)...)
					} else {
						element("collection", append([]string{"section", s.name, "type", "snapshot"}, attributes...)...)
					}
				}
			}
		}
	}
	return b.String()
}

// address returns the URL of a collection.
func (pl *plan) address(path string) string {
	if pl.own.FilesURL != "" {
		return pl.own.FilesURL + path
	}
	return strings.TrimSuffix(pl.site.EndpointBase, "/") + path
}
