package edition

import (
	"context"
	"errors"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

// PageCounts contains the different page counts of a site.
type PageCounts struct {
	Listed   int // number of pages in the protocol that lists the most pages
	Archives int // published pages that protocols do not list, such as lists of the pages with a tag
	Hidden   int // stored pages that are not published, because of noindex or a rule
}

// CountPages counts the pages of a published view, and of the stored site.
func CountPages(ctx context.Context, stored store.Site, published millrace.Site) (PageCounts, error) {
	c := PageCounts{Listed: listedPages(published)}
	c.Archives = published.Pages - c.Listed
	head, err := stored.Head(ctx)
	switch {
	case err == nil:
		c.Hidden = max(0, head.Site().Pages-published.Pages)
	case !errors.Is(err, millrace.ErrNotFound):
		return c, err
	}
	return c, nil
}

// listedPages returns the number of pages in the protocol that lists the most. If no protocol has
// tags, it returns the number of all pages.
func listedPages(site millrace.Site) int {
	most := 0
	for _, n := range site.Tagged {
		most = max(most, n)
	}
	if most == 0 {
		return site.Pages
	}
	return most
}
