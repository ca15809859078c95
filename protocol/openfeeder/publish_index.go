package openfeeder

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/millrace/millrace"
)

// index returns a page of the index (section 3.3). Its ETag is computed from the view, because the
// body is not rendered yet.
func (p *publisher) index(v millrace.View, q query) *millrace.Document {
	site := v.Site()
	d := p.document(q.path(site), etag("index", edition(site), site.Base, fmt.Sprint(q.page, q.limit)))
	d.PageCount = int64(min(max(site.Tagged[Name]-(q.page-1)*q.limit, 0), q.limit))
	modified(d.Header, site.Time)
	d.Write = func(ctx context.Context, w io.Writer) error {
		x := &index{Page: q.page, TotalPages: pagesOf(site.Tagged[Name], q.limit)}
		if !site.Volatile {
			x.SyncToken = tokenAt(site, site.Seq, asOf(site))
		}
		if err := p.window(ctx, v, p.orders.of(ctx, v), q, x); err != nil {
			return fmt.Errorf("%s: index: %w", Name, err)
		}
		_, err := w.Write(x.encode())
		return err
	}
	return d
}

// window adds the items for the query's page number and limit to x.
func (p *publisher) window(ctx context.Context, v millrace.View, o *order, q query, x *index) error {
	site := v.Site()
	if q.page > x.TotalPages {
		return nil
	}
	for found, err := range o.pages(ctx, v, (q.page-1)*q.limit, q.limit) {
		if err != nil {
			return err
		}
		it, err := p.item(ctx, v, found)
		if err != nil {
			return err
		}
		it.URL = relative(site.Base, it.URL)
		x.Items = append(x.Items, it)
	}
	return nil
}

// item returns the entry, with an absolute URL, of a published page from a scan.
func (p *publisher) item(ctx context.Context, v millrace.View, found *millrace.Page) (item, error) {
	if needsBlocks(found) {
		return p.itemAt(ctx, v, found.URL, found.Version)
	}
	u, _ := published(v.Site(), found)
	return itemOf(found, u), nil
}

// itemAt returns the entry of the page with the URL u. version changes with the page. If the page
// has no document, the error is ErrNotFound.
func (p *publisher) itemAt(ctx context.Context, v millrace.View, u, version string) (item, error) {
	site := v.Site()
	name := site.Base + "\n" + u + "\n" + version
	if it, ok := p.items.get(name); ok {
		return it, nil
	}
	found, err := v.Page(ctx, millrace.Ref{URL: u})
	if err != nil {
		return item{}, err
	}
	canonical, ok := published(site, found)
	if !ok {
		return item{}, fmt.Errorf("%s: %s: %w", Name, u, millrace.ErrNotFound)
	}
	it := itemOf(found, canonical)
	if version != "" {
		p.items.put(name, it)
	}
	return it, nil
}

// itemCache caches entries that need the whole page. It contains two generations of maxCachedItems
// entries, about 4 MB.
type itemCache struct {
	mu       sync.Mutex
	now, old map[string]item
}

const maxCachedItems = 4096

func (c *itemCache) get(name string) (item, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	it, ok := c.now[name]
	if !ok {
		if it, ok = c.old[name]; ok {
			c.add(name, it)
		}
	}
	return it, ok
}

func (c *itemCache) put(name string, it item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(name, it)
}

func (c *itemCache) add(name string, it item) {
	if c.now == nil || len(c.now) >= maxCachedItems {
		c.old, c.now = c.now, make(map[string]item)
	}
	c.now[name] = it
}
