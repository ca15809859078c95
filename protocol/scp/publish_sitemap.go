package scp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/canon"
	"github.com/millrace/millrace/internal/sitemap"
)

const (
	sitemapPath = sitemap.Path
	indexPath   = sitemap.IndexPath
)

// namespace is that of the extension (Appendix A).
const namespace = "https://scp-protocol.org/schemas/sitemap/1.0"

func (p *publisher) shards(site millrace.Site) int { return sitemap.Shards(site.Pages, p.listItems) }

func sitemapHeader() http.Header {
	return http.Header{"Content-Type": {"application/xml; charset=utf-8"}, "Cache-Control": {"max-age=0, must-revalidate"}}
}

// sitemapDocument gives a sitemap that names pages alone.
func sitemapDocument(i, shards, pages int, group *millrace.Group) *millrace.Document {
	path := sitemap.ShardName(i, shards)
	return &millrace.Document{
		Path: path, Header: sitemapHeader(), Large: true, Group: group, Names: int64(pages / shards),
		Touched: func(u string) bool { return sitemap.ShardOf(u, shards) == i },
		Write: func(ctx context.Context, w io.Writer) error {
			return group.Write(ctx, map[string]io.Writer{path: w})
		},
	}
}

// indexDocument names all sitemaps. It is short enough to be made anew each
// time, since what it says changes with their number.
func indexDocument(v millrace.View, shards int) *millrace.Document {
	return &millrace.Document{
		Path: indexPath, Header: sitemapHeader(), Large: true,
		Write: func(_ context.Context, w io.Writer) error {
			docs := strings.TrimSuffix(v.Site().Docs, "/")
			out := sitemap.NewIndexWriter(w)
			for i := range shards {
				out.Sitemap(docs+sitemap.ShardName(i, shards), time.Time{})
			}
			return out.Close()
		},
	}
}

// writeSitemaps writes some of the sitemaps that name pages alone.
func writeSitemaps(ctx context.Context, v millrace.View, shards int, to map[string]io.Writer) error {
	lists := make([]*sitemap.Writer, shards)
	for i := range lists {
		if w := to[sitemap.ShardName(i, shards)]; w != nil {
			lists[i] = sitemap.NewWriter(w, "")
		}
	}
	if err := eachPage(ctx, v, func(u string, modified time.Time) {
		if w := lists[sitemap.ShardOf(u, shards)]; w != nil {
			w.Page(u, modified)
		}
	}); err != nil {
		return fmt.Errorf("%s: sitemaps: %w", Name, err)
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

// eachPage calls back for every page that is carried, in the order of
// identities.
func eachPage(ctx context.Context, v millrace.View, f func(u string, modified time.Time)) error {
	for t, err := range v.Tags(ctx, Name, "") {
		if err != nil {
			return err
		}
		f(canon.Absolute(v.Site().Base, t.URL), t.Modified)
	}
	return nil
}

// sitemap makes the sitemap with the SCP elements and the first pages.
func (pl *plan) sitemap(ctx context.Context) error {
	shards := pl.shards(pl.site)
	head := pl.elements()
	return pl.shelf.Put(ctx, &millrace.Document{
		Path: sitemapPath, Header: sitemapHeader(), Large: true, Names: int64(pl.site.Pages / shards),
		Write: func(ctx context.Context, w io.Writer) error {
			out := sitemap.NewWriter(w, head, sitemap.Namespace{Prefix: "scp", URI: namespace})
			n := 0
			if err := eachPage(ctx, pl.view, func(u string, modified time.Time) {
				if sitemap.ShardOf(u, shards) == 0 {
					out.Page(u, modified)
					n++
				}
			}); err != nil {
				return err
			}
			if n == 0 {
				out.Page(pl.site.Base, pl.site.Time) // Appendix A wants one
			}
			return out.Close()
		},
	})
}

// elements gives the SCP elements of the sitemap (Discovery via Sitemap).
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
						continue // readers refuse it (Resource Exhaustion Attacks)
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

// address gives the URL of a collection.
func (pl *plan) address(path string) string {
	if pl.filesURL != "" {
		return pl.filesURL + path
	}
	return strings.TrimSuffix(pl.site.Docs, "/") + path
}
