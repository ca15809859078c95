package analytics

import (
	"context"
	"hash/maphash"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

const (
	maxHTMLSizes = 16384           // number of pages at which the cache is cleared
	htmlSizesTTL = 5 * time.Minute // maximum age of the cache, because pages may change
	askedAtOnce  = 512
)

// htmlSizeCache caches the HTML sizes of requested pages by a hash of their paths.
// If two hashes collide, both pages get the same size.
type htmlSizeCache struct {
	seed  maphash.Seed
	known map[uint64]millrace.HTMLSize
	since time.Time // time at which the cache was last cleared
	keys  []uint64  // hashes of the paths of the events being filled
}

func (c *htmlSizeCache) init() {
	c.seed, c.known = maphash.MakeSeed(), make(map[uint64]millrace.HTMLSize)
}

// fill sets the HTML sizes of events for single pages. After an error, some events lack the size.
func (c *htmlSizeCache) fill(ctx context.Context, w HTMLSizes, pages []*store.Event, now time.Time) error {
	if age := now.Sub(c.since); len(c.known) >= maxHTMLSizes || age < 0 || age > htmlSizesTTL {
		clear(c.known)
		c.since = now
	}
	var err error
	for len(pages) > 0 && err == nil {
		some := pages[:min(len(pages), askedAtOnce)]
		pages = pages[len(some):]
		var missing []string
		var keys []uint64 // keys of the missing paths
		c.keys = c.keys[:0]
		for _, e := range some {
			key := maphash.String(c.seed, e.Path)
			c.keys = append(c.keys, key)
			size, ok := c.known[key]
			if !ok {
				c.known[key] = millrace.HTMLSize{} // also cache unknown sizes
				missing, keys = append(missing, e.Path), append(keys, key)
			}
			if e.HTML == 0 {
				setHTMLSize(e, size)
			}
		}
		if len(missing) == 0 {
			continue
		}
		var found []millrace.HTMLSize
		if found, err = w.HTMLSizes(ctx, missing); err != nil {
			for _, key := range keys {
				delete(c.known, key)
			}
		}
		for i, size := range found {
			c.known[keys[i]] = size
		}
		for i, e := range some {
			if e.HTML == 0 {
				setHTMLSize(e, c.known[c.keys[i]])
			}
		}
	}
	return err
}

// setHTMLSize sets the HTML size of an event. If e.Received is negative, the client does not accept
// compression and would receive uncompressed HTML.
func setHTMLSize(e *store.Event, w millrace.HTMLSize) {
	if w.Bytes == 0 {
		return
	}
	if e.Received < 0 {
		w.Received = w.Bytes
	}
	e.HTML, e.Received = w.Bytes, w.Received
}
