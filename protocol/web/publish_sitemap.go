package web

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/sitemap"
)

// shards gives the number of sitemaps; 0 where another protocol has them, and
// where pages and documents are on two origins: there a sitemap could name no
// page.
func (d *once) shards(site millrace.Site) int {
	if !d.sitemaps || siteOf(site.Base) != siteOf(site.Docs) {
		return 0
	}
	return sitemap.Shards(site.Pages, max(1, min(cmp.Or(d.listItems, sitemap.MaxURLs), sitemap.MaxURLs)))
}

// siteOf gives scheme and host of a URL.
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

// large gives the sitemaps.
func (d *once) large(v millrace.View) []*millrace.Document {
	shards := d.shards(v.Site())
	if shards == 0 {
		return nil
	}
	group := &millrace.Group{Write: func(ctx context.Context, to map[string]io.Writer) error {
		return writeSitemaps(ctx, v, shards, to)
	}}
	var out []*millrace.Document
	for i := range shards {
		path := sitemap.ShardName(i, shards)
		out = append(out, &millrace.Document{
			Path: path, Header: sitemapHeader(), Large: true, Group: group, Names: int64(v.Site().Pages / shards),
			Touched: func(u string) bool { return sitemap.ShardOf(u, shards) == i },
			Write: func(ctx context.Context, w io.Writer) error {
				return group.Write(ctx, map[string]io.Writer{path: w})
			},
		})
	}
	if shards == 1 {
		return out
	}
	// The index is short, and says another thing whenever their number does.
	docs := strings.TrimSuffix(v.Site().Docs, "/")
	return append(out, &millrace.Document{
		Path: sitemap.IndexPath, Header: sitemapHeader(), Large: true,
		Write: func(_ context.Context, w io.Writer) error {
			list := sitemap.NewIndexWriter(w)
			for i := range shards {
				list.Sitemap(docs+sitemap.ShardName(i, shards), time.Time{})
			}
			return list.Close()
		},
	})
}

// writeSitemaps writes some of the sitemaps, in one pass over the site.
func writeSitemaps(ctx context.Context, v millrace.View, shards int, to map[string]io.Writer) error {
	lists := make([]*sitemap.Writer, shards)
	n := 0
	for i := range lists {
		if w := to[sitemap.ShardName(i, shards)]; w != nil {
			lists[i] = sitemap.NewWriter(w, "")
		}
	}
	for t, err := range tags(ctx, v) {
		if err != nil {
			return err
		}
		if w := lists[sitemap.ShardOf(t.URL, shards)]; w != nil {
			w.Page(t.URL, t.Modified)
			n++
		}
	}
	site := v.Site()
	if w := lists[0]; n == 0 && shards == 1 && w != nil {
		w.Page(site.Base, site.Time) // sitemaps.org wants one
	}
	for _, w := range lists {
		if w == nil {
			continue
		}
		if err := w.Close(); err != nil {
			return err
		}
	}
	return nil
}

// announceSitemaps names the sitemaps in robots.txt.
func (d *once) announceSitemaps(site millrace.Site, n *millrace.Notice) {
	docs := strings.TrimSuffix(site.Docs, "/")
	shards := d.shards(site)
	if shards > 0 {
		n.Robots = append(n.Robots, "Sitemap: "+docs+sitemap.Path)
	}
	if shards > 1 {
		n.Robots = append(n.Robots, "Sitemap: "+docs+sitemap.IndexPath)
	}
}
