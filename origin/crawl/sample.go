package crawl

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/millrace/millrace"
	"github.com/millrace/millrace/extract"
)

// Sample gives up to n pages to learn from, nearly the same ones from call to
// call, in the order of their URLs. They are those that the sink holds with
// what they were made of; the site is asked for nothing. A version stands for
// the HTML alone, whatever the rules. Without [Options.Held] and
// [Options.Original] there are none.
func (c *Crawl) Sample(ctx context.Context, n int) ([]millrace.Ref, error) {
	if c.held == nil || c.o.Original == nil {
		return nil, nil
	}
	candidates := extract.Sample{Size: 2 * n} // of some nothing is kept
	for ref, err := range c.held(ctx) {
		if err != nil {
			return nil, fmt.Errorf("crawl %s: sample: what the sink holds: %w", c.scope.base, err)
		}
		if _, v := c.scope.clean(ref.URL); v != outside && parseVersion(ref.Version, "").kind == isPage {
			candidates.Add(ref)
		}
	}
	sample := extract.Sample{Size: n}
	for _, ref := range candidates.Refs() {
		data, _, err := c.Original(ctx, ref)
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("crawl %s: sample: %w", c.scope.base, ctx.Err())
		case errors.Is(err, millrace.ErrNotFound), errors.Is(err, millrace.ErrInvalid):
			continue
		case err != nil:
			return nil, fmt.Errorf("crawl %s: sample: %w", c.scope.base, err)
		}
		h := fnv.New64a()
		h.Write(data)
		sample.Add(millrace.Ref{URL: ref.URL, Version: strconv.FormatUint(h.Sum64(), 36)})
	}
	return sample.Refs(), nil
}

// Original gives the HTML that a page was made of when the crawl had it last,
// and how it is extracted but for rules. The site is asked for nothing.
// Errors: [millrace.ErrNotFound] if the sink keeps nothing of it, and those of
// [Options.Original].
func (c *Crawl) Original(ctx context.Context, ref millrace.Ref) ([]byte, *extract.Options, error) {
	if c.o.Original == nil {
		return nil, nil, fmt.Errorf("original of %s: %w: nobody keeps any", ref.URL, millrace.ErrNotFound)
	}
	data, err := c.o.Original(ctx, ref.URL)
	var o original
	if err == nil {
		o, err = parseOriginal(data)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("original of %s: %w", ref.URL, err)
	}
	return o.body, o.options(nil), nil
}
