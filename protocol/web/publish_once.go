package web

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/internal/kit"
	"github.com/millrace/millrace/protocol"
)

// siteDocuments publishes the site-wide documents other than llms.txt:
//
//	/feed.atom, /feed.json       the newest changes
//	/feed-2.atom, /feed-2.json … earlier changes
//	/license.xml                 the terms of use, if the owner has set any
//	/sitemap.xml                 the pages, if no other protocol has a sitemap
//	/sitemap-2-of-4.xml …        more pages, if one sitemap cannot hold them
//	/sitemap-index.xml           all sitemaps
type siteDocuments struct {
	hubs      []string
	policy    *millrace.Policy
	sitemaps  bool
	compact   bool // see [protocol.PublisherOptions]
	listItems int
}

// sitemapOf is the name of the protocol that publishes its own sitemap, under the same path.
const sitemapOf = "scp"

func newOnce(o *protocol.PublisherOptions) siteDocuments {
	d := siteDocuments{hubs: protocol.Own[PublisherOptions](o).Hubs, policy: o.Policy, listItems: o.ListItems, compact: o.Compact, sitemaps: !slices.Contains(o.Protocols, sitemapOf)}
	return d
}

// find returns the document at a path, if the document does not grow with the site. If no document
// has that path, the error is ErrNotFound.
func (d *siteDocuments) find(ctx context.Context, v millrace.View, path string) (*millrace.Document, error) {
	if path == licensePath {
		if doc := d.licenseDocument(v.Site()); doc != nil {
			return doc, nil
		}
	}
	doc, err := d.feed(ctx, v, path)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", Name, kit.Short(path), err)
	}
	return doc, nil
}

// all yields every document that find returns. Each document is built when the iteration reaches
// it.
func (d *siteDocuments) all(ctx context.Context, v millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(yield func(*millrace.Document, error) bool) {
		for _, form := range d.feedForms() {
			for n := 1; n <= maxFeeds; n++ {
				doc, err := d.feed(ctx, v, form.path(n))
				if errors.Is(err, millrace.ErrNotFound) {
					break
				}
				if err != nil {
					yield(nil, fmt.Errorf("%s: feeds: %w", Name, err))
					return
				}
				if !yield(doc, nil) {
					return
				}
			}
		}
		if doc := d.licenseDocument(v.Site()); doc != nil {
			yield(doc, nil)
		}
	}
}

// advertise adds links to all these documents.
func (d *siteDocuments) advertise(site millrace.Site, n *millrace.Advertisement) {
	d.advertiseFeeds(site, n)
	d.advertiseLicense(site, n)
	d.advertiseSitemaps(site, n)
}
