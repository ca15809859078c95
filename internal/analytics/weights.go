package analytics

import (
	"context"
	"time"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/store"
)

const (
	knownWeights = 16384           // pages whose weight is remembered
	trustWeights = 5 * time.Minute // how long: pages change
	askedAtOnce  = 512
)

// weightCache remembers the weights of the pages that are asked for.
type weightCache struct {
	known map[string]millrace.Weight
	since time.Time // when the oldest of them came
}

func (c *weightCache) init() { c.known = make(map[string]millrace.Weight) }

// fill gives events that are of one page what that is as HTML. After an error
// some have nothing.
func (c *weightCache) fill(ctx context.Context, w Weights, pages []*store.Event, now time.Time) error {
	if age := now.Sub(c.since); len(c.known) >= knownWeights || age < 0 || age > trustWeights {
		clear(c.known)
		c.since = now
	}
	var err error
	for len(pages) > 0 && err == nil {
		some := pages[:min(len(pages), askedAtOnce)]
		pages = pages[len(some):]
		var missing []string
		for _, e := range some {
			weight, ok := c.known[e.Path]
			if !ok {
				c.known[e.Path] = millrace.Weight{} // asked for once
				missing = append(missing, e.Path)
			}
			if e.HTML == 0 {
				weigh(e, weight)
			}
		}
		if len(missing) == 0 {
			continue
		}
		var found []millrace.Weight
		if found, err = w.Weights(ctx, missing); err != nil {
			for _, path := range missing {
				delete(c.known, path)
			}
		}
		for i, weight := range found {
			c.known[missing[i]] = weight
		}
		for _, e := range some {
			if weight := c.known[e.Path]; e.HTML == 0 {
				weigh(e, weight)
			}
		}
	}
	return err
}

// weigh says what the page of an event is as HTML. Who takes no coding would have
// had that without one, too.
func weigh(e *store.Event, w millrace.Weight) {
	if w.Bytes == 0 {
		return
	}
	if e.Received < 0 {
		w.Received = w.Bytes
	}
	e.HTML, e.Received = w.Bytes, w.Received
}
