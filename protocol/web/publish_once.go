package web

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/protocol"
	"github.com/millrace/millrace/protocol/kit"
)

// once publishes what a site has once, beside llms.txt:
//
//	/feed.atom, /feed.json       what has changed last
//	/feed-2.atom, /feed-2.json … what has changed before
//	/license.xml                 what the content may be used for, if the owner says so
//	/sitemap.xml                 the pages, if no other protocol has a sitemap
//	/sitemap-2-of-4.xml …        the others, when there are more than one sitemap holds
//	/sitemap-index.xml           all of those
type once struct {
	hubs      []string
	policy    *millrace.Policy
	sitemaps  bool
	listItems int
}

// sitemapOf is the protocol that has a sitemap of its own, with the names of
// these.
const sitemapOf = "scp"

func newOnce(o *protocol.PublisherOptions) once {
	d := once{hubs: protocol.Own[PublisherOptions](o).Hubs, policy: o.Policy, listItems: o.ListItems, sitemaps: !slices.Contains(o.Protocols, sitemapOf)}
	return d
}

// find gives what is there by a name and is not as large as the site.
// ErrNotFound: nothing is.
func (d *once) find(ctx context.Context, v millrace.View, path string) (*millrace.Document, error) {
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

// all yields everything that find returns, each made when it is asked for.
func (d *once) all(ctx context.Context, v millrace.View) iter.Seq2[*millrace.Document, error] {
	return func(yield func(*millrace.Document, error) bool) {
		for _, form := range feedForms {
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

// announce says where it all is.
func (d *once) announce(site millrace.Site, n *millrace.Advertisement) {
	announceFeeds(site, n)
	d.announceLicense(site, n)
	d.announceSitemaps(site, n)
}
